"""What plots have in common: limits that are drawn, lines told apart without colours, units that fit."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from rackloop.measurement import Distribution
from rackloop.record import IoSeries
from rackloop_reports.plot_selection import RunPlots
from rackloop_reports.plots import LimitLine, Source, StackLatency, figure_2, latency_ecdf
from rackloop_reports.plots._style import LINES, RED, bar_look, fitting, label_time, line_look
from rackloop_reports.plots.remaps import io_panels, remap_timeline
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
    io_panels([axes], [IoSeries("a/b", "job", "throughput", "B/s", [(0, 2e9), (10**9, 1e9)])], 0)
    legend = axes.get_legend()
    assert legend is not None
    assert legend.get_bbox_to_anchor().transformed(axes.transAxes.inverted()).x0 > 1
    assert axes.get_ylabel() == "throughput,\nGB/s"


def test_a_timeline_without_remaps_does_not_count_none_of_them() -> None:
    series = [IoSeries("a/b", "job", "longest read", "s", [(0, 0.001), (10**9, 0.002)])]
    figure = remap_timeline([], [], series, 0, SOURCE)
    said = " ".join(text.get_text() for text in figure.texts)
    assert "0 map changes, 0 PHY drops; no remap of a measured port among them." in " ".join(said.split())
    assert "n = 0" not in said
