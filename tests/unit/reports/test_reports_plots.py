"""Plots, by what is on them: axes, artists and data; not by pixels."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.container import BarContainer, ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.markers import CARETUPBASE

from rackloop.measurement import Distribution
from rackloop.record import Measured, RemapSeen, Stage
from rackloop.seed import stream
from rackloop_reports.plot_selection import RunPlots, _latencies, _throughputs
from rackloop_reports.plots import (
    Source,
    StackLatency,
    ThroughputPoint,
    encode,
    figure_2,
    figure_3,
    latency_ecdf,
    remap_timeline,
    stage_breakdown,
)
from rackloop_reports.plots.remaps import pieces
from rackloop_reports.plots.throughput import derived_throughput
from rackloop_reports.record import RunRecord, read_run
from tests.unit.reports.example_stream import STACKS, ExampleRun, smoke_run

SOURCE = Source("smoke", "mock (simulated)", 42, is_simulated=True)
MEASURED = Source("smoke", "rack-7, physical", 42, is_simulated=False)


def latencies(n: int = 400) -> list[StackLatency]:
    draws = stream(1, "latencies")
    return [
        StackLatency(stack, Distribution.of(typical_s * draws.lognormvariate(0, 0.05) for _ in range(n)))
        for stack, typical_s in STACKS.items()
    ]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    return read_run(smoke_run(tmp_path_factory.mktemp("run"), remaps=5))


def said(figure: Figure) -> str:
    return " ".join(text.get_text().replace("\n", " ") for text in figure.texts)


def bars(axes: Axes) -> list[float]:
    return [bar.get_height() for group in axes.containers if isinstance(group, BarContainer) for bar in group]


def test_figure_2_shows_medians_beside_the_papers_values() -> None:
    stacks = latencies()
    (axes,) = figure_2(stacks, SOURCE).axes
    assert axes.get_ylabel() == "Remap latency, ms"
    assert axes.get_yscale() == "log"
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["Vanilla", "No timeouts", "Warm port", "COMRESET"]
    expected = [height for entry in stacks for height in (entry.samples.quantile(0.5), STACKS[entry.stack])]
    assert bars(axes) == pytest.approx([height * 1e3 for height in expected])
    low, high = axes.get_ylim()
    assert low < min(bars(axes))
    assert high > max(entry.samples.maximum for entry in stacks) * 1e3
    assert any(np.allclose(np.asarray(line.get_ydata(), dtype=float), 50) for line in axes.lines)


def test_figure_2_bars_have_the_intervals_of_their_quantiles() -> None:
    (entry,) = latencies()[3:]
    (axes,) = figure_2([entry], SOURCE).axes
    segments = [
        segment for lines in axes.collections if isinstance(lines, LineCollection) for segment in lines.get_segments()
    ]
    ends = sorted(float(y) for segment in segments for y in segment[:, 1])
    expected = [bound or math.nan for q in (0.5, 0.99) for bound in entry.samples.quantile_ci95(q)]
    assert ends == pytest.approx(sorted(bound * 1e3 for bound in expected))


def ends(axes: Axes) -> list[float]:
    """The ends of all intervals of the axes."""
    drawn = [segment for one in axes.collections if isinstance(one, LineCollection) for segment in one.get_segments()]
    return sorted(float(y) for segment in drawn for y in segment[:, 1])


def test_figure_2_has_the_interval_that_a_limit_was_held_against(tmp_path: Path) -> None:
    """The p99 of samples alone is above the limit; with what the machine may have added it is on both sides of it."""
    example = ExampleRun(tmp_path)
    example.start("a/b", "measure")
    samples = Distribution.of([0.001] * 900 + [0.02 + number * 1e-5 for number in range(100)])
    measured = Measured(
        test="a/b",
        name="remap.latency",
        labels={"stack": "comreset"},
        unit="s",
        n=samples.n,
        quantile="p99",
        value=samples.quantile(0.99),
        ci95=(0.001, samples.quantile_ci95(0.99)[1]),
        p50=0.001,
        p99=samples.quantile(0.99),
        limits={"text": "max 5 ms", "min": None, "max": 0.005},
        verdict="unknown",
        reason="late",
        values=samples.values,
        counts=samples.counts,
    )
    example.write(measured)
    example.finish("a/b", "unknown", "harness", "late")
    (entry,) = _latencies(read_run(example.close()).tests)
    figure = figure_2([entry], SOURCE)
    assert max(ends(figure.axes[0])) == pytest.approx(1e3 * (samples.quantile_ci95(0.99)[1] or 0))
    assert sum(math.isclose(end, 1.0) for end in ends(figure.axes[0])) == 3
    assert "the machine may have been late" in said(figure)
    assert "the machine" not in said(figure_2([replace(entry, judged={})], SOURCE))


def test_a_median_that_the_remaps_do_not_bound_has_an_arrow() -> None:
    """Three remaps bound their median at neither end: a bar with caps would claim that they do."""
    (axes,) = figure_2([StackLatency("turbo", Distribution.of([0.001, 0.002, 0.003]))], SOURCE).axes
    (median, p99) = (one for one in axes.containers if isinstance(one, ErrorbarContainer))
    for drawn in (median, p99):
        assert CARETUPBASE in [line.get_marker() for line in drawn.lines[1]]


def test_a_stack_the_paper_does_not_know_stands_alone() -> None:
    stacks = [StackLatency("turbo", Distribution.of([0.002] * 10))]
    (axes,) = figure_2(stacks, MEASURED).axes
    assert len(bars(axes)) == 1
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["turbo"]


@pytest.mark.parametrize("draw", [figure_2, latency_ecdf])
def test_captions_say_how_many_and_where_from(draw: object) -> None:
    assert callable(draw)
    caption = said(draw(latencies(), SOURCE))
    assert "n = 400 remaps for each stack" in caption
    assert "seed 42" in caption
    assert "lab mock (simulated)" in caption
    assert "simulated" not in said(draw(latencies(), MEASURED))


def test_the_ecdf_climbs_to_one_inside_its_band() -> None:
    stacks = latencies(100)
    figure = latency_ecdf(stacks, SOURCE)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["Vanilla", "No timeouts", "Warm port", "COMRESET"]
    for axes, entry in zip(figure.axes, stacks, strict=True):
        steps = axes.lines[0].get_xydata()
        assert isinstance(steps, np.ndarray)
        assert list(steps[1:, 0]) == pytest.approx([value * 1e3 for value in entry.samples.values])
        assert steps[-1, 1] == pytest.approx(1)
        (band,) = axes.collections
        heights = band.get_paths()[0].vertices
        assert isinstance(heights, np.ndarray)
        # Massart's constant: sqrt(ln 40 / 200) either side of the share.
        assert max(heights[:, 1]) == 1
        assert any(height == pytest.approx(1 - 0.13581, abs=1e-5) for height in heights[:, 1])
        assert axes.get_xlabel() == "Remap latency, ms"


def test_the_band_of_remaps_that_came_together_is_as_wide_as_that_of_their_changes() -> None:
    samples = Distribution.of([0.001 + number * 1e-6 for number in range(400)], clusters=100)
    (axes,) = (one for one in latency_ecdf([StackLatency("vanilla", samples)], SOURCE).axes if one.get_visible())
    (band,) = axes.collections
    heights = np.asarray(band.get_paths()[0].vertices)[:, 1]
    assert any(height == pytest.approx(1 - 0.13581, abs=1e-5) for height in heights)


@pytest.mark.parametrize(("n", "said"), [(368, "p99 1.36 ms"), (36, "p99 at least 1.03 ms")])
def test_a_p99_that_the_remaps_do_not_carry_is_not_claimed(n: int, said: str) -> None:
    entry = StackLatency("vanilla", Distribution.of([0.001 + number * 1e-6 for number in range(n)]))
    for draw in (figure_2, latency_ecdf):
        texts = [text.get_text() for axes in draw([entry], SOURCE).axes for text in axes.texts]
        assert [text for text in texts if text.startswith("p99")] == [said], draw


def test_many_stacks_wrap_to_rows() -> None:
    stacks = [StackLatency(f"stack{place}", Distribution.of([0.001, 0.002])) for place in range(6)]
    figure = latency_ecdf(stacks, SOURCE)
    assert [axes.get_visible() for axes in figure.axes] == [True] * 6 + [False] * 2


def test_figure_3_shows_both_curves_their_law_and_their_ratio() -> None:
    points = [
        ThroughputPoint(block, switching, derived_throughput(block, is_switching=switching), None, None)
        for block in (4096, 1 << 20, 4 << 20)
        for switching in (False, True)
    ]
    upper, lower = figure_3(points, SOURCE).axes
    assert (upper.get_xscale(), upper.get_yscale()) == ("log", "log")
    assert upper.get_ylabel() == "Throughput, MB/s"
    assert [tick.get_text() for tick in lower.get_xticklabels()] == ["4 KiB", "1 MiB", "4 MiB"]
    legend = upper.get_legend()
    assert legend is not None
    assert len(legend.get_texts()) == 4
    ratio = lower.lines[0].get_ydata()
    assert list(np.asarray(ratio)) == pytest.approx([0.5, 0.82, 0.94], abs=0.01)


def test_figure_3_has_the_ratios_that_were_judged_where_there_are_any(tmp_path: Path) -> None:
    """A drive that is slow in some rounds: the ratio of the medians is not the median of the rounds' ratios."""
    run = ExampleRun(tmp_path)
    test = "fabric/switched_throughput"
    run.start(test, "measure what switching costs")
    steady, switched = [100e6, 100e6, 40e6] * 4, [50e6, 20e6, 24e6] * 4
    labels = {"block": "4 KiB", "drive": "sata-ssd"}
    run.measure(test, "throughput.steady", "B/s", steady, labels)
    run.measure(test, "throughput.switched", "B/s", switched, labels)
    ratios = [over / under for over, under in zip(switched, steady, strict=True)]
    run.measure(test, "throughput.ratio", "1", ratios, labels)
    run.finish(test)
    (point,) = (one for one in _throughputs(read_run(run.close()).tests) if one.is_switching)
    assert point.ratio == pytest.approx((0.5, 0.2, 0.6))
    _, lower = figure_3([replace(point, is_switching=False, ratio=None), point], SOURCE).axes
    assert list(np.asarray(lower.lines[0].get_ydata())) == pytest.approx([0.5])


def test_figure_3_has_a_column_for_each_kind_of_drive() -> None:
    points = [
        ThroughputPoint(block, switching, 1e8, None, None, drive)
        for drive in ("sata-ssd", "sata-hdd")
        for block in (4096, 1 << 20)
        for switching in (False, True)
    ]
    axes = figure_3(points, SOURCE).axes
    assert [one.get_title(loc="left") for one in axes] == ["sata-ssd", "sata-hdd", "", ""]
    assert all(len(list(one.containers)) == 2 for one in axes[:2])


def test_ratios_above_1_and_their_intervals_are_in_view_in_every_column() -> None:
    points = [
        ThroughputPoint(4096, switching, 1e8, None, None, drive, ratio=ratio if switching else None)
        for drive, ratio in (("sata-ssd", (1.3, 0.9, 1.8)), ("sata-hdd", (0.5, 0.4, 0.6)))
        for switching in (False, True)
    ]
    lower = figure_3(points, SOURCE).axes[2:]
    assert [end for axes in lower for end in axes.get_ylim()] == pytest.approx([0, 1.89] * 2)


@pytest.mark.parametrize(
    ("block", "ratio"), [(4096, 0.50), (65536, 0.55), (1 << 20, 0.82), (4 << 20, 0.94), (16 << 20, 0.98)]
)
def test_the_derived_law_has_the_papers_ratios(block: int, ratio: float) -> None:
    found = derived_throughput(block, is_switching=True) / derived_throughput(block, is_switching=False)
    assert found == pytest.approx(ratio, abs=0.006)


def remap(*stages: tuple[str, int]) -> RemapSeen:
    seen = [Stage(name, at_us * 1000, "monotonic", 0) for name, at_us in stages]
    return RemapSeen("a/b", "comreset", "srv1", "p0", "d01", 2, seen)


def test_a_stage_nobody_saw_is_no_cut() -> None:
    cut = list(pieces(remap(("commanded", 0), ("executed", 50), ("online", 1000), ("verified", 1100))))
    assert [(piece.stage, piece.start_ns, piece.end_ns) for piece in cut] == [
        ("executed", 0, 50_000),
        ("online", 50_000, 1_000_000),
        ("verified", 1_000_000, 1_100_000),
    ]


def test_what_the_machine_did_between_two_stages_is_a_part_of_the_later_one() -> None:
    seen = remap(
        ("commanded", 0), ("received", 20), ("executed", 50), ("online", 90), ("answered", 95), ("verified", 99)
    )
    cut = [(piece.stage, piece.start_ns, piece.end_ns) for piece in pieces(seen)]
    assert cut == [("executed", 0, 50_000), ("online", 50_000, 90_000), ("verified", 90_000, 99_000)]


def test_the_breakdown_stacks_median_durations_to_the_whole() -> None:
    remaps = [
        remap(("commanded", 0), ("executed", 100), ("phy_up", 100 + phy), ("online", 1000), ("verified", 1100))
        for phy in (300, 400, 500)
    ]
    (axes,) = stage_breakdown(remaps, SOURCE).axes
    widths = [bar.get_width() for group in axes.containers if isinstance(group, BarContainer) for bar in group]
    assert widths == pytest.approx([100 / 11, 400 / 11, 500 / 11, 100 / 11])
    assert axes.get_xlabel() == "Share of the remap, %"
    assert "1.1 ms" in [text.get_text() for text in axes.texts]


def test_the_breakdown_has_a_kernels_stages_and_the_mount_where_they_are_known() -> None:
    known = (("link", 300), ("device", 500), ("online", 700), ("named", 800), ("verified", 900), ("mounted", 1000))
    seen = remap(("commanded", 0), *known)
    assert [piece.stage for piece in pieces(seen)] == [name for name, _ in known]
    figure = stage_breakdown([seen], SOURCE)
    (axes,) = figure.axes
    widths = [bar.get_width() for group in axes.containers if isinstance(group, BarContainer) for bar in group]
    assert widths == pytest.approx([30, 20, 20, 10, 10, 10])
    assert legend_of(figure) == [
        "kernel has the link",
        "kernel has the device",
        "driver brings the drive online",
        "udev names its node",
        "first verified read",
        "mount and first file",
    ]
    simulated = remap(("commanded", 0), ("executed", 100), ("online", 1000), ("verified", 1100))
    assert legend_of(stage_breakdown([simulated], SOURCE)) == [
        "switch executes the map",
        "driver brings the drive online",
        "first verified read",
    ]


def legend_of(figure: Figure) -> list[str]:
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def test_the_timeline_has_a_lane_for_every_port_and_a_box_for_every_piece(run: RunRecord) -> None:
    remaps = [entry for test in run.tests for entry in test.remaps]
    acts = [act for test in run.tests for act in test.acts]
    series = [entry for test in run.tests for entry in test.series]
    figure = remap_timeline(remaps, acts, series, run.started_ns, SOURCE)
    by_label = {axes.get_ylabel(): axes for axes in figure.axes}
    lanes = next(axes for axes in figure.axes if axes.get_title(loc="left").startswith("Remaps and I/O"))
    assert [tick.get_text() for tick in lanes.get_yticklabels()] == [
        f"srv{server}.p{port}" for server in range(1, 5) for port in range(2)
    ]
    boxes = [entry for entry in lanes.collections if isinstance(entry, PolyCollection)]
    assert [len(collection.get_paths()) for collection in boxes] == [20, 20, 20, 20]
    drops = [line for line in lanes.lines if line.get_marker() == "v"]
    assert [len(np.asarray(line.get_xdata())) for line in drops] == [4]
    assert {"throughput,\nMB/s", "worst latency,\nms"} <= by_label.keys()
    assert len(by_label["throughput,\nMB/s"].lines) == 2
    details = [axes.get_title(loc="left") for axes in figure.axes if "ms since" in axes.get_xlabel()]
    assert details == ["Vanilla", "No timeouts", "Warm port", "COMRESET"]
    assert "n = 20 remaps on 8 server ports." in said(figure)


def test_lanes_that_are_left_out_are_counted() -> None:
    remaps = [
        RemapSeen("a/b", "x", f"srv{port:02}", "p0", "d01", 2, remap(("commanded", 0), ("online", 9)).stages)
        for port in range(30)
    ]
    assert "24 server ports (6 more not shown)" in said(remap_timeline(remaps, [], [], 0, SOURCE))


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_the_same_data_give_the_same_bytes(run: RunRecord, kind: Literal["svg", "png"]) -> None:
    remaps = run.tests[0].remaps
    once, again = (encode(remap_timeline(remaps, [], [], run.started_ns, SOURCE), kind) for _ in range(2))
    assert once == again


def test_a_test_and_its_run_share_what_they_both_show(run: RunRecord) -> None:
    gallery = RunPlots(run)
    latency = gallery.plots_of([run.tests[0]])
    whole = gallery.plots_of(run.tests)
    assert [plot.name.split(" (")[0] for plot in latency] == [
        "Remap latency by driver stack",
        "Remap latency, whole distribution",
        "Stages of a remap",
        "Timeline of remaps and I/O",
    ]
    assert [plot for plot in whole if any(plot is other for other in latency)] == latency[:3]
    assert gallery.plots_of([run.tests[3]]) == []


@pytest.mark.parametrize(("remaps", "kind"), [(20_000, "svg"), (20_200, "png")])
def test_a_distribution_of_very_many_remaps_is_pixels(tmp_path: Path, remaps: int, kind: str) -> None:
    """As vectors it is a megabyte for every ten thousand, four times in a report."""
    example = ExampleRun(tmp_path)
    example.start("a/b", "measure")
    example.measure("a/b", "remap.latency", "s", [number * 1e-6 for number in range(1, remaps + 1)], {"stack": "own"})
    example.finish("a/b")
    run = read_run(example.close())
    assert [plot.kind for plot in RunPlots(run).plots_of(run.tests)] == ["svg", kind]


def test_two_tests_of_one_stack_are_told_apart(tmp_path: Path) -> None:
    example = ExampleRun(tmp_path)
    for test in ("a/one", "a/two"):
        example.start(test, "measure")
        example.measure(test, "remap.latency", "s", [0.001, 0.002], {"stack": "comreset"})
        example.finish(test)
    run = read_run(example.close())
    plots = RunPlots(run).plots_of(run.tests)
    assert [plot.kind for plot in plots] == ["svg", "svg"]
    assert b"a/two" in plots[0].data


@pytest.mark.parametrize(
    ("name", "labels"),
    [("remap.latency", {}), ("throughput.steady", {}), ("throughput.switched", {"block": "large"}), ("other.name", {})],
)
def test_a_measurement_without_its_label_has_no_plot(tmp_path: Path, name: str, labels: dict[str, str]) -> None:
    example = ExampleRun(tmp_path)
    example.start("a/b", "measure")
    example.measure("a/b", name, "s", [0.001, 0.002], labels)
    example.finish("a/b")
    run = read_run(example.close())
    assert RunPlots(run).plots_of(run.tests) == []


def test_remaps_of_which_only_the_command_was_seen_are_drawn_empty() -> None:
    lost = [remap(("commanded", 0))]
    assert bars(stage_breakdown(lost, SOURCE).axes[0]) == []
    assert "n = 1 remaps on 1 server ports" in said(remap_timeline(lost, [], [], 0, SOURCE))
