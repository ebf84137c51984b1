"""`rackloop model erasure`: what it prints and leaves, and what it makes of bad input."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from rackloop_cli.main import main


def test_codes_are_a_table_and_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["model", "erasure", "codes", "--out", str(tmp_path / "new")]) == 0
    assert "1004  19" in capsys.readouterr().out
    document = json.loads((tmp_path / "new" / "codes.json").read_text())
    assert [(row["k"], row["m"]) for row in document["rows"]][-1] == (1004, 19)
    with (tmp_path / "new" / "codes.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 8


def test_redundancy_is_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["model", "erasure", "redundancy", "--longest", "300", "--out", str(tmp_path)]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {
        f"redundancy.{kind}" for kind in ("json", "csv", "svg", "png")
    }
    last = capsys.readouterr().out.split("300  ")[1].split()
    assert last[:8] == ["4", "1.35%", "6", "2.04%", "7", "2.39%", "12", "4.17%"]
    rows = [row for row in json.loads((tmp_path / "redundancy.json").read_text())["rows"] if row["ph"] == 1e-3]
    assert [(row["shortest"], row["longest"], row["m"]) for row in rows][:2] == [(16, 23, 3), (24, 68, 4)]
    assert rows[-1]["longest"] == 300


@pytest.mark.parametrize(
    ("words", "key"),
    [
        (["codes"], "k"),
        (["redundancy", "--longest", "64"], "shortest"),
        (["tail", "--ph", "0.001", "--sectors", "100", "--trials", "100"], "cut"),
        (["overhead", "--ph", "0.001", "--codeword", "255"], "overhead"),
        (["update", "--groups", "20", "--ph", "0.001", "--sectors", "10"], "over_baseline"),
        (["slowdown", "--ph", "0.001", "--codeword", "255"], "lost"),
    ],
)
def test_a_table_is_printed_as_json_and_nothing_else(
    words: list[str], key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["model", "erasure", *words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["model"]) == (1, words[0])
    assert key in document["rows"][0]
    assert main(["model", "erasure", *words, "--json", "--out", str(tmp_path)]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads((tmp_path / f"{words[0]}.json").read_text())


@pytest.mark.parametrize("verb", ["codes", "redundancy", "tail", "overhead", "update", "slowdown"])
def test_help_promises_a_plot_where_there_is_one(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["model", "erasure", verb, "--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert ("the plot as SVG and PNG" in said) == (verb != "codes")
    assert "Examples:" in said


def test_a_table_in_a_pipe_is_whole_and_nothing_else(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    phs = [word for ph in range(1, 9) for word in ("--ph", f"{ph}e-4")]
    assert main(["model", "erasure", "redundancy", "--longest", "64", *phs]) == 0
    said = capsys.readouterr().out
    assert "…" not in said
    assert all(f"ph 0.000{ph}" in said for ph in range(1, 9))
    assert main(["model", "erasure", "tail", "--ph", "0.001", "--sectors", "100", "--trials", "100"]) == 0
    assert capsys.readouterr().out.startswith("codewords of")


def test_a_tail_is_worked_out_three_ways_at_most(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["model", "erasure", "tail", "--ph", "0.001", "--sectors", "10000", "--trials", "2000", "--charge", "most"]
    assert main([*words, "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "50.1%" in said
    assert "67.2%" in said
    assert "agree" in said
    assert "seed 1" in said
    rows = json.loads((tmp_path / "tail.json").read_text())["rows"]
    assert [(row["cut_published"], round(row["cut"], 3)) for row in rows] == [(0.501, 0.501), (0.672, 0.672)]
    assert all(row["coded_distance"] <= row["coded_bound"] for row in rows)
    assert (tmp_path / "tail.svg").stat().st_size > 10_000


def test_a_tail_explains_its_words_and_has_no_column_without_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["model", "erasure", "tail", "--ph", "0.0001", "--ph", "0.001", "--sectors", "10000", "--retry", "20 ms"]
    assert main([*words, "--trials", "100", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    headings = [line.split() for line in said.splitlines() if "sectors  " in line]
    assert [heading[-1] for heading in headings] == ["trials", "paper"]
    assert not any("drive" in heading for heading in headings)
    assert "ph 0.0001, code (1019, 4)" in said
    assert "ph: the probability that a sector fails at first; code (k, m): of k user sectors and m of" in said
    assert "trials: 100 simulated reads agree where" in said
    assert "paper: the cut in" in said
    assert "the probability that a sector fails at first" in (tmp_path / "tail.svg").read_text()
    assert main([*words[:5], "--sectors", "10000", "--trials", "0"]) == 0
    assert {"trials", "paper", "drive"}.isdisjoint(capsys.readouterr().out.replace(":", " ").split())


def test_overhead_takes_files_of_sizes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = tmp_path / "home.txt"
    sizes.write_text("4096000 2\n", encoding="utf-8")
    words = ["model", "erasure", "overhead", str(sizes), "--codeword", "1023", "--ph", "0.001"]
    assert main([*words, "--out", str(tmp_path / "out")]) == 0
    assert "0.90%" in capsys.readouterr().out
    (row,) = json.loads((tmp_path / "out" / "overhead.json").read_text())["rows"]
    assert (row["files"], row["overhead"]) == ("home.txt", 9 / 1000)


def test_files_of_one_name_are_told_apart_and_nothing_is_worked_out_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder, line in (("one", "4096 2"), ("other", "100000000 5")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "sizes.txt").write_text(line + "\n", encoding="utf-8")
    paths = [str(tmp_path / folder / "sizes.txt") for folder in ("one", "other", "one")]
    words = ["model", "erasure", "overhead", *paths, "--codeword", "255", "--ph", "0.001", "--ph", "0.001"]
    assert main([*words, "--out", str(tmp_path / "out")]) == 0
    rows = json.loads((tmp_path / "out" / "overhead.json").read_text())["rows"]
    assert [(row["files"], round(row["overhead"], 3)) for row in rows] == [
        ("one/sizes.txt", 5.0),
        ("other/sizes.txt", 0.02),
    ]
    capsys.readouterr()
    assert main(["model", "erasure", "codes", "--codeword", "255", "--codeword", "255", "--ph", "0.001"]) == 0
    assert capsys.readouterr().out.count("250") == 1


def test_what_the_paper_prints_stands_beside_its_own_codewords_only(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["model", "erasure", "tail", "--ph", "0.001", "--sectors", "10000", "--retry", "20 ms", "--trials", "0"]
    assert main(words) == 0
    assert "50.1%" in capsys.readouterr().out
    assert main([*words, "--codeword", "255"]) == 0
    assert "50.1%" not in capsys.readouterr().out


def test_made_up_sizes_are_said_to_be(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["model", "erasure", "overhead", "--codeword", "1023", "--ph", "0.001"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "pagerank: known: more than 95 % of the storage used" in said
    assert "assumed: " in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["codes", "--ph", "1.5"], "ph: expected a probability above 0 and below 1"),
        (["codes", "--ps", "0"], "ps: expected a probability above 0 and below 1"),
        (["codes", "--codeword", "1"], "a codeword has 2 to 65,536 sectors, found 1"),
        (["codes", "--ph", "often"], "Invalid value for '--ph'"),
        (["redundancy", "--longest", "7"], "--longest 7: give 16 to 65,536 sectors"),
        (["redundancy", "--ph", "0.9", "--longest", "64"], "no code of up to 64 sectors fails as rarely as 1e-08"),
        (["tail", "--sectors", "100000000"], "read 1 to 10,000,000 consecutive sectors, found 100,000,000"),
        (["tail", "--retry", "20"], "--retry: expected a quantity in s"),
        (["tail", "--ph", "0"], "ph: expected a probability"),
        (["tail", "--measure", "1", "--profile", "nvme-ssd", "--trials", "0"], "no conventional hard disk"),
        (["tail", "--profile", "sata-hdd"], "--profile is about reads on the drive model, and there are none"),
        (["tail", "--request", "8"], "--request is about reads on the drive model, and there are none; give --measure"),
        (["tail", "--decoding", "magic"], "Invalid value for '--decoding'"),
        (["overhead", "nowhere.txt"], "nowhere.txt: cannot be read: No such file or directory"),
        (["update", "--sectors", "400"], "an update has 1 to k = 252 sectors of a group, found 400"),
        (["update", "--groups", "0"], "update 1 to"),
        (["slowdown", "--profile", "nvme-ssd"], "no conventional hard disk"),
        (["update", "--profile", "floppy"], "floppy"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_one_message_and_status_2(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["model", "erasure", *words]) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert "Traceback" not in captured.err
    assert captured.err.count("rackloop: ") <= 1


def test_a_bad_line_of_sizes_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = tmp_path / "sizes.txt"
    sizes.write_text("4096\nlarge\n", encoding="utf-8")
    assert main(["model", "erasure", "overhead", str(sizes)]) == 2
    assert f"{sizes}:2: expected a size in bytes" in capsys.readouterr().err


def test_a_directory_that_cannot_be_made_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert main(["model", "erasure", "codes", "--out", str(tmp_path / "file" / "below")]) == 2
    assert "name a directory that can be made" in capsys.readouterr().err
