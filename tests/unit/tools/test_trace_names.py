"""Traces are named alike by every verb: a file, or a sample that is shipped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rackloop.errors import EXIT_BAD_INPUT, EXIT_PASS
from rackloop_cli.main import main


def test_a_shipped_trace_is_looked_at_by_its_name(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["trace", "stat", "demo", "--out", str(tmp_path / "look")]) == EXIT_PASS
    assert capsys.readouterr().out.startswith("demo: ")
    assert (tmp_path / "look" / "trace.svg").exists()
    assert main(["trace", "stat", "demo", "--json"]) == EXIT_PASS
    assert json.loads(capsys.readouterr().out)["requests"] > 0


def test_a_shipped_trace_is_converted_and_made_anew_by_its_name(tmp_path: Path) -> None:
    written = tmp_path / "demo.iolog"
    assert main(["trace", "convert", "demo", str(written)]) == EXIT_PASS
    assert written.stat().st_size > 0
    twin = tmp_path / "twin.csv.gz"
    assert main(["trace", "make", str(twin), "--to", "msr", "--like", "demo", "--requests", "100"]) == EXIT_PASS
    assert twin.exists()


@pytest.mark.parametrize(
    "arguments",
    [["convert", "demo"], ["make", "--requests", "100"]],
    ids=lambda arguments: str(arguments[0]),
)
def test_a_file_that_is_there_is_replaced_only_where_that_is_wanted(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = tmp_path / "out.iolog"
    written.write_text("mine\n")
    assert main(["trace", *arguments, str(written)]) == EXIT_BAD_INPUT
    assert f"{written} is there already: name another file, or replace it with --force" in capsys.readouterr().err
    assert written.read_text() == "mine\n"
    assert main(["trace", *arguments, str(written), "--force"]) == EXIT_PASS
    assert written.read_text() != "mine\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["replay", "demo", "--lab", "mock", "--from", "100", "--dry-run"],
            "rackloop: trace replay demo --from 100: the trace has nothing that fio replays from 100 s on for ",
        ),
        (["make", "out.iolog", "--burstiness", "2"], "rackloop: --burstiness 2: a bias is 0.5 (even) to 0.9"),
    ],
    ids=["replay", "make"],
)
def test_what_an_option_asks_too_much_of_is_told_by_the_options_own_name(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trace", *arguments]) == EXIT_BAD_INPUT
    assert capsys.readouterr().err.startswith(said)


@pytest.mark.parametrize(
    "arguments",
    [["stat", "demoo"], ["convert", "demoo", "out.iolog"], ["make", "out.iolog", "--like", "demoo"]],
    ids=lambda arguments: str(arguments[0]),
)
def test_an_unknown_trace_is_told_with_the_one_that_is_meant(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trace", *arguments]) == EXIT_BAD_INPUT
    said = "rackloop: there is no trace 'demoo', neither a file nor one of those shipped; did you mean 'demo'?\n"
    assert capsys.readouterr().err == said
