"""Faults in reports: put together from their phases, as steps and along the time of the I/O."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rackloop.clock import VirtualClock
from rackloop.record import EventLog, FaultPhase, IoSeries, RunFinished, RunStarted, TestFinished, TestStarted
from rackloop_drivers.workload import Sample
from rackloop_fixtures.rack.workloads import throughput_series
from rackloop_reports.plot_selection import RunPlots
from rackloop_reports.plots import Source, fault_timeline
from rackloop_reports.record import RunRecord, fault_records, read_run
from rackloop_reports.steps import FAULTS_TITLE, is_ours, steps_of

TEST = "faults/storm::storm"
SOURCE = Source("storm", "mock (simulated)", 42, is_simulated=True)


def phase(number: int, kind: str, target: str, name: str, at_ns: int, **parameters: object) -> FaultPhase:
    clock = "rackd" if name == "effect" else "harness"
    return FaultPhase(TEST, number, kind, target, parameters, name, at_ns, 0, clock)


PHASES = [
    phase(2, "hang", "d02", "commanded", 2_000_000_000),
    phase(1, "fail_slow", "d01", "commanded", 1_000_000_000, extra_us=900),
    phase(1, "fail_slow", "d01", "acknowledged", 1_001_000_000, extra_us=900),
    phase(1, "fail_slow", "d01", "effect", 1_002_000_000, extra_us=900),
    phase(1, "fail_slow", "d01", "healed", 3_000_000_000, extra_us=900),
    phase(2, "hang", "d02", "acknowledged", 2_001_000_000),
    phase(3, "hang", "d03", "commanded", 4_000_000_000),
]


@pytest.fixture
def run(tmp_path: Path) -> RunRecord:
    clock = VirtualClock()
    log = EventLog(tmp_path / "events.jsonl", clock)
    log.write(RunStarted("p", "", "mock", "mock", 1, "2026-01-01T00:00:00+00:00", {}, {}, []))
    log.write(TestStarted(TEST, "break things"))
    for each in PHASES:
        log.write(each)
    log.write(IoSeries(TEST, "srv1.p0 reads", "longest read", "s", [(1_000_000_000, 0.1), (4_000_000_000, 0.2)]))
    clock.advance(5)
    log.write(TestFinished(TEST, "pass", None, None, 5.0))
    log.write(RunFinished("pass", 0, 5.0))
    log.close()
    return read_run(tmp_path)


def test_faults_are_put_together_from_their_phases_in_the_order_they_were_made(run: RunRecord) -> None:
    slow, hung, refused = fault_records(run.tests[0].faults)
    assert (slow.kind, slow.target, slow.parameters) == ("fail_slow", "d01", {"extra_us": 900})
    assert (slow.began_ns, slow.healed_ns) == (1_000_000_000, 3_000_000_000)
    assert slow.effect is not None
    assert (hung.is_acknowledged, hung.healed_ns, hung.effect) == (True, None, None)
    assert not refused.is_acknowledged


def test_a_step_says_when_a_fault_was_seen_and_mended(run: RunRecord) -> None:
    (whole,) = steps_of(run.tests[0], run)
    assert is_ours(whole)
    assert whole["name"] == f"{FAULTS_TITLE} (3 faults)"
    assert [step["name"] for step in whole["steps"]] == [
        "fail_slow of d01 (extra_us 900), first seen by rackd after 2 ms, undone after 2 s",
        "hang of d02, its end was not observed",
        "hang of d03, was not made",
    ]
    assert [step["status"] for step in whole["steps"]] == ["passed", "broken", "passed"]
    assert whole["status"] == "broken"


def test_the_timeline_has_a_bar_for_each_fault_that_stood_over_the_io(run: RunRecord) -> None:
    test = run.tests[0]
    figure = fault_timeline(fault_records(test.faults), test.series, run.started_ns, run.ended_ns, SOURCE)
    lanes, io = figure.axes
    assert [label.get_text() for label in lanes.get_yticklabels()] == ["d01", "d02"]
    bars = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in lanes.patches]  # type: ignore[attr-defined]
    assert bars == [pytest.approx((1, 3)), pytest.approx((2, 5))]
    (seen,) = lanes.lines
    assert np.asarray(seen.get_xdata()).tolist() == pytest.approx([1.002, 1.002])
    assert io.get_ylabel() == "longest read,\nms"
    assert "2 faults on 2 targets" in " ".join(text.get_text().replace("\n", " ") for text in figure.texts)


def test_a_run_with_faults_has_their_timeline(run: RunRecord) -> None:
    names = [plot.name for plot in RunPlots(run).plots_of(run.tests)]
    assert names == ["Timeline of faults and I/O (simulated)"]


def test_an_outage_is_drawn_with_the_throughput_that_was_measured_in_it() -> None:
    samples = [Sample(4.899, 255e6), Sample(4.999, 261.4e6), Sample(6.144, 9.3e6), Sample(6.244, 258e6)]
    series = throughput_series(TEST, "alpha write", samples, started_ns=0, interval_s=0.1)
    outage = [
        phase(1, "phy_drop", "d01", "commanded", 5_052_000_000),
        phase(1, "phy_drop", "d01", "acknowledged", 5_053_000_000),
        phase(1, "phy_drop", "d01", "healed", 6_056_000_000),
    ]
    figure = fault_timeline(fault_records(outage), [series], 0, 7_000_000_000, SOURCE)
    (line,) = (line for line in figure.axes[1].lines if line.get_label() == "alpha write")
    assert line.get_drawstyle() == "steps-post"
    at_s, shown = np.asarray(line.get_xdata(), float), np.asarray(line.get_ydata(), float)

    def drawn_at(moment_s: float) -> float:
        return float(shown[np.searchsorted(at_s, moment_s, side="right") - 1])

    assert [drawn_at(moment) for moment in (5.06, 5.5, 6.05)] == pytest.approx([9.3] * 3)
    assert [drawn_at(moment) for moment in (4.85, 4.95, 6.2)] == pytest.approx([255, 261.4, 258])
    assert (at_s[0], at_s[-1]) == pytest.approx((4.799, 6.244))


def test_an_interval_series_without_values_has_no_points() -> None:
    assert IoSeries.of_intervals(TEST, "job", "throughput", "B/s", 5, []).points == []


def test_strips_of_io_below_faults_are_counted_where_there_are_too_many(run: RunRecord) -> None:
    series = [IoSeries(TEST, "srv1", f"quantity {number}", "1", [(0, 1.0), (9, 2.0)]) for number in range(27)]
    figure = fault_timeline(fault_records(PHASES), series, 0, 5_000_000_000, SOURCE)
    assert len(figure.axes) == 1 + 24
    assert any("3 strips of I/O not shown" in " ".join(text.get_text().split()) for text in figure.texts)
