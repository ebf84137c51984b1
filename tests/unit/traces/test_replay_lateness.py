"""Holding what reached a drive against what was due."""

from __future__ import annotations

import polars as pl
import pytest

from rackloop.errors import BadInput
from rackloop.seed import stream
from rackloop_traces.lateness import Lateness, judge_lateness

MS = 1_000_000
Row = tuple[int, int, int, int]


def frame(stamp: str, *rows: Row) -> pl.DataFrame:
    types = {stamp: pl.Int64, "op": pl.Int64, "offset_bytes": pl.Int64, "size_bytes": pl.Int64}
    return pl.DataFrame(rows, schema=types, orient="row")


def judged(due: list[Row], reached: list[Row], resolution_ns: int = 1) -> Lateness:
    return judge_lateness(frame("due_ns", *due), frame("reached_ns", *reached), resolution_ns=resolution_ns)


DUE: list[Row] = [(0, 0, 0, 512), (10 * MS, 1, 4096, 512), (20 * MS, 0, 0, 512), (30 * MS, 0, 512, 512)]


def later(rows: list[Row], *late_ns: int, clock_ns: int = 77 * 10**9) -> list[Row]:
    return [(due + late + clock_ns, *what) for (due, *what), late in zip(rows, late_ns, strict=True)]  # type: ignore[misc]


def test_lateness_counts_from_the_least_late_request_whatever_the_clock() -> None:
    lateness = judged(DUE, later(DUE, 5 * MS, 6 * MS, 4 * MS, 5 * MS))
    assert lateness.requests["late_ns"].to_list() == [MS, 2 * MS, 0, MS]
    assert lateness.requests["reached_ns"].to_list() == [MS, 12 * MS, 20 * MS, 31 * MS]
    assert (lateness.missing, lateness.unexpected, lateness.due) == (0, 0, 4)
    assert lateness.late_s.maximum == 0.002


def test_requests_are_recognised_by_what_they_ask_for_not_by_their_order() -> None:
    reached = later(DUE, 0, 0, 0, 0)
    stream(7, "order").shuffle(reached)
    assert judged(DUE, reached).requests["late_ns"].to_list() == [0, 0, 0, 0]


def test_what_never_came_and_what_nobody_planned_is_counted() -> None:
    lateness = judged(DUE, [*later(DUE, 0, 0, 0, 0)[:3], (1, 0, 1 << 20, 512), (2, 2, 0, 512)])
    assert (lateness.missing, lateness.unexpected) == (1, 2)
    assert lateness.requests.height == 3


def test_drift_is_the_slope_of_the_lateness() -> None:
    due = [(second * 10**9, 0, second * 512, 512) for second in range(100)]
    lateness = judged(due, later(due, *(second * 2000 for second in range(100))))
    assert lateness.drift == pytest.approx(2e-6)
    assert judged(due, later(due, *[5] * 100)).drift == 0


def test_drift_of_requests_that_were_due_at_once_is_none() -> None:
    due = [(0, 0, 0, 512), (0, 0, 512, 512)]
    assert judged(due, later(due, 0, MS)).drift == 0


def test_samples_are_no_finer_than_the_stamps() -> None:
    lateness = judged(DUE, later(DUE, 0, 400_000, 600_000, 1_400_000), resolution_ns=MS)
    assert (lateness.late_s.values, lateness.late_s.counts) == ((0.0, 0.001), (2, 2))


def test_a_replay_that_reached_another_drive_is_no_figure() -> None:
    with pytest.raises(BadInput, match="none of the 4 requests that were due was seen"):
        judged(DUE, [(0, 0, 1 << 30, 512)])
