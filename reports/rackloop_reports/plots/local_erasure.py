"""Plots of local erasure coding: tail latency, redundancy and costs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, NullFormatter, PercentFormatter

from rackloop_reports.plots._style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    LINES,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    bar_look,
    blank,
    line_look,
    put_caption,
    put_legend_beside,
    styled,
    thousands,
)

_WITHOUT, _WITH = ORANGE, BLUE
_RETRY_COLORS = (GREEN, PURPLE, RED, SKY, GREY, BLACK)
_BAR_SHARE = 0.8
_POINTS_AN_OCTAVE = 24
# Of a group of bars; of a longer one the end tells more.
_LONGEST_NAME = 24
# What the title and the legend take.
_LEAST_WIDTH = 9.8


@dataclass(frozen=True)
class Estimate:
    """A quantile in seconds and its 95 % interval, of which a bound may be unknown."""

    value_s: float
    low_s: float | None
    high_s: float | None


@dataclass(frozen=True)
class TailPoint:
    """The 99th percentile of reading so many sectors: by equations, by trials, and as measured."""

    sectors: int
    model_s: float
    trials: Estimate | None = None
    measured: Estimate | None = None


@dataclass(frozen=True)
class TailCell:
    """Reads of sectors that fail with ``ph`` and take ``retry_s``, without a code and with ``code``.

    ``published`` are reductions by the number of sectors.
    """

    ph: float
    retry_s: float
    code: str
    without: Sequence[TailPoint]
    coded: Sequence[TailPoint]
    published: Mapping[int, float]


@dataclass(frozen=True)
class BarPanel:
    """Bars side by side for each of ``groups``, one of each of ``series``."""

    title: str
    groups: Sequence[str]
    series: Mapping[str, Sequence[float]]


@styled
def tail_latency_sheet(cells: Sequence[TailCell], caption: str) -> Figure:
    """A column for each failure probability; rows are latencies by retry time, then how much the code cuts them."""
    phs = sorted({cell.ph for cell in cells})
    retries = sorted({cell.retry_s for cell in cells})
    figure = blank(max(3.1 * len(phs) + 0.6, _LEAST_WIDTH), 2.7 * (len(retries) + 1) + 1.4)
    panels = figure.subplots(len(retries) + 1, len(phs), squeeze=False, sharex=True)
    by_place = {(cell.ph, cell.retry_s): cell for cell in cells}
    for column, ph in enumerate(phs):
        for row, retry_s in enumerate(retries):
            if cell := by_place.get((ph, retry_s)):
                _latencies(panels[row, column], cell)
                if row == 0:
                    panels[row, column].set_title(f"$p_h$ = {ph:g}, {cell.code}", fontsize=10)
        _reductions(panels[-1, column], [by_place[ph, retry_s] for retry_s in retries if (ph, retry_s) in by_place])
        panels[-1, column].set_xlabel("Consecutive sectors")
        panels[-1, column].xaxis.set_major_formatter(thousands)
    for row, retry_s in enumerate(retries):
        panels[row, 0].set_ylabel(f"p99 latency, s\nretries of {retry_s * 1e3:g} ms")
    panels[-1, 0].set_ylabel("p99 cut by the code")
    figure.suptitle("Tail latency of consecutive reads (simulated)", x=0.012, ha="left", fontweight="bold")
    put_caption(figure, caption, _tail_legend(cells))
    return figure


@dataclass(frozen=True)
class RedundancyStretch:
    """Codewords of ``shortest`` to ``longest`` sectors, all of which need ``m`` of redundancy."""

    shortest: int
    longest: int
    m: int


@styled
def redundancy_curves(lines: Mapping[str, Sequence[RedundancyStretch]], title: str, caption: str) -> Figure:
    """Redundancy over user sectors by codeword length, a line for each failure probability.

    Every length is on its line: m / k falls within a stretch and rises where the next begins, one sector on.
    """
    figure = blank(7.2, 4.8)
    axes = figure.subplots()
    for place, (label, stretches) in enumerate(lines.items()):
        points = [point for stretch in stretches for point in _ratios(stretch)]
        axes.plot([x for x, _ in points], [y for _, y in points], **line_look(place), linewidth=1.2, label=label)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter(thousands)
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("Codeword length, sectors of 4 KiB")
    axes.set_ylabel("Redundancy, m / k")
    put_legend_beside(axes)
    figure.suptitle(title, x=0.012, ha="left", fontweight="bold")
    put_caption(figure, caption)
    return figure


@styled
def bar_sheet(panels: Sequence[BarPanel], title: str, y_label: str, caption: str, *, is_share: bool) -> Figure:
    """Panels of bars side by side, with one legend and one scale; values are ratios, shown as shares or multiples."""
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    figure = blank(5.4 * columns + (2.0 if columns == 1 else 0), 3.0 * rows + 1.5)
    drawn = figure.subplots(rows, columns, squeeze=False, sharey=True)
    for axes in drawn.flat[len(panels) :]:
        axes.set_visible(False)
    for axes, panel in zip(drawn.flat, panels, strict=False):
        _bars(axes, panel)
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0) if is_share else _multiple)
    for row in range(rows):
        drawn[row, 0].set_ylabel(y_label)
    figure.suptitle(title, x=0.012, ha="left", fontweight="bold")
    names = list(dict.fromkeys(name for panel in panels for name in panel.series))
    put_caption(figure, caption, [Patch(**bar_look(number), label=name) for number, name in enumerate(names)])
    return figure


def _ratios(stretch: RedundancyStretch) -> list[tuple[int, float]]:
    """Both ends of a stretch, and so many lengths between that straight lines from one to the next are not seen."""
    octaves = math.log2(stretch.longest / stretch.shortest)
    count = max(1, math.ceil(octaves * _POINTS_AN_OCTAVE))
    lengths = {round(stretch.shortest * 2 ** (octaves * number / count)) for number in range(count + 1)}
    return [(length, stretch.m / (length - stretch.m)) for length in sorted(lengths)]


def _latencies(axes: Axes, cell: TailCell) -> None:
    for color, points in ((_WITHOUT, cell.without), (_WITH, cell.coded)):
        # A line needs two points to be seen.
        alone = "_" if len(points) == 1 else ""
        sectors, model = [point.sectors for point in points], [point.model_s for point in points]
        dashes = LINES[0] if color == _WITHOUT else LINES[1]
        axes.plot(sectors, model, color=color, linestyle=dashes, linewidth=1.4, marker=alone, markersize=22)
        _estimates(axes, [(point.sectors, point.trials) for point in points], color, "o", filled=False)
        _estimates(axes, [(point.sectors, point.measured) for point in points], color, "x", filled=True)
    axes.set_ylim(bottom=0)


def _estimates(
    axes: Axes, found: Sequence[tuple[int, Estimate | None]], color: str, marker: str, *, filled: bool
) -> None:
    for sectors, estimate in found:
        if estimate is None:
            continue
        low = estimate.value_s if estimate.low_s is None else estimate.low_s
        high = estimate.value_s if estimate.high_s is None else estimate.high_s
        axes.plot([sectors, sectors], [low, high], color=color, linewidth=0.9)
        axes.plot(
            [sectors],
            [estimate.value_s],
            marker=marker,
            color=BLACK if marker == "x" else color,
            markersize=6 if marker == "x" else 5,
            markerfacecolor=color if filled else "white",
            linestyle="none",
            zorder=4 if marker == "x" else 3,
        )


def _reductions(axes: Axes, cells: Sequence[TailCell]) -> None:
    for number, (color, cell) in enumerate(zip(cycle(_RETRY_COLORS), cells, strict=False)):
        # What is cut by more has its labels above, so that they are clear of what is cut by less.
        beside = (5, 7) if number else (5, -17)
        pairs = list(zip(cell.without, cell.coded, strict=True))
        axes.plot(
            [plain.sectors for plain, _ in pairs],
            [1 - coded.model_s / plain.model_s for plain, coded in pairs],
            color=color,
            linewidth=1.4,
            linestyle=LINES[number % len(LINES)],
            marker="_" if len(pairs) == 1 else "",
            markersize=22,
        )
        for plain, coded in pairs:
            if plain.measured and coded.measured:
                cut = 1 - coded.measured.value_s / plain.measured.value_s
                axes.plot([plain.sectors], [cut], marker="x", color=BLACK, markersize=6, linestyle="none", zorder=4)
        for sectors, reduction in cell.published.items():
            axes.add_line(_diamond([sectors], [reduction]))
            axes.annotate(
                f"{reduction:.1%}", (sectors, reduction), beside, textcoords="offset points", fontsize=8, color=BLACK
            )
    axes.set_ylim(0, 1)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))


def _tail_legend(cells: Sequence[TailCell]) -> list[Line2D]:
    points = [point for cell in cells for point in (*cell.without, *cell.coded)]
    legend = [
        Line2D([], [], color=_WITHOUT, label="drive retries"),
        Line2D([], [], color=_WITH, linestyle=LINES[1], label="local erasure code"),
    ]
    if any(point.trials for point in points):
        legend.append(_marker("o", GREY, "white", "Monte Carlo"))
    if any(point.measured for point in points):
        legend.append(_marker("x", BLACK, BLACK, "drive model"))
    for number, retry_s in enumerate(sorted({cell.retry_s for cell in cells})):
        color, dashes = _RETRY_COLORS[number % len(_RETRY_COLORS)], LINES[number % len(LINES)]
        legend.append(Line2D([], [], color=color, linestyle=dashes, label=f"cut, {retry_s * 1e3:g} ms"))
    if any(cell.published for cell in cells):
        published = _diamond([], [])
        published.set_label("paper")
        legend.append(published)
    return legend


def _marker(marker: str, color: str, face: str, label: str) -> Line2D:
    return Line2D([], [], marker=marker, color=color, markerfacecolor=face, linestyle="none", label=label)


def _diamond(x: Sequence[float], y: Sequence[float]) -> Line2D:
    return Line2D(x, y, marker="D", markersize=6, color="white", markeredgecolor=BLACK, linestyle="none", zorder=5)


def _bars(axes: Axes, panel: BarPanel) -> None:
    width = _BAR_SHARE / len(panel.series)
    for number, values in enumerate(panel.series.values()):
        offset = (number + 0.5) * width - _BAR_SHARE / 2
        axes.bar([place + offset for place in range(len(panel.groups))], values, width * 0.94, **bar_look(number))
    names = [name if len(name) <= _LONGEST_NAME else f"…{name[1 - _LONGEST_NAME :]}" for name in panel.groups]
    axes.set_xticks(range(len(names)), names)
    if max(map(len, names)) * len(names) > 50:
        axes.tick_params(axis="x", labelrotation=35)
    axes.grid(visible=False, axis="x")
    axes.set_title(panel.title, fontsize=10)


@FuncFormatter
def _multiple(value: float, _position: int | None) -> str:
    """``2.5x``."""
    return f"{value:g}x"
