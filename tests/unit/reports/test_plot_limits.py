"""Limits in plots: every plot that shows a measure draws its limits, with their words."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import Collection
from matplotlib.colors import same_color, to_hex
from matplotlib.figure import Figure

from rackloop.measurement import Distribution
from rackloop.record import IoSeries, Measured, RoundsMeasured
from rackloop_reports import plots
from rackloop_reports.plot_selection import RunPlots
from rackloop_reports.plots import (
    BesideNeighbours,
    Cell,
    DemandPoint,
    Figured,
    GroupedBar,
    LimitLine,
    RebuildBar,
    Replayed,
    Source,
    StackLatency,
    StateLatency,
    TailCurve,
    TenantLatency,
    TenantShare,
    ThroughputPoint,
    limits_of,
    stall_limits,
)
from rackloop_reports.plots._limits import draw_limits
from rackloop_reports.plots._style import RED
from rackloop_reports.record import TestRecord, read_run
from tests.unit.reports.example_stream import ExampleRun

SOURCE = Source("p", "mock (simulated)", 7, is_simulated=True)
SECOND = 10**9
IOPS = LimitLine("mean", 90.0, "IOPS", is_least=True)
TIME = LimitLine("p99", 0.002)
SHARE = LimitLine("mean", 0.5, "1", is_least=True)
RATE = LimitLine("p50", 4e8, "B/s", is_least=True)
SAMPLES = Distribution.of([0.001] * 100)
ROUNDS = RoundsMeasured(
    "t", "rounds.iops", {"block": "4 KiB", "mix": "0/100"}, "IOPS", [100.0] * 6, 60.0,
    {"rounds": 5, "excursion": 0.2, "slope": 0.1},
)  # fmt: skip
LONGEST = replace(ROUNDS, name="saturation.longest", unit="s", values=[0.001] * 6, criteria=None)
READS = [IoSeries("t", "job", "longest read", "s", [(0, 0.001), (SECOND, 0.002)])]
POINTS = [(0, 3.0), (SECOND, 2.0)]

#: Each plot that shows a measure, drawn with a limit, and the words of it.
LIMITED: Mapping[str, tuple[Callable[[], Figure], str]] = {
    "figure_2": (lambda: plots.figure_2([StackLatency("comreset", SAMPLES, limits=[TIME])], SOURCE), "limit of p99"),
    "latency_ecdf": (
        lambda: plots.latency_ecdf([StackLatency("comreset", SAMPLES, limits=[TIME])], SOURCE),
        "limit of p99: ≤ 2 ms",
    ),
    "figure_3": (
        lambda: plots.figure_3([ThroughputPoint(4096, False, 5e8, None, None, limits=[RATE])], SOURCE),
        "≥ 400 MB/s",
    ),
    "replay_fidelity": (
        lambda: plots.replay_fidelity(Replayed(POINTS, POINTS, [(0, 0.001)], SAMPLES, "fio", [TIME]), SOURCE),
        "limit of p99: ≤ 2 ms",
    ),
    "remap_timeline": (
        lambda: plots.remap_timeline([], [], READS, 0, SOURCE, [replace(TIME, measure="io.stall")]),
        "limit of p99 of io.stall: ≤ 2 ms",
    ),
    "fault_timeline": (
        lambda: plots.fault_timeline([], READS, 0, SECOND, SOURCE, [replace(TIME, measure="io.stall")]),
        "limit of p99 of io.stall: ≤ 2 ms",
    ),
    "steady_state_convergence": (
        lambda: plots.steady_state_convergence([ROUNDS], SOURCE, [IOPS]),
        "limit of mean: ≥ 90 IOPS",
    ),
    "measurement_window": (
        lambda: plots.measurement_window([ROUNDS], SOURCE, [[IOPS]]),
        "limit of mean: ≥ 90 IOPS",
    ),
    "iops_matrix": (lambda: plots.iops_matrix([Cell(4096, 0, 100.0, [IOPS])], SOURCE), "≥ 90 IOPS"),
    "latency_matrix": (
        lambda: plots.latency_matrix([("Average", [Cell(4096, 0, 0.001, [TIME])])], SOURCE),
        "≤ 2 ms",
    ),
    "bandwidth_bars": (lambda: plots.bandwidth_bars([Cell(1 << 20, 0, 5e8, [RATE])], SOURCE), "≥ 400 MB/s"),
    "write_saturation": (
        lambda: plots.write_saturation(ROUNDS, LONGEST, SOURCE, [IOPS], [TIME]),
        "limit of p99: ≤ 2 ms",
    ),
    "demand_curve": (
        lambda: plots.demand_curve([DemandPoint(1, 100.0, 0.001, 0.002, [TIME])], "4 KiB", SOURCE),
        "limit of p99: ≤ 2 ms",
    ),
    "degraded_reads": (
        lambda: plots.degraded_reads([StateLatency("degraded", SAMPLES, [TIME])], SOURCE),
        "limit of p99: ≤ 2 ms",
    ),
    "rebuild_times": (
        lambda: plots.rebuild_times([RebuildBar("move", 3.0, None, [LimitLine("p50", 5.0)])], SOURCE),
        "≤ 5 s",
    ),
    "tail_curves": (
        lambda: plots.tail_curves([TailCurve("p", "coded", [(0.1, None, 0.001, None)], [TIME])], SOURCE),
        "limit of p99: ≤ 2 ms",
    ),
    "codec_throughput": (
        lambda: plots.codec_throughput([GroupedBar("8+2", "encode", 0.5, [RATE])], SOURCE),
        "≥ 400 MB/s",
    ),
    "update_latency": (
        lambda: plots.update_latency([GroupedBar("8+2", "direct", 1.0, [TIME])], SOURCE),
        "≤ 2 ms",
    ),
    "tenant_shares": (
        lambda: plots.tenant_shares([TenantShare("reads", 4e8, 1e8, Figured(1.0, limits=[SHARE]))], [], SOURCE),
        "limit of mean: ≥ 0.5",
    ),
    "tenant_latency": (
        lambda: plots.tenant_latency(
            [TenantLatency("reads", {("alone", "p99"): Figured(0.001, limits=[TIME])})], SOURCE
        ),
        "limit of p99: ≤ 2 ms",
    ),
    "isolation_sheet": (
        lambda: plots.isolation_sheet([BesideNeighbours("large reads", Figured(0.9, limits=[SHARE]))], SOURCE),
        "limit of mean: ≥ 0.5",
    ),
}
#: The other plots: what they show is no measure that a limit is held against, or has no axis for one.
UNLIMITED = {
    "stage_breakdown": "shares of a time; the whole has its limit in the latency plots",
    "recovery_matrix": "counts in cells, whose colours are the verdict",
    "evidence_timeline": "lines of logs",
    "schedule_timeline": "a plan of faults",
    "trace_page": "a trace",
    "drive_model_sheet": "a model",
    "tail_latency_sheet": "a model",
    "redundancy_curves": "a model",
    "bar_sheet": "a model",
    "cost_sheet": "a model",
    "undrawn": "what could not be drawn",
    "tenant_bars": "a model",
    "tail_ranges": "a model",
    "line_panels": "a model",
}


def reds(axes: Axes) -> list[object]:
    """The lines and the marks of limits on the axes."""
    lines = [line for line in axes.lines if line.get_color() == RED]
    marks = [entry for entry in axes.collections if _is_red(entry)]
    return [*lines, *marks, *(patch for patch in axes.patches if same_color(patch.get_edgecolor(), RED))]


def _is_red(entry: Collection) -> bool:
    edges = np.atleast_2d(entry.get_edgecolor())
    return bool(edges.size) and to_hex(edges[0]).upper() == RED


def words(figure: Figure) -> list[str]:
    legends = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    return [*legends, *(text.get_text() for axes in figure.axes for text in axes.texts)]


def test_each_plot_draws_limits_or_shows_nothing_that_has_one() -> None:
    drawing = {name for name, found in vars(plots).items() if inspect.isfunction(found) and _gives_a_figure(found)}
    assert drawing == {*LIMITED, *UNLIMITED}


def _gives_a_figure(found: Callable[..., object]) -> bool:
    return bool(inspect.signature(found).return_annotation == "Figure")


@pytest.mark.parametrize("name", LIMITED)
def test_a_limit_is_drawn_with_its_words(name: str) -> None:
    draw, said = LIMITED[name]
    figure = draw()
    assert any(reds(axes) for axes in figure.axes)
    assert said in words(figure)
    plots.encode(figure, "svg")


def test_a_limit_far_from_what_was_measured_is_named_at_the_edge() -> None:
    figure = Figure()
    axes = figure.subplots()
    axes.plot([0, 1], [1.0, 2.0])
    far = [LimitLine("max", value, "s") for value in (4.0, 2.0, 1.0, 3.0)]
    alike = LimitLine("max", 0.01, "s", measure="b.stall")
    draw_limits(axes, [LimitLine("max", 0.01, "s"), alike, *far], 1000.0)
    assert axes.get_ylim()[1] < 14.0
    assert words(figure) == [
        "limit of max: ≤ 10 ms, 1 other",
        "limit of max: ≤ 1 s ↑\nlimit of max: ≤ 2 s ↑\n2 further limits ↑",
    ]
    axes.set_yscale("log")
    draw_limits(axes, [LimitLine("min", 1e-3, "s", is_least=True)], 1.0)
    assert words(figure)[-1] == "limit of min: ≥ 1 ms ↓"


def test_a_cell_says_of_which_statistic_a_limit_is_that_is_not_the_one_shown() -> None:
    limits = [LimitLine("p99", 0.02), LimitLine("p95", 0.005)]
    figure = plots.latency_matrix([("99 %", [Cell(4096, 0, 0.01, limits, "p99")])], SOURCE)
    assert "≤ 20 ms\np95 ≤ 5 ms" in [text.get_text() for text in figure.axes[0].texts]


def test_a_limit_a_little_beyond_is_brought_into_view() -> None:
    axes = Figure().subplots()
    axes.plot([0, 1], [1.0, 2.0])
    draw_limits(axes, [LimitLine("max", 0.003)], 1000.0)
    assert axes.get_ylim()[1] > 3.0


def test_limits_of_a_measure_are_those_of_its_labels_upper_and_lower(tmp_path: Path) -> None:
    example = ExampleRun(tmp_path)
    example.start("t", "measure")
    example.measure("t", "steady.iops", "IOPS", [100.0] * 5, {"block": "4 KiB", "mix": "0/100"})
    example.finish("t")
    (test,) = read_run(example.close()).tests
    measured = test.measurements[0]
    bounded = replace(measured, quantile="mean", limits={"text": "", "min": 90.0, "max": 200.0})
    other = replace(bounded, labels={"block": "8 KiB", "mix": "0/100"}, limits={"text": "", "min": None, "max": 1.0})
    limited = TestRecord(id="t", measurements=[bounded, other])
    assert limits_of(limited, measured) == [
        LimitLine("mean", 90.0, "IOPS", is_least=True),
        LimitLine("mean", 200.0, "IOPS"),
    ]


def test_limits_of_stalls_are_drawn_where_latencies_are(tmp_path: Path) -> None:
    stall = Measured(
        "t", "io.stall", {}, "s", 1, "max", 0.001, (None, None), 0.001, None,
        {"text": "max 2 ms", "min": None, "max": 0.002}, "pass", None, [0.001], [1],
    )  # fmt: skip
    assert stall_limits([TestRecord(id="t", measurements=[stall])]) == [
        LimitLine("max", 0.002, measure="io.stall", test="t")
    ]
    example = ExampleRun(tmp_path)
    example.start("t", "measure")
    example.write(stall)
    example.write(READS[0])
    example.finish("t")
    run = read_run(example.close())
    (timeline,) = [plot for plot in RunPlots(run).plots_of(run.tests) if "Timeline" in plot.name]
    assert "limit of max of io.stall: ≤ 2 ms" in timeline.data.decode()
