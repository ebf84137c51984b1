"""From events to a run: whole, killed at any point, and corrupted."""

import json
from pathlib import Path

import pytest

from rackloop.errors import BadInput
from rackloop.measurement import Cause, Verdict
from rackloop.record import ActAnnounced, ActDone, Event, Measured, RunFinished, RunStarted, TestFinished, read_events
from rackloop.record.acts import DropSignal, SaveBootMap
from rackloop_reports.record import KILLED, UNFINISHED, read_run
from tests.unit.reports.example_stream import ExampleRun, smoke_run


def test_a_whole_run_is_told_in_order(tmp_path: Path) -> None:
    run = read_run(smoke_run(tmp_path, remaps=3))
    assert [test.id for test in run.tests][:3] == [
        "fabric/remap_latency",
        "fabric/switched_throughput",
        "fabric/undisturbed",
    ]
    latency, _, undisturbed = run.tests[:3]
    assert (latency.verdict, latency.cause, latency.reason) == (Verdict.PASS, None, None)
    assert len(latency.remaps) == 12
    assert len(latency.measurements) == 5
    assert len(latency.acts) == 12
    assert all(act.done_ns and act.done_ns > act.announced_ns for act in latency.acts)
    assert [type(act.what) for act in undisturbed.acts] == [DropSignal] * 4
    assert len(undisturbed.series) == 4
    assert run.finished is not None
    assert run.verdict is Verdict.FAIL
    assert run.is_simulated


def test_the_time_of_day_follows_the_run_clock(tmp_path: Path) -> None:
    run = read_run(smoke_run(tmp_path, remaps=1))
    assert run.wall(run.started_ns).isoformat() == run.started.wall
    assert run.wall_ms(run.started_ns + 1_500_000_000) - run.wall_ms(run.started_ns) == 1500


def test_a_test_that_a_killed_run_left_is_unknown_by_the_harness(tmp_path: Path) -> None:
    example = ExampleRun(tmp_path)
    example.start("a/done", "be done")
    example.finish("a/done")
    example.start("a/left", "be left")
    example.clock.advance(2)
    example.act("a/left", SaveBootMap(), "switch")
    example.write(ActAnnounced(2, "a/left", "phy", {"do": "drop", "resource": "switch"}))
    example.log.close()
    run = read_run(tmp_path)
    done, left = run.tests
    assert done.verdict is Verdict.PASS
    assert (left.verdict, left.cause) == (Verdict.UNKNOWN, Cause.HARNESS)
    assert left.reason == f"{UNFINISHED}; announced without a recorded end: phy drop switch"
    assert left.ended_ns == run.ended_ns > left.started_ns
    assert run.verdict is Verdict.UNKNOWN


def test_a_run_killed_between_tests_is_not_green(tmp_path: Path) -> None:
    example = ExampleRun(tmp_path)
    example.start("a/done", "be done")
    example.finish("a/done")
    example.log.close()
    run = read_run(tmp_path)
    assert [(test.id, test.verdict) for test in run.tests] == [("a/done", Verdict.PASS), ("run", Verdict.UNKNOWN)]
    assert run.tests[-1].reason == KILLED
    assert run.verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("verdicts", [("fail", "pass"), ("pass", "fail")])
def test_a_test_that_ran_twice_has_the_worse_of_its_outcomes(tmp_path: Path, verdicts: tuple[str, str]) -> None:
    example = ExampleRun(tmp_path)
    for verdict in verdicts:
        example.start("a/twice", "be done")
        cause = "product" if verdict == "fail" else None
        example.write(TestFinished("a/twice", verdict, cause, cause and "it failed", 1.0))
    example.log.close()
    twice = read_run(tmp_path).tests[0]
    assert (twice.verdict, twice.cause, twice.reason) == (Verdict.FAIL, Cause.PRODUCT, "it failed")


@pytest.mark.parametrize("cut", range(1, 40))
def test_a_stream_cut_anywhere_is_read_and_never_green(tmp_path: Path, cut: int) -> None:
    smoke_run(tmp_path, remaps=1)
    path = tmp_path / "events.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:cut]) + lines[cut][: len(lines[cut]) // 2])
    assert read_run(tmp_path).verdict is Verdict.UNKNOWN


def test_a_run_that_concluded_worse_than_its_tests_keeps_its_verdict(tmp_path: Path) -> None:
    example = ExampleRun(tmp_path)
    example.start("a/done", "be done")
    example.finish("a/done")
    example.close("unknown", 3)
    assert read_run(tmp_path).verdict is Verdict.UNKNOWN


def test_another_time_zone_is_told_in_utc(tmp_path: Path) -> None:
    path = smoke_run(tmp_path, remaps=1) / "events.jsonl"
    path.write_text(path.read_text().replace("2026-01-01T00:00:05+00:00", "2026-01-01T01:30:05+01:30", 1))
    assert "2026-01-01 00:00:05 UTC" in read_run(tmp_path).title


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="not a directory"):
        read_run(tmp_path / "nowhere")
    with pytest.raises(BadInput, match=r"holds no events\.jsonl"):
        read_run(tmp_path)
    (tmp_path / "events.jsonl").write_text("")
    with pytest.raises(BadInput, match="holds no events"):
        read_run(tmp_path)


def test_a_stream_that_contradicts_itself_is_refused(tmp_path: Path) -> None:
    begun = next(read_events(smoke_run(tmp_path / "whole", remaps=1) / "events.jsonl")).event
    assert isinstance(begun, RunStarted)
    cases: dict[str, tuple[Event, str]] = {
        "second": (begun, "starts a second run"),
        "act": (ActDone(7, "a/b"), "act 7, which was never announced"),
        "verdict": (TestFinished("a/b", "green", None, None, 0.1), "'green' is not a valid Verdict"),
        "cause": (TestFinished("a/b", "fail", "weather", None, 0.1), "'weather' is not a valid Cause"),
        "samples": (
            Measured("a/b", "x.y", {}, "s", 2, "p50", 1.0, (None, None), None, None, None, None, None, [2, 1], [1, 1]),
            "distinct and ascending",
        ),
        "run": (RunFinished("fine", 0, 1.0), "'fine' is not a valid Verdict"),
    }
    for name, (event, message) in cases.items():
        example = ExampleRun(tmp_path / name)
        example.write(event)
        example.log.close()
        with pytest.raises(BadInput, match=message):
            read_run(tmp_path / name)


@pytest.mark.parametrize("at_ns", [-(10**20), 10**40])
def test_a_time_that_no_clock_shows_is_refused(tmp_path: Path, at_ns: int) -> None:
    path = smoke_run(tmp_path, remaps=1) / "events.jsonl"
    *before, last = path.read_text().splitlines()
    path.write_text("\n".join([*before, json.dumps(json.loads(last) | {"t_ns": at_ns})]) + "\n")
    with pytest.raises(BadInput, match="no time of the run's clock; was the file edited"):
        read_run(tmp_path)


def test_a_stream_without_its_beginning_is_refused(tmp_path: Path) -> None:
    path = smoke_run(tmp_path, remaps=1) / "events.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[1:]))
    with pytest.raises(BadInput, match=r"begins with test\.started"):
        read_run(tmp_path)


def test_a_lab_whose_name_is_a_path_is_refused(tmp_path: Path) -> None:
    path = smoke_run(tmp_path, remaps=1) / "events.jsonl"
    path.write_text(path.read_text().replace('"lab":"mock"', '"lab":"../mock"', 1))
    with pytest.raises(BadInput, match="no name of a lab"):
        read_run(tmp_path)
