"""What plots have in common: limits that are drawn, lines told apart without colours, units that fit."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from rackloop.measurement import Distribution
from rackloop.record import IoSeries
from rackloop_reports.plot_drawing import Drawing, encoded
from rackloop_reports.plot_selection import RunPlots
from rackloop_reports.plots import LimitLine, Source, StackLatency, encode, figure_2, latency_ecdf, undrawn
from rackloop_reports.plots._io_strips import draw_io, io_strips
from rackloop_reports.plots._style import LINES, RED, bar_look, fitting, label_time, line_look, thousands
from rackloop_reports.plots.remaps import remap_timeline
from rackloop_reports.record import read_run
from tests.unit.reports.example_stream import smoke_run

SOURCE = Source("smoke", "mock (simulated)", 7, is_simulated=True)


def test_neighbouring_lines_differ_in_colour_and_dashes_and_32_in_one_of_them() -> None:
    looks = [line_look(place) for place in range(32)]
    assert len({str(look) for look in looks}) == 32
    for one, next_ in itertools.pairwise(looks):
        assert one["color"] != next_["color"]
        assert one["linestyle"] != next_["linestyle"]
    assert {str(look["linestyle"]) for look in looks} == {str(dashes) for dashes in LINES}


def test_labels_of_large_counts_have_three_digits() -> None:
    values = [0, 0.5, 4096, -16384, 10_000, 16384, 200_000, 999_999, 1 << 20, 1.5e6]
    assert thousands.format_ticks(values) == [
        "0", "0.5", "4096", "-16.4k", "10k", "16.4k", "200k", "1M", "1.05M", "1.5M",
    ]  # fmt: skip


def test_neighbouring_bars_differ_in_colour_and_hatch_and_64_in_one_of_them() -> None:
    looks = [bar_look(place) for place in range(64)]
    assert len({str(look) for look in looks}) == 64
    for one, next_ in itertools.pairwise(looks):
        assert one["facecolor"] != next_["facecolor"]
        assert one["hatch"] != next_["hatch"]


@pytest.mark.parametrize(
    ("longest_s", "label", "ticks"),
    [
        (300, "Time, s", {"0", "100", "300"}),
        (3600, "Time, min", {"0", "10", "60"}),
        (86_400, "Time, h", {"0", "5", "20"}),
    ],
)
def test_long_times_are_in_minutes_and_hours(longest_s: float, label: str, ticks: set[str]) -> None:
    axes = Figure().subplots()
    axes.plot([0, longest_s], [0, 1])
    label_time(axes, "Time")
    assert axes.get_xlabel() == label
    shown = axes.xaxis.get_major_formatter().format_ticks(list(axes.get_xticks()))
    assert ticks <= set(shown)


@pytest.mark.parametrize(
    ("unit", "largest", "name"),
    [
        ("s", 2.0, "s"),
        ("s", 0.2, "ms"),
        ("s", 2e-5, "us"),
        ("B/s", 2e9, "GB/s"),
        ("B/s", 9e3, "kB/s"),
        ("IOPS", 2e6, "MIOPS"),
    ],
)
def test_units_fit_what_is_shown(unit: str, largest: float, name: str) -> None:
    assert fitting(unit, largest)[1] == name


def test_a_limit_is_drawn_at_its_value() -> None:
    entry = StackLatency("comreset", Distribution.of([0.001] * 50), limits=[LimitLine("p99", 0.005)])
    (bars,) = figure_2([entry], SOURCE).axes
    drawn = [np.asarray(path.vertices) for collection in bars.collections for path in collection.get_paths()]
    assert any(np.allclose(vertices[:, 1], 5.0) for vertices in drawn if len(vertices) == 2)
    (ecdf,) = [axes for axes in latency_ecdf([entry], SOURCE).axes if axes.get_visible()]
    (line,) = [line for line in ecdf.lines if line.get_color() == RED]
    assert set(np.asarray(line.get_xdata())) == {5.0}


def test_the_limits_of_a_run_reach_its_plots(tmp_path: Path) -> None:
    run = read_run(smoke_run(tmp_path, remaps=20))
    latency, *_ = RunPlots(run).plots_of(run.tests)
    assert f"stroke: {RED.lower()}; stroke-width: 2".encode() in latency.data


def test_a_legend_stands_beside_what_it_names() -> None:
    figure = Figure()
    axes = figure.subplots()
    draw_io([axes], io_strips([IoSeries("a/b", "job", "throughput", "B/s", [(0, 2e9), (10**9, 1e9)])]), 0)
    legend = axes.get_legend()
    assert legend is not None
    assert legend.get_bbox_to_anchor().transformed(axes.transAxes.inverted()).x0 > 1
    assert axes.get_ylabel() == "throughput,\nGB/s"


def series(job: str, *points: tuple[int, float], test: str = "a/b", quantity: str = "throughput") -> IoSeries:
    return IoSeries(test, job, quantity, "B/s", [(t_s * 10**9, value) for t_s, value in points])


def test_the_series_of_one_job_are_one_line_with_a_gap_between_them() -> None:
    (strip,) = io_strips([series("srv1 write", (5, 1e6), (6, 1e6)), series("srv1 write", (0, 2e6), (1, 2e6))])
    axes = Figure().subplots()
    draw_io([axes], [strip], 0)
    (line,) = axes.lines
    assert line.get_label() == "srv1 write"
    assert list(np.asarray(line.get_xdata())) == [0, 1, 1, 5, 6]
    assert np.isnan(np.asarray(line.get_ydata(), dtype=float)).tolist() == [False, False, True, False, False]


def test_no_strip_has_more_lines_than_can_be_followed_and_those_of_a_quantity_share_their_axes() -> None:
    many = [
        series(f"srv{server} {way}", (0, server * 1e6), (server, 0))
        for way in ("read", "write")
        for server in range(1, 5)
    ]
    strips = io_strips([*many, series("silent", quantity="request rate")])
    assert [list(strip.lines) for strip in strips] == [
        ["srv1 read", "srv1 write", "srv2 read", "srv2 write"],
        ["srv3 read", "srv3 write", "srv4 read", "srv4 write"],
    ]
    panels = list(Figure().subplots(2))
    draw_io(panels, strips, 0)
    assert panels[0].get_ylim() == panels[1].get_ylim()
    assert panels[0].get_xlim() == panels[1].get_xlim()
    looks = [str((line.get_color(), line.get_linestyle())) for line in panels[1].lines]
    assert len(set(looks)) == 4


def test_in_a_run_the_io_of_each_test_has_strips_and_times_of_its_own() -> None:
    tests = [series("job", (at_s, 1e6), (at_s + 2, 1e6), test=test) for test, at_s in (("a/b::c", 10), ("d/e::f", 90))]
    stall = LimitLine("max", 3e5, "B/s", test="d/e::f")
    lanes, first, second = remap_timeline([], [], tests, 0, SOURCE, [stall]).axes
    assert lanes.get_title("left").startswith("Remaps and I/O")
    assert [first.get_title("left"), second.get_title("left")] == ["a/b", "d/e"]
    assert [round(limit) for limit in (*first.get_xlim(), *second.get_xlim())] == [10, 12, 90, 92]
    assert [len(axes.lines) for axes in (first, second)] == [1, 2]


def test_lanes_without_a_remap_or_a_mark_are_left_out() -> None:
    (strip,) = remap_timeline([], [], [series("job", (0, 1e6), (1, 1e6))], 0, SOURCE).axes
    assert strip.get_ylabel() == "throughput,\nMB/s"


def test_strips_of_a_run_that_are_too_many_are_counted() -> None:
    tests = [series("job", (at_s, 1e6), (at_s + 1, 1e6), test=f"a/{at_s}") for at_s in range(14)]
    figure = remap_timeline([], [], tests, 0, SOURCE)
    assert len(figure.axes) == 13
    assert "2 strips of I/O not shown" in " ".join(text.get_text().replace("\n", " ") for text in figure.texts)


def test_a_timeline_without_remaps_does_not_count_none_of_them() -> None:
    reads = [IoSeries("a/b", "job", "longest read", "s", [(0, 0.001), (10**9, 0.002)])]
    figure = remap_timeline([], [], reads, 0, SOURCE)
    said = " ".join(text.get_text() for text in figure.texts)
    assert "0 map changes, 0 PHY drops; no remap of a measured port among them." in " ".join(said.split())
    assert "n = 0" not in said


@pytest.mark.parametrize("name", ["$5_or_$6", "\udcff", "a$b$", r"$\frac$", "new\nline"])
def test_names_are_drawn_as_they_are(name: str) -> None:
    stacks = [StackLatency(name, Distribution.of([0.001, 0.002]))]
    for kind in ("svg", "png"):
        figures = [draw(stacks, SOURCE) for draw in (figure_2, latency_ecdf)]
        assert all(encode(figure, kind) for figure in figures)
        title, (tick,) = figures[1].axes[0].get_title(loc="left"), figures[0].axes[0].get_xticklabels()
        shown = name.encode(errors="backslashreplace").decode()
        assert (title, tick.get_text(), tick.get_parse_math()) == (shown, shown, False)


def test_powers_of_ten_at_ticks_and_the_formula_of_a_title_stay_formulas() -> None:
    figure = Figure()
    axes = figure.subplots()
    axes.set_yscale("log")
    axes.plot([1, 2], [1, 1e6])
    title = axes.set_title("$p_h$ = 0.01")
    encode(figure, "svg")
    assert all(label.get_parse_math() for label in (*axes.get_yticklabels(), title))


@pytest.mark.parametrize("plots", [1, 5])
def test_a_plot_that_cannot_be_drawn_costs_no_other(plots: int) -> None:
    """Also where they are drawn side by side."""

    def broken() -> Figure:
        raise ValueError("no such axis")

    empty: Drawing = (Figure, "svg")
    drawings: list[Drawing] = [(broken, "svg"), *[empty] * plots]
    first, *others = encoded(drawings, undrawn)
    assert len(others) == plots
    assert b"could not be drawn: ValueError: no such axis." in re.sub(rb"<!--|-->|\s+", b" ", first)
    with pytest.raises(ValueError, match="no such axis"):
        encoded(drawings)


@pytest.mark.parametrize(("unit", "name"), [("s", "drift,\ns"), ("1", "drift")])
def test_values_below_0_are_in_view_and_a_count_has_no_unit(unit: str, name: str) -> None:
    axes = Figure().subplots()
    draw_io([axes], io_strips([IoSeries("a/b", "job", "drift", unit, [(0, -3.0), (10**9, 2.0)])]), 0)
    assert axes.get_ylim()[0] < -3
    assert axes.get_ylabel() == name
