"""The plot of a replay, and when a test has one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from rackloop.measurement import Distribution
from rackloop.record import IoSeries, Measured
from rackloop_reports.plot_selection import RunPlots
from rackloop_reports.plots import Replayed, Source, replay_fidelity
from rackloop_reports.record import TestRecord, read_run
from tests.unit.reports.example_stream import smoke_run

SECOND = 10**9


def series(job: str, points: Sequence[tuple[int, float]]) -> IoSeries:
    return IoSeries("workload/trace_replay", job, "request rate", "1/s", points)


LATENESS = Measured(
    test="workload/trace_replay",
    name="replay.lateness",
    labels={"seen_by": "rackd"},
    unit="s",
    n=3,
    quantile="p50",
    value=0.001,
    ci95=(None, None),
    p50=0.001,
    p99=None,
    limits=None,
    verdict=None,
    reason=None,
    values=[0.0, 0.001, 0.5],
    counts=[1, 1, 1],
)
REPLAY = TestRecord(
    id="workload/trace_replay",
    measurements=[LATENESS, replace(LATENESS, quantile="p99")],
    series=[
        series("srv1.p0 planned", [(SECOND, 3.0), (2 * SECOND, 0.0)]),
        series("srv1.p0 issued", [(SECOND, 2.0), (2 * SECOND, 1.0)]),
        series("srv1.p0 replay", [(SECOND, 0.002)]),
    ],
)


def names(test: TestRecord, tmp_path: Path) -> list[str]:
    return [plot.name for plot in RunPlots(read_run(smoke_run(tmp_path, remaps=3))).plots_of([test])]


def test_a_replay_has_one_plot_however_many_limits_its_lateness_had(tmp_path: Path) -> None:
    assert [name for name in names(REPLAY, tmp_path) if "Replay" in name] == [
        "Replay: workload/trace_replay (simulated)"
    ]


def test_a_test_without_the_series_of_a_replay_has_none(tmp_path: Path) -> None:
    assert not [name for name in names(replace(REPLAY, series=REPLAY.series[2:]), tmp_path) if "Replay" in name]


@pytest.mark.parametrize(("requests", "claimed"), [(368, ["median", "p99"]), (367, ["median"]), (5, [])])
def test_a_quantile_of_the_lateness_is_claimed_where_the_requests_carry_it(requests: int, claimed: list[str]) -> None:
    late = Distribution.of(number * 1e-3 for number in range(requests))
    replayed = Replayed([(0, 1.0)], [(0, 1.0)], [(0, 1e-3)], late, "rackd")
    figure = replay_fidelity(replayed, Source("replay", "mock (simulated)", 1, is_simulated=True))
    words = [text.get_text().split()[0] for axes in figure.axes for text in axes.texts]
    assert words == claimed


def test_a_burst_that_was_issued_late_is_in_view() -> None:
    """The requests of two seconds in one: twice as many as were planned for any."""
    replayed = Replayed(
        [(0, 100.0), (SECOND, 100.0), (2 * SECOND, 100.0)],
        [(0, 0.0), (SECOND, 200.0), (2 * SECOND, 100.0)],
        [],
        Distribution.of([0.0, 1.0]),
        "rackd",
    )
    rate, *_ = replay_fidelity(replayed, Source("replay", "mock (simulated)", 1, is_simulated=True)).axes
    low, high = rate.get_ylim()
    assert low == 0
    assert high > 200
