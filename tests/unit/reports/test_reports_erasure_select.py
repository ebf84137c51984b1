"""What the report shows of erasure recovery: which plots a test has, and what is on them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import same_color

from rackloop.measurement import Distribution
from rackloop_reports.plot_selection import RunPlots
from rackloop_reports.plots import (
    GroupedBar,
    RebuildBar,
    RecoveryCell,
    Source,
    StateLatency,
    TailCurve,
    codec_throughput,
    degraded_reads,
    rebuild_times,
    recovery_matrix,
    tail_curves,
)
from rackloop_reports.plots._style import GREEN, ORANGE, RED
from rackloop_reports.record import RunRecord, read_run
from tests.unit.reports.example_stream import ExampleRun

SOURCE = Source("erasure", "erasure (simulated)", 7, is_simulated=True)


def test_a_cell_is_green_only_where_every_answer_was_as_it_must_be() -> None:
    cells = [
        RecoveryCell("1 erased", "before", 9, 9),
        RecoveryCell("1 erased", "during", 9, 8, wrong=1),
        RecoveryCell("2 erased", "before", 1000, 999, unknown=1),
        RecoveryCell("2 erased", "during", 9, 8),
    ]
    (axes,) = recovery_matrix(cells, SOURCE).axes
    colors = [GREEN, RED, ORANGE, ORANGE]
    assert all(same_color(patch.get_facecolor()[:3], color) for patch, color in zip(axes.patches, colors, strict=True))
    assert [text.get_text() for text in axes.texts] == [
        "9 of 9",
        "8 of 9\n1 wrong",
        "999 of 1,000\n1 unknown",
        "8 of 9",
    ]
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["1 erased", "2 erased"]


def test_reads_have_a_curve_for_each_state_with_its_p99_where_they_carry_one() -> None:
    few, enough = (Distribution.of([0.001] * (n - 4) + [0.5] * 4) for n in (367, 368))
    figure = degraded_reads([StateLatency("healthy", few), StateLatency("degraded", enough)], SOURCE)
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "healthy: median 1 ms, longest 500 ms, n = 367",
        "degraded: median 1 ms, p99 500 ms, n = 368",
    ]


def test_a_rebuild_without_tenants_has_no_panel_for_them() -> None:
    assert len(rebuild_times([RebuildBar("moving drives", 0.2)], SOURCE).axes) == 1
    seconds, waits = rebuild_times(
        [RebuildBar("moving drives", 0.2), RebuildBar("copying", 4, Distribution.of([0.03] * 366 + [0.5] * 4))], SOURCE
    ).axes
    assert [text.get_text() for text in seconds.texts] == ["0.2 s", "4 s"]
    assert [text.get_text() for text in waits.texts] == ["no reads", "30, p99 500"]


def test_tails_have_a_panel_for_each_drive_and_a_line_for_each_reading() -> None:
    points = [(0.002, None, 2.0, None), (0.001, 0.9, 1.0, 1.2)]
    curves = [TailCurve(drive, reading, points) for drive in ("20 ms", "40 ms") for reading in ("retries", "coded")]
    panels = tail_curves([*curves, TailCurve("40 ms", "retries", [(0.003, None, 9.0, None)])], SOURCE).axes
    assert all(axes.get_ylim()[0] == 0 and axes.get_ylim()[1] > 9 for axes in panels)
    assert [axes.get_title(loc="left") for axes in panels] == ["20 ms", "40 ms"]
    line = panels[0].lines[0]
    assert (list(np.asarray(line.get_xdata())), list(np.asarray(line.get_ydata()))) == ([0.001, 0.002], [1.0, 2.0])
    assert [tick.get_text() for tick in panels[1].get_xticklabels()] == ["0.001", "0.002", "0.003"]


def test_curves_with_points_at_the_same_place_are_drawn_beside_each_other() -> None:
    points = [(0.001, 0.9, 1.0, 1.2)]
    (axes,) = tail_curves([TailCurve("20 ms", name, points) for name in ("retried", "decoded")], SOURCE).axes
    first, second = (np.asarray(line.get_xdata())[0] for line in axes.lines if line.get_linestyle() != "None")
    assert first < second < 0.0011


def test_a_code_that_was_not_timed_decoding_has_no_bar_for_it() -> None:
    bars = [
        GroupedBar("(4, 2)", "encode", 1),
        GroupedBar("(4, 2)", "decode, 1 erased", 2),
        GroupedBar("(9, 3)", "encode", 3),
    ]
    (axes,) = codec_throughput(bars, SOURCE).axes
    assert [text.get_text() for text in axes.texts] == ["1", "3", "2"]


@pytest.fixture
def run(tmp_path: Path) -> RunRecord:
    """A run with a test for each plot, one for none, and one whose measurements lack the labels."""
    example = ExampleRun(tmp_path)
    found: dict[str, list[tuple[str, str, list[float], dict[str, str]]]] = {
        "correctness": [
            (
                f"recovery.{name}",
                "1",
                [count],
                {"system": "local", "units": "data", "phase": "during", "damage": damage, "erased": erased},
            )
            for (damage, erased), counts in {
                ("erased", "2"): {"tried": 12, "right": 5, "degraded_right": 6, "wrong": 1},
                ("beyond m", "3"): {"tried": 9, "right": 2, "loud": 7},
                ("corrupted", "1"): {"tried": 9, "right": 2, "loud": 7},
                # More than can be recovered: withheld as it must be.
                ("corrupted", "3"): {"tried": 9, "right": 2, "loud": 7},
            }.items()
            for name, count in counts.items()
        ],
        "degraded": [("degraded.read_latency", "s", [0.1, 0.2], {"when": "degraded", "policy": "move"})],
        "rebuild": [
            ("rebuild.time", "s", [3.0], {"policy": "move"}),
            ("rebuild.time", "s", [4.0], {"policy": "rebuild"}),
            ("rebuild.tenant_latency", "s", [0.25], {"policy": "move", "when": "rebuilding", "request": "read"}),
            ("rebuild.tenant_latency", "s", [0.9], {"policy": "move", "when": "rebuilding", "request": "write"}),
            ("rebuild.tenant_latency", "s", [0.1], {"policy": "move", "when": "healthy", "request": "read"}),
        ],
        "tail": [
            ("tail.latency", "s", [1.0] * 6, {"sectors": "10000", "ph": ph, "retry_ms": "20.8", "read": "decoded"})
            for ph in ("0.001", "0.005")
        ],
        "codec": [("codec.throughput", "B/s", [1e9], {"code": "(4, 2)", "act": "encode"})],
        "update": [("update.latency", "s", [0.05], {"code": "(4, 2)", "updated": "3", "method": "direct"})],
        "none": [("recovery.wrong", "1", [0], {"damage": "none", "erased": "0", "units": "none", "phase": "before"})],
        "unlabelled": [("tail.latency", "s", [1.0], {"sectors": "10000"})],
    }
    for name, measurements in found.items():
        test = f"erasure/{name}::{name}"
        example.start(test, f"see {name}")
        for measure, unit, samples, labels in measurements:
            example.measure(test, measure, unit, samples, labels)
        example.finish(test)
    return read_run(example.close())


@pytest.mark.parametrize(
    ("name", "value", "labels"),
    [
        ("remap.latency", -1.0, {"stack": "own"}),
        ("tail.latency", 1.0, {"sectors": "many", "ph": "0.1", "retry_ms": "few", "read": "own"}),
        ("tail.latency", 1.0, {"sectors": "10", "ph": "often", "retry_ms": "20", "read": "own"}),
        ("tail.latency", 1.0, {"sectors": "10", "ph": "inf", "retry_ms": "20", "read": "own"}),
        ("recovery.tried", 1.0, {"damage": "erased", "erased": "one", "units": "data", "phase": "before"}),
    ],
)
def test_labels_and_values_of_a_test_of_ones_own_cost_no_report(
    tmp_path: Path, name: str, value: float, labels: dict[str, str]
) -> None:
    example = ExampleRun(tmp_path)
    example.start("own/t::t", "see")
    example.measure("own/t::t", name, "s", [value] * 6, labels)
    example.finish("own/t::t")
    run = read_run(example.close())
    assert len(RunPlots(run).plots_of(run.tests)) <= 1


def test_every_test_has_the_plots_that_its_measurements_allow(run: RunRecord) -> None:
    gallery = RunPlots(run)
    names = [[plot.name for plot in gallery.plots_of([test])] for test in run.tests]
    assert names == [
        ["Recovery correctness: correctness (simulated)"],
        ["Reads during degradation: degraded (simulated)"],
        ["Rebuild: rebuild (simulated)"],
        ["Tail latency: tail (simulated)"],
        ["Codec throughput: codec (simulated)"],
        ["Updates of part of a codeword: update (simulated)"],
        [],
        [],
    ]
    assert len(gallery.plots_of(run.tests)) == 6


def test_reads_are_told_from_others_by_when_and_how(run: RunRecord) -> None:
    from rackloop_reports.plots.erasure_select import erasure_drawings

    ((_, draw),) = erasure_drawings(run.tests[1], SOURCE)
    (legend,) = draw().legends
    assert legend.get_texts()[0].get_text() == "degraded, policy move: median 100 ms, longest 200 ms, n = 2"


def test_the_matrix_is_put_together_from_its_counts(run: RunRecord) -> None:
    from rackloop_reports.plots.erasure_select import erasure_drawings

    ((_, draw),) = erasure_drawings(run.tests[0], SOURCE)
    (axes,) = draw().axes
    assert [text.get_text() for text in axes.texts] == ["11 of 12\n1 wrong", "9 of 9", "2 of 9", "9 of 9"]
    assert [tick.get_text() for tick in axes.get_yticklabels()] == [
        "local, 2 erased",
        "local, 3 erased, loss beyond m",
        "local, 1 silently corrupted",
        "local, 3 silently corrupted",
    ]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["during repair,\ndata"]


def test_a_rebuild_is_told_from_another_by_its_further_labels(run: RunRecord) -> None:
    from rackloop_reports.plots.erasure_select import erasure_drawings

    ((_, draw),) = erasure_drawings(run.tests[2], SOURCE)
    seconds, waits = draw().axes
    assert [tick.get_text() for tick in seconds.get_yticklabels()] == ["policy move", "policy rebuild"]
    assert [text.get_text() for text in waits.texts] == ["250, 1 read", "no reads"]


def test_what_further_labels_tell_apart_is_not_drawn_over_each_other(tmp_path: Path) -> None:
    """A cell with wrong data would be below one that is right, and the bar of one drive below that of another."""
    from rackloop_reports.plots.erasure_select import erasure_drawings

    example = ExampleRun(tmp_path)
    example.start("own/t::t", "see")
    damage = {"damage": "erased", "erased": "1", "units": "data", "phase": "before"}
    for drive, wrong in (("d01", 1.0), ("d02", 0.0)):
        further = {"drive": drive}
        for name, value in (("tried", 2.0), ("right", 2.0 - wrong), ("wrong", wrong)):
            example.measure("own/t::t", f"recovery.{name}", "1", [value], {**damage, **further})
        tail = {"sectors": "10", "ph": f"0.{wrong:g}5", "retry_ms": "20", "read": "decoded"}
        example.measure("own/t::t", "tail.latency", "s", [1.0], {**tail, **further})
        example.measure("own/t::t", "codec.throughput", "B/s", [1e9], {"code": "c", "act": "encode", **further})
        update = {"code": "c", "updated": "3", "method": "direct"}
        example.measure("own/t::t", "update.latency", "s", [0.05], {**update, **further})
    example.finish("own/t::t")
    (test,) = read_run(example.close()).tests
    drawn = {name: draw() for name, draw in erasure_drawings(test, SOURCE)}
    rows = [tick.get_text() for tick in drawn["Recovery correctness"].axes[0].get_yticklabels()]
    assert rows == ["1 erased, drive d01", "1 erased, drive d02"]
    (curves,) = drawn["Tail latency"].legends
    assert [text.get_text() for text in curves.get_texts()] == ["decoded"]
    for plot, name in (("Codec throughput", "encode"), ("Updates of part of a codeword", "direct")):
        legend = drawn[plot].axes[0].get_legend()
        assert legend is not None
        assert [text.get_text() for text in legend.get_texts()] == [f"{name}, drive d01", f"{name}, drive d02"]
