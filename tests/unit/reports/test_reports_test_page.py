"""The page of a test: its verdict in a sentence, missed limits first, nothing that pytest says of itself."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest

from rackloop.record import DriveSeen
from rackloop_reports.allure_results import complete
from rackloop_reports.attachments import description_html
from rackloop_reports.measurement_table import MOST_ROWS, measurements_csv
from rackloop_reports.record import RunRecord, read_run
from rackloop_reports.sentences import closest_limit, run_sentence, verdict_sentence
from rackloop_reports.titles import title_of, words
from tests.unit.reports.example_stream import ExampleRun, small_run, smoke_run

THREE = {"near": 0.9, "far": 0.1, "missed": 2.0}


def measured_run(run_dir: Path, verdict: str = "fail", reason: str | None = None) -> RunRecord:
    example = ExampleRun(run_dir)
    example.start("a/b", "do it")
    for drive, value in THREE.items():
        example.measure("a/b", "stall", "s", [value] * 20, {"drive": drive}, maximum=1.0)
    example.finish("a/b", verdict, "product" if verdict == "fail" else None, reason)
    return read_run(example.close(verdict, 1))


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("fabric/undisturbed_io::undisturbed_io", "I/O undisturbed"),
        ("characterize/iops::iops", "IOPS"),
        ("fabric/phy_drop::phy_drop", "PHY drop"),
        ("characterize/life_cycle::life_cycle", "Qualification"),
        ("direct/hot_plug::hot_plug[2]", "Hot plug [2]"),
        ("mine/nvme_reset::it_comes_back", "NVMe reset: it comes back"),
        ("mine/reset::reset[/dev/sda-a::b]", "Reset [/dev/sda-a::b]"),
        ("reset::of_path[a/b]", "Reset: of path[a/b]"),
        ("reset::of_path[dev_1]", "Reset: of path[dev_1]"),
    ],
)
def test_titles_are_as_people_write_them(name: str, title: str) -> None:
    assert title_of(name) == title


def test_a_title_that_was_spelt_before_stays() -> None:
    assert words("Undisturbed io") == words("I/O undisturbed") == "I/O undisturbed"


def test_the_sentence_counts_limits_and_names_the_closest_that_was_kept(tmp_path: Path) -> None:
    (test,) = measured_run(tmp_path).tests
    said = verdict_sentence(test, is_simulated=True)
    assert said == (
        "FAIL, cause simulated product: 1 limit missed: stall (drive=missed) p50 2 s, limit max 1 s; "
        "2 limits kept, the closest: stall (drive=near) p50 900 ms, limit max 1 s (90.0% of it)."
    )


def test_a_minimum_is_close_where_little_more_was_measured(tmp_path: Path) -> None:
    (test,) = measured_run(tmp_path).tests
    near, far, _ = test.measurements
    minima = [
        type(near)(**{**vars(one), "limits": {"min": 0.09, "max": None, "text": "min 90 ms"}}) for one in (near, far)
    ]
    assert closest_limit(minima) is minima[1]


def test_a_run_is_told_in_a_sentence(tmp_path: Path) -> None:
    assert run_sentence(measured_run(tmp_path / "one")) == "FAIL: 1 of 3 limits missed, 0 of 1 test passed, 1 failed."
    said = run_sentence(read_run(smoke_run(tmp_path / "smoke", remaps=20)))
    assert said.startswith("FAIL: 5 of 10 tests passed, 1 failed, 1 not conclusive, 2 blocked, 1 skipped")


def test_limits_that_are_held_against_nothing_are_not_said_to_be_missed(tmp_path: Path) -> None:
    run = measured_run(tmp_path, "unknown", "the machine was busy")
    assert run_sentence(run) == "UNKNOWN: 0 of 1 test passed, 1 not conclusive."
    said = verdict_sentence(run.tests[0], is_simulated=True)
    assert said.startswith("UNKNOWN: 1 limit missed but held against nothing: stall (drive=missed) p50 2 s")


def test_a_run_that_was_interrupted_says_so(tmp_path: Path) -> None:
    run = read_run(small_run(tmp_path))
    assert run.finished is not None
    run.finished = replace(run.finished, verdict="unknown", interrupted=True)
    assert run_sentence(run) == "UNKNOWN: 1 of 1 test passed, the run was interrupted."


def test_what_missed_its_limit_stands_first_and_is_marked(tmp_path: Path) -> None:
    run = measured_run(tmp_path)
    html = description_html(run.tests[0], run, None)
    rows = html.partition('<table class="m">')[2].split("<tr")[2:]
    assert ["missed" in rows[0], "near" in rows[1], "far" in rows[2]] == [True] * 3
    assert ["font-weight:bold" in row for row in rows] == [True, False, False]


def test_a_table_ends_after_thirty_rows_and_the_rest_is_folded(tmp_path: Path) -> None:
    example = ExampleRun(tmp_path)
    example.start("a/b", "do it")
    for number in range(MOST_ROWS + 7):
        example.measure("a/b", "time", "s", [0.1], {"drive": f"d{number}"})
    example.finish("a/b")
    run = read_run(example.close())
    shown, _, folded = description_html(run.tests[0], run, None).partition("<details>")
    assert shown.count("(drive=d") == MOST_ROWS
    assert folded.startswith("<summary>7 rows more</summary>")
    assert folded.count("(drive=d") == 7


def test_the_csv_has_every_statistic_of_every_test(tmp_path: Path) -> None:
    run = measured_run(tmp_path)
    rows = list(csv.DictReader(measurements_csv(run).splitlines()))
    assert [(row["metric"], row["labels"], row["value"], row["limit_max"], row["verdict"]) for row in rows] == [
        ("stall", "drive=near", "0.9", "1.0", "pass"),
        ("stall", "drive=far", "0.1", "1.0", "pass"),
        ("stall", "drive=missed", "2.0", "1.0", "fail"),
    ]


def result_of(run_dir: Path, run: RunRecord, details: dict[str, str] | None = None) -> dict[str, object]:
    """What a result that allure-pytest wrote is completed to."""
    labels = [{"name": "rackloop_test", "value": "a/b"}, {"name": "feature", "value": "Undisturbed io"}]
    labels += [{"name": name, "value": "pytest's own"} for name in ("host", "thread", "framework", "language", "suite")]
    labels += [{"name": "severity", "value": "critical"}]
    path = run_dir / "allure-results" / "theirs-result.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"uuid": "u", "labels": labels, "statusDetails": details or {}}))
    complete(run, path.parent, run_dir)
    found: dict[str, object] = json.loads(path.read_text())
    return found


def test_labels_of_pytest_are_left_out_and_those_of_people_are_not(tmp_path: Path) -> None:
    labels = result_of(tmp_path, measured_run(tmp_path))["labels"]
    assert isinstance(labels, list)
    named = {label["name"]: label["value"] for label in labels}
    assert named.keys() == {"rackloop_test", "feature", "severity", "rackloop_verdict", "rackloop_cause", "tag"}
    assert (named["feature"], named["severity"]) == ("I/O undisturbed", "critical")


def test_a_qualification_is_of_a_drive_by_its_serial_number(tmp_path: Path) -> None:
    example = ExampleRun(tmp_path)
    example.start("a/b", "do it")
    example.write(DriveSeen("a/b", "d01", "srv1", "p0", "RL SSD 1", "00123456", "1.0", "sata", 8 << 30, {}, []))
    example.finish("a/b")
    assert result_of(tmp_path, read_run(example.close()))["name"] == "B of S/N 00123456"


def test_the_text_of_an_error_stands_once(tmp_path: Path) -> None:
    chained = (
        "lab.py:3: in ask\nE   LabError: box1 does not answer\n\n"
        "During handling of the above exception, another exception occurred:\n\n"
        "test_b.py:9: in test_b\nE   LabError: box1 does not answer\n"
    )
    details = {"message": "as pytest has it", "trace": chained}
    result = result_of(tmp_path, measured_run(tmp_path, "unknown", "box1 does not answer"), details)
    assert result["statusDetails"] == {"message": "unknown: box1 does not answer", "trace": "lab.py:3: in ask"}


def test_a_limit_needs_no_trace(tmp_path: Path) -> None:
    example = ExampleRun(tmp_path)
    example.start("a/b", "do it")
    example.measure("a/b", "stall", "s", [2.0] * 20, maximum=1.0)
    example.finish("a/b", "fail", "product", "stall: p50 is 2 s")
    run = read_run(example.close("fail", 1))
    object.__setattr__(run.tests[0].measurements[0], "reason", "p50 is 2 s")
    details = result_of(tmp_path, run, {"trace": "outcome.py:1: in judged"})["statusDetails"]
    assert details == {"message": "fail, cause simulated product: stall: p50 is 2 s"}
