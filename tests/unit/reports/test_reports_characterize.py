"""What a characterization shows: plots by what is on them, the identity card and the health table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.collections import PolyCollection

from rackloop.measurement import Criteria, why_not_steady
from rackloop.record import DriveSeen, RoundsMeasured
from rackloop.seed import stream
from rackloop_reports.attachments import description_html
from rackloop_reports.drive_card import health_of
from rackloop_reports.plot_selection import RunPlots
from rackloop_reports.plots import (
    Cell,
    DemandPoint,
    Source,
    bandwidth_bars,
    demand_curve,
    iops_matrix,
    latency_matrix,
    measurement_window,
    steady_state_convergence,
    write_saturation,
)
from rackloop_reports.plots.characterize_select import characterize_drawings
from rackloop_reports.record import RunRecord, read_run
from tests.unit.reports.example_stream import ExampleRun

SOURCE = Source("characterize", "mock (simulated)", 7, is_simulated=True)
PTS = {"rounds": 5, "excursion": 0.2, "slope": 0.1}
SETTLING = [300.0, 200.0, 120.0, 100.0, 101.0, 99.0, 100.0, 100.0]


def rounds(
    values: list[float], *, name: str = "rounds.iops", unit: str = "IOPS", judged: bool = False, **labels: str
) -> RoundsMeasured:
    labels = {"block": "4 KiB", "mix": "0/100", "outstanding": "32", **labels}
    return RoundsMeasured("c/t::t", name, labels, unit, values, 60.0, PTS if judged else None)


def test_the_convergence_shades_the_window_of_what_decided() -> None:
    series = [rounds([value / 10 for value in SETTLING], block="64 KiB"), rounds(SETTLING, judged=True)]
    (axes,) = steady_state_convergence(series, SOURCE).axes
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["64 KiB", "4 KiB (decides)"]
    assert [list(np.asarray(line.get_ydata())) for line in axes.lines][1] == SETTLING
    (shade,) = axes.patches
    assert (shade.get_extents().x0, shade.get_extents().x1) == tuple(
        axes.transData.transform([[3.5, 100], [8.5, 100]])[:, 0]
    )


def test_depths_are_told_apart_by_what_is_outstanding() -> None:
    series = [rounds(SETTLING, outstanding=str(depth), judged=depth == 4) for depth in (1, 2, 4)]
    legend = steady_state_convergence(series, SOURCE).axes[0].get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["1", "2", "4 (decides)"]


def test_the_window_shows_average_band_and_line() -> None:
    (axes,) = measurement_window([rounds([100.0, 104.0, 100.0, 104.0, 102.0], judged=True)], SOURCE).axes
    words = [text.get_text() for text in axes.texts]
    assert words == ["steady, average 102 IOPS: excursion 3.9%, slope 1.6%"]
    (band,) = [entry for entry in axes.collections if isinstance(entry, PolyCollection)]
    heights = np.asarray(band.get_paths()[0].vertices)[:, 1]
    assert (min(heights), max(heights)) == pytest.approx((102 * 0.9, 102 * 1.1))
    fit = np.asarray(axes.lines[1].get_ydata(), dtype=float)
    assert list(fit) == pytest.approx(np.polyval(np.polyfit(range(5), [100, 104, 100, 104, 102], 1), [0, 4]))


def test_criteria_are_not_rounded() -> None:
    judged = replace(rounds(SETTLING), criteria={"rounds": 5, "excursion": 0.25, "slope": 0.125})
    figure = measurement_window([judged], SOURCE)
    assert any("average ± 12.5%" in text.get_text() for legend in figure.legends for text in legend.get_texts())
    told = " ".join(" ".join(text.get_text().split()) for text in figure.texts)
    assert "excursion at most 25% and slope at most 12.5% of the average" in told
    why = why_not_steady([100.0, 200.0, 300.0], Criteria(rounds=3, excursion=0.25, slope=0.125))
    assert "(at most 25%) and drift over 100.0% (at most 12.5%)" in why


def test_a_drive_that_never_was_steady_is_shown_as_that() -> None:
    unsteady = rounds([100.0, 300.0] * 6, judged=True)
    (axes,) = measurement_window([unsteady], SOURCE).axes
    assert axes.texts[0].get_text().startswith("not steady, average 220 IOPS: excursion 90.9%")
    assert not steady_state_convergence([unsteady], SOURCE).axes[0].patches
    (short,) = measurement_window([rounds([1.0, 2.0], judged=True)], SOURCE).axes
    assert list(np.asarray(short.lines[0].get_xdata())) == [1, 2]


def test_the_matrix_has_every_figure_and_a_curve_for_each_mix() -> None:
    cells = [Cell(block, reads, 1e6 * (reads + 1) / block) for block in (512, 4096) for reads in (100, 65, 0)]
    table, curves = iops_matrix(cells, SOURCE).axes
    assert [tick.get_text() for tick in table.get_xticklabels()] == ["100/0", "65/35", "0/100"]
    assert [tick.get_text() for tick in table.get_yticklabels()] == ["512 B", "4 KiB"]
    assert [text.get_text() for text in table.texts] == ["197k", "129k", "1.95k", "24.7k", "16.1k", "244"]
    assert len(curves.lines) == 3


def test_latency_has_a_table_for_each_statistic() -> None:
    panels = [(name, [Cell(4096, 100, value)]) for name, value in (("Average", 8.25e-5), ("Longest", 0.0125))]
    figure = latency_matrix(panels, SOURCE)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["Average, us", "Longest, us"]
    assert [axes.texts[0].get_text() for axes in figure.axes] == ["82.5", "12,500"]


def test_a_block_size_without_writes_has_no_bar_for_them() -> None:
    (axes,) = bandwidth_bars([Cell(1 << 17, 100, 5e8), Cell(1 << 20, 100, 6e8), Cell(1 << 20, 0, 3e8)], SOURCE).axes
    assert [text.get_text() for text in axes.texts] == ["500", "600", "300"]


def test_saturation_is_shown_over_time_and_over_what_was_written() -> None:
    iops = rounds([300.0] * 12 + [150.0] + [50.0] * 9, name="saturation.iops", judged=True)
    longest = rounds([0.001] * 22, name="saturation.longest", unit="s")
    over_time, over_bytes, stalls = write_saturation(iops, longest, SOURCE).axes
    assert np.asarray(over_time.lines[0].get_xdata())[-1] == 22
    assert over_time.get_xlabel() == "Time, min"
    total = (12 * 300 + 150 + 9 * 50) * 60 * 4096 / (1 << 30)
    assert np.asarray(over_bytes.lines[0].get_xdata())[-1] == pytest.approx(total)
    assert over_time.lines[-1].get_label() == "end of FOB (fresh out of box) state"
    assert set(np.asarray(over_time.lines[-1].get_xdata())) == {13}
    assert len(over_time.patches) == 2
    assert stalls.get_ylabel() == "Longest latency, ms"


def test_the_demand_curve_says_how_much_was_outstanding() -> None:
    points = [DemandPoint(depth, 1000.0 * depth, 1e-3, 2e-3) for depth in (4, 1, 2)]
    (axes,) = demand_curve(points, "4 KiB, reads/writes 0/100", SOURCE).axes
    assert [text.get_text() for text in axes.texts] == ["1", "2", "4"]
    assert list(np.asarray(axes.lines[1].get_ydata())) == pytest.approx([2.0] * 3)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("IOPS", "Latency, ms")


@pytest.mark.parametrize(("iops", "label"), [(800.0, "IOPS"), (90_000.0, "kIOPS"), (3_500_000.0, "MIOPS")])
def test_axes_have_units_that_fit(iops: float, label: str) -> None:
    fast = [rounds([iops] * 6, judged=True)]
    (window,) = measurement_window(fast, SOURCE).axes
    (convergence,) = steady_state_convergence(fast, SOURCE).axes
    _, curves = iops_matrix([Cell(4096, 0, iops), Cell(8192, 0, iops / 2)], SOURCE).axes
    over_time, over_bytes, _ = write_saturation(fast[0], None, SOURCE).axes
    assert {axes.get_ylabel() for axes in (window, convergence, curves, over_time, over_bytes)} == {label}
    for axes in (window, convergence, curves, over_time, over_bytes):
        assert max(axes.get_ylim()) < 10_000


def test_a_day_of_writing_is_shown_in_hours_and_tebibytes() -> None:
    day = RoundsMeasured(
        "c/t::t", "saturation.iops", {"block": "4 KiB", "mix": "0/100"}, "IOPS", [1e5] * 1440, 60.0, PTS
    )
    over_time, over_bytes, _ = write_saturation(day, None, SOURCE).axes
    assert (over_time.get_xlabel(), over_bytes.get_xlabel()) == ("Time, h", "Written, TiB")
    assert np.asarray(over_time.lines[0].get_xdata())[-1] == pytest.approx(24)


@pytest.fixture
def run(tmp_path: Path) -> RunRecord:
    """A run of all tests of the plan, and of one drive's life."""
    example = ExampleRun(tmp_path)
    noise = stream(7, "characterize")
    for name in ("iops", "latency", "throughput", "depth", "write_saturation", "life_cycle"):
        test = f"characterize/{name}::{name}"
        example.start(test, f"measure {name}")
        saturating = name == "write_saturation"
        seen = rounds(SETTLING, name="saturation.iops" if saturating else "rounds.iops", judged=True)
        example.write(RoundsMeasured(test, seen.name, seen.labels, "IOPS", seen.values, 60.0, PTS))
        labels = {"block": "4 KiB", "mix": "0/100"}
        samples = [noise.uniform(1, 2) for _ in range(5)]
        for measure in {
            "iops": ["steady.iops"],
            "latency": ["steady.latency", "steady.longest"],
            "throughput": ["steady.bandwidth"],
        }.get(name, []):
            example.measure(test, measure, "s", samples, labels)
        if name == "depth":
            for measure in ("demand.iops", "demand.latency"):
                example.measure(test, measure, "s", samples, labels | {"outstanding": "8"})
        if name == "life_cycle":
            example.write(
                DriveSeen(
                    test, "d01", "srv1", "p0", "RL SSD <1>", "RL000001", "1.0", "sata", 8 << 30, {"wwn": "5000c5"}, []
                )
            )
            for counter, before, after in (("media_errors", 0.0, 3.0), ("writes", 10.0, 1234567.0)):
                example.measure(test, "health.before", "1", [before], {"counter": counter})
                example.measure(test, "health.after", "1", [after], {"counter": counter})
            example.measure(test, "life.alarms", "1", [1.0])
        example.finish(test)
    return read_run(example.close())


def test_every_test_has_the_plots_that_its_measurements_allow(run: RunRecord) -> None:
    gallery = RunPlots(run)
    steady = ["Steady state measurement window", "Steady state convergence"]
    expected = {
        "iops": ["IOPS by block size and mix", *steady],
        "latency": ["Latency by block size and mix", *steady],
        "throughput": ["Sequential throughput", *steady],
        "depth": ["Demand curve", *steady],
        "write saturation": ["Write saturation"],
        "life cycle": steady,
    }
    for test, (about, names) in zip(run.tests, expected.items(), strict=True):
        plots = gallery.plots_of([test])
        assert [plot.name for plot in plots] == [f"{name}: {about} (simulated)" for name in names]
    names = [plot.name for plot in gallery.plots_of(run.tests)]
    assert len(names) == len(set(names)) == 15


def test_a_drives_life_begins_with_its_identity_card_and_ends_with_its_health(run: RunRecord) -> None:
    test = run.tests[-1]
    html = description_html(test, run, None)
    assert "<th>Model</th><td>RL SSD &lt;1&gt;</td>" in html
    assert "<th>Matches lab description</th><td>yes</td>" in html
    assert "<td>writes</td><td></td><td>10</td><td>1,234,567</td><td>+1,234,557</td><td>not judged</td>" in html
    assert "<b>media_errors went from 0 to 3: data could not be read back, or not be written</b>" in html
    assert "life.alarms" in html
    assert "health.before" not in html
    assert [change.difference for change in health_of(test.measurements)] == [3, 1234557]


def test_a_test_without_a_drive_has_no_card(run: RunRecord) -> None:
    html = description_html(run.tests[0], run, None)
    assert "Identity card" not in html
    assert "Health" not in html


def test_a_drive_that_was_not_steady_has_its_plots_and_they_say_so(tmp_path: Path) -> None:
    example = ExampleRun(tmp_path)
    labels = {"block": "4 KiB", "mix": "0/100"}
    for name, measures in {
        "iops": ["unsteady.iops"],
        "latency": ["unsteady.latency", "unsteady.longest"],
        "throughput": ["unsteady.bandwidth"],
        "depth": ["unsteady.iops", "unsteady.latency"],
    }.items():
        test = f"characterize/{name}::{name}"
        example.start(test, f"measure {name}")
        for measure in measures:
            more = {"outstanding": "8"} if name == "depth" else {}
            example.measure(test, measure, "s", [1.0, 1.5], labels | more)
        example.finish(test, "unknown", "product", "no steady state")
    run = read_run(example.close("unknown", 3))
    drawn = [[(name, draw()) for name, draw in characterize_drawings(test, SOURCE)] for test in run.tests]
    names = ["IOPS by block size and mix", "Latency by block size and mix", "Sequential throughput", "Demand curve"]
    assert [[name for name, _ in figures] for figures in drawn] == [[name] for name in names]
    for ((_, figure),) in drawn:
        titles = [axes.get_title(loc="left") for axes in figure.axes] + [figure.get_suptitle()]
        assert any("NOT STEADY" in title for title in titles)
