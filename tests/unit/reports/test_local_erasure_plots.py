"""Plots of local erasure coding, by what is on them."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from matplotlib.container import BarContainer
from matplotlib.figure import Figure

from rackloop_reports.plots import (
    BarPanel,
    Estimate,
    RedundancyStretch,
    TailCell,
    TailPoint,
    bar_sheet,
    encode,
    redundancy_curves,
    tail_latency_sheet,
)


def point(sectors: int, p99_s: float) -> TailPoint:
    return TailPoint(sectors, p99_s, Estimate(p99_s, p99_s - 0.1, p99_s + 0.1), Estimate(p99_s + 0.02, p99_s, None))


def sheet() -> Figure:
    cells = [
        TailCell(
            ph,
            retry_s,
            "(1014, 9)",
            [point(10_000, 1.0), point(100_000, 8.0)],
            [point(10_000, 0.5), point(100_000, 4.0)],
            {10_000: 0.501} if ph == 1e-3 else {},
        )
        for ph in (1e-3, 5e-3)
        for retry_s in (0.02, 0.04)
    ]
    return tail_latency_sheet(cells, "Where from.")


def test_a_tail_sheet_has_a_column_for_each_probability_and_a_row_for_each_retry_and_the_cuts() -> None:
    figure = sheet()
    axes = figure.get_axes()
    assert len(axes) == 2 * 3
    assert [one.get_ylabel() for one in axes[::2]] == [
        "p99 latency, s\nretries of 20 ms", "p99 latency, s\nretries of 40 ms", "p99 cut by the code",
    ]  # fmt: skip
    lines = [line.get_xydata().tolist() for line in axes[0].get_lines()]  # type: ignore[union-attr]
    assert [[10_000, 1.0], [100_000, 8.0]] in lines
    assert [[10_000, 0.5], [100_000, 4.0]] in lines
    cuts = [line.get_xydata().tolist() for line in axes[4].get_lines()]  # type: ignore[union-attr]
    assert [[10_000, 0.5], [100_000, 0.5]] in cuts
    assert [text.get_text() for text in axes[4].texts] == ["50.1%", "50.1%"]
    assert not axes[5].texts


def test_what_was_not_done_is_not_in_the_legend() -> None:
    bare = [TailPoint(10_000, 1.0)]
    figure = tail_latency_sheet([TailCell(1e-3, 0.02, "(1014, 9)", bare, bare, {})], "")
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "drive retries", "local erasure code", "cut, 20 ms",
    ]  # fmt: skip
    everything = [text.get_text() for text in sheet().legends[0].get_texts()]
    assert {"Monte Carlo", "drive model", "paper"} < set(everything)


def test_points_that_no_line_joins_are_seen() -> None:
    bare = [TailPoint(10_000, 1.0)]
    latencies, cuts = tail_latency_sheet([TailCell(1e-3, 0.02, "(1014, 9)", bare, bare, {})], "").get_axes()
    assert {line.get_marker() for line in (*latencies.get_lines(), *cuts.get_lines())} == {"_"}


def test_title_and_legend_have_room_on_a_narrow_sheet() -> None:
    points = [point(10_000, 1.0)]
    cells = [TailCell(1e-3, retry_s, "(1014, 9)", points, points, {10_000: 0.5}) for retry_s in (0.02, 0.04)]
    figure = tail_latency_sheet(cells, "")
    encode(figure, "png")
    for artist in (*figure.legends, *figure.texts):
        extent = artist.get_window_extent()
        assert figure.bbox.x0 <= extent.x0
        assert extent.x1 <= figure.bbox.x1


def test_a_long_name_of_bars_leaves_room_for_them() -> None:
    panel = BarPanel("255 sectors", ["short", "a/folder/" + "x" * 200 + "/sizes.txt"], {"ph 0.001": [0.1, 0.2]})
    figure = bar_sheet([panel], "Lost", "Lost", "", is_share=True)
    encode(figure, "png")
    axes = figure.get_axes()[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["short", "…" + "x" * 13 + "/sizes.txt"]
    assert axes.get_window_extent().height > 0.3 * figure.bbox.height


def test_bars_stand_side_by_side_in_their_groups() -> None:
    panel = BarPanel("255 sectors", ["sort", "kmeans"], {"ph 0.001": [0.1, 0.2], "ph 0.005": [0.3, 0.4]})
    axes = bar_sheet([panel], "Lost", "Lost", "Where from.", is_share=True).get_axes()[0]
    groups = [group for group in axes.containers if isinstance(group, BarContainer)]
    assert [[bar.get_height() for bar in group] for group in groups] == [[0.1, 0.2], [0.3, 0.4]]
    assert groups[0][0].get_x() < groups[1][0].get_x() < groups[0][1].get_x()


def test_no_series_is_left_out_for_want_of_a_colour() -> None:
    panel = BarPanel("255 sectors", ["sort"], {f"ph {number}": [0.1] for number in range(12)})
    figure = bar_sheet([panel], "Lost", "Lost", "", is_share=False)
    assert len(figure.get_axes()[0].containers) == len(figure.legends[0].get_texts()) == 12


def test_redundancy_is_drawn_at_every_length_and_rises_where_the_next_stretch_begins() -> None:
    stretches = [RedundancyStretch(16, 47, 4), RedundancyStretch(48, 48, 5), RedundancyStretch(49, 600, 7)]
    axes = redundancy_curves({"ph": stretches}, "Redundancy", "").get_axes()[0]
    x, y = np.asarray(axes.get_lines()[0].get_xydata()).T
    drawn = np.exp(np.interp(np.log(np.arange(16, 601)), np.log(x), np.log(y)))
    true = [s.m / (length - s.m) for s in stretches for length in range(s.shortest, s.longest + 1)]
    assert drawn == pytest.approx(true, rel=2e-3)
    assert {(47, 4 / 43), (48, 5 / 43), (49, 7 / 42)} <= set(zip(x, y, strict=True))


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_the_same_data_give_the_same_bytes(kind: Literal["svg", "png"]) -> None:
    def curves() -> Figure:
        return redundancy_curves({"ph": [RedundancyStretch(16, 40, 3)]}, "Redundancy", "Where from.")

    assert encode(sheet(), kind) == encode(sheet(), kind)
    assert encode(curves(), kind) == encode(curves(), kind)
