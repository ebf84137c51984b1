"""Plots of tenants on a drive model, as the papers on schedulers draw them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from rackloop_reports.plots._style import (
    BLACK,
    GREY,
    bar_look,
    blank,
    fitting,
    line_look,
    make_y_logarithmic,
    put_caption,
    styled,
    thousands,
)

_BAR = 0.8
_COLUMNS = 2
_MARKERS = "Dsv^"
Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class TenantBars:
    """Bars side by side for each of ``groups``, one of each of ``series``, and a line across at their ``ideal``."""

    title: str
    groups: Sequence[str]
    series: Mapping[str, Sequence[float]]
    ideal: float | None = None


@dataclass(frozen=True)
class TailRange:
    """Quantiles of latency in seconds, by name, for each of some ``schedulers``."""

    title: str
    schedulers: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class LinePanel:
    """Lines by name, in SI base units; ``unit`` is that of the values, and ``published`` marks points of a source."""

    title: str
    x_label: str
    y_label: str
    lines: Mapping[str, Points]
    unit: str = "1"
    published: Mapping[str, Points] | None = None
    is_log2: bool = False


@styled
def tenant_bars(panels: Sequence[TenantBars], title: str, y_label: str, caption: str) -> Figure:
    """Panels of bars, with one legend and one scale."""
    figure, drawn = _panels(len(panels), 3.0)
    for axes, panel in zip(drawn, panels, strict=True):
        width = _BAR / max(1, len(panel.series))
        for number, values in enumerate(panel.series.values()):
            shift = (number - (len(panel.series) - 1) / 2) * width
            axes.bar([place + shift for place in range(len(values))], values, width, **bar_look(number))
        if panel.ideal is not None:
            axes.axhline(panel.ideal, color=BLACK, linewidth=1, linestyle="--", zorder=1)
        axes.set_xticks(range(len(panel.groups)), panel.groups, fontsize=8)
        axes.grid(visible=False, axis="x")
        axes.set_title(panel.title, fontsize=10)
        axes.set_ylabel(y_label)
        axes.set_ylim(bottom=0)
    names = list(dict.fromkeys(name for panel in panels for name in panel.series))
    _finish(figure, title, caption, [Patch(**bar_look(number), label=name) for number, name in enumerate(names)])
    return figure


@styled
def tail_ranges(panels: Sequence[TailRange], title: str, caption: str) -> Figure:
    """The quantiles of each scheduler as points on a line, with one logarithmic scale."""
    figure, drawn = _panels(len(panels), 3.0)
    for axes, panel in zip(drawn, panels, strict=True):
        make_y_logarithmic(axes)
        for place, quantiles in enumerate(panel.schedulers.values()):
            look = bar_look(place)
            ends = [value * 1e3 for value in quantiles.values()]
            axes.plot([place] * len(ends), ends, color=look["facecolor"], linewidth=3, alpha=0.45)
            axes.plot([place] * len(ends), ends, color=look["facecolor"], marker="o", ls="")
            for (name, _), end in zip(quantiles.items(), ends, strict=True):
                axes.annotate(
                    name, (place, end), (6, 0), textcoords="offset points", va="center", fontsize=7, color=GREY
                )
        axes.set_xticks(range(len(panel.schedulers)), list(panel.schedulers), fontsize=8)
        axes.set_xlim(-0.5, len(panel.schedulers) - 0.3)
        axes.grid(visible=False, axis="x")
        axes.set_title(panel.title, fontsize=10)
        axes.set_ylabel("Latency, ms")
    _finish(figure, title, caption)
    return figure


@styled
def line_panels(panels: Sequence[LinePanel], title: str, caption: str) -> Figure:
    """Panels of lines, each with its own scale and legend; diamonds are published figures."""
    figure, drawn = _panels(len(panels), 3.1)
    for axes, panel in zip(drawn, panels, strict=True):
        marks = panel.published or {}
        values = [y for points in (*panel.lines.values(), *marks.values()) for _, y in points]
        scale, unit = fitting(panel.unit, max(values, default=0.0))
        for place, (name, points) in enumerate(panel.lines.items()):
            axes.plot(
                [x for x, _ in points],
                [y * scale for _, y in points],
                **line_look(place),
                linewidth=1.5,
                marker="o" if panel.is_log2 else None,
                markersize=3.5,
                label=name,
            )
        for marker, (name, points) in zip(_MARKERS, marks.items(), strict=False):
            axes.plot(
                [x for x, _ in points],
                [y * scale for _, y in points],
                marker=marker,
                color="white",
                markeredgecolor=BLACK,
                ls="none",
                zorder=3,
                label=name,
            )
        if panel.is_log2:
            axes.set_xscale("log", base=2)
            axes.xaxis.set_major_formatter(thousands)
        axes.set_title(panel.title, fontsize=10)
        axes.set_xlabel(panel.x_label)
        axes.set_ylabel(panel.y_label if panel.unit == "1" else f"{panel.y_label}, {unit}")
        axes.set_ylim(0, 1.06 * scale * max(values, default=0.0) or None)
        axes.legend(fontsize=8)
    _finish(figure, title, caption)
    return figure


def _panels(count: int, height: float) -> tuple[Figure, list[Axes]]:
    columns = min(_COLUMNS, count)
    rows = -(-count // columns)
    figure = blank(5.4 * columns + (2.0 if columns == 1 else 0), height * rows + 1.3)
    drawn = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes in drawn[count:]:
        axes.set_visible(False)
    return figure, drawn[:count]


def _finish(figure: Figure, title: str, caption: str, legend: Sequence[Patch] = ()) -> None:
    figure.suptitle(title, x=0.012, ha="left", fontweight="bold")
    put_caption(figure, caption, legend)
