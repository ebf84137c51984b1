"""The curves of a drive model on one sheet, with the published figures for comparison."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter

from rackloop.units import format_quantity
from rackloop_reports.plots._style import BLACK, GREY, blank, line_look, put_caption, styled, thousands

_COLUMNS = 2
_KIB = 1024.0
_DECADE = 10.0


@dataclass(frozen=True)
class PublishedPoint:
    """A published figure among the curves, in SI base units, and where it was published.

    One that is a mean over all of a curve has no ``x``.
    """

    figure: str
    x: float | None
    y: float
    source: str


@dataclass(frozen=True)
class ModelCurve:
    """Lines by what they are of, each with its points in SI base units, and the published figures among them."""

    name: str
    lines: Mapping[str, Sequence[tuple[float, float]]]
    published: Sequence[PublishedPoint]


@dataclass(frozen=True)
class SimulatedDrive:
    """The simulated drive, for the caption."""

    profile: str
    like: str
    size_bytes: int
    seed: int


@dataclass(frozen=True)
class _Look:
    """The style of a curve: SI base units times ``per`` are the units of its labels."""

    title: str
    x_label: str
    y_label: str
    x_per: float = 1.0
    y_per: float = 1.0
    x_scale: Literal["linear", "log2"] = "linear"
    y_scale: Literal["linear", "log"] = "linear"


_MS, _MB, _PERCENT = 1e3, 1e-6, 100.0
_LOOKS = {
    "seek": _Look("Seek time", "Distance, % of the stroke", "Seek time, ms", _PERCENT, _MS),
    "zones": _Look("Sequential reads by place", "Place, % of the drive", "Throughput, MB/s", _PERCENT, _MB),
    "depth": _Look("IOPS of random 4 KiB by depth", "Requests in flight", "IOPS", x_scale="log2", y_scale="log"),
    "depth.latency": _Look(
        "Latency of random 4 KiB by depth",
        "Requests in flight",
        "Latency, ms",
        y_per=_MS,
        x_scale="log2",
        y_scale="log",
    ),
    "load": _Look(
        "Latency of random reads of 4 KiB by load", "Poisson arrivals, IOPS", "Latency, ms", y_per=_MS, y_scale="log"
    ),
    "cache": _Look("Random writes of 4 KiB, one at a time", "Time, s", "IOPS", y_scale="log"),
    "shingled": _Look("Random writes of 4 KiB, 32 in flight", "Time, s", "IOPS", y_scale="log"),
    "blocks": _Look(
        "Throughput by block size, 32 in flight", "Block size, KiB", "Throughput, MB/s", 1 / _KIB, _MB, "log2", "log"
    ),
    "cliff": _Look(
        "Random writes of 4 KiB, 32 in flight", "Written, times the drive's size", "Throughput, MB/s", y_per=_MB
    ),
    "mix": _Look("Mixed 4 KiB on a fragmented drive, 128 in flight", "Writes, %", "IOPS", _PERCENT),
}


@styled
def drive_model_sheet(curves: Sequence[ModelCurve], drive: SimulatedDrive) -> Figure:
    """A panel for each curve. Published figures are numbered; the caption says where each was published."""
    rows = math.ceil(len(curves) / _COLUMNS)
    figure = blank(12.8, 3.0 * rows + 1.2)
    panels = figure.subplots(rows, _COLUMNS, squeeze=False)
    for axes in panels.flat[len(curves) :]:
        axes.set_visible(False)
    sources = list(dict.fromkeys(point.source for curve in curves for point in curve.published))
    for axes, curve in zip(panels.flat, curves, strict=False):
        _panel(axes, curve, sources)
    figure.suptitle(f"{drive.profile}, like {drive.like} (simulated)", x=0.012, ha="left", fontweight="bold")
    sentences = [
        f"Profile {drive.profile}, {format_quantity(drive.size_bytes, 'B')}, seed {drive.seed}, in virtual time.",
        "Lines: the model. Diamonds and dashes: published figures." if sources else "",
        *(f"[{number}] {source.rstrip('.')}." for number, source in enumerate(sources, 1)),
    ]
    put_caption(figure, " ".join(filter(None, sentences)))
    return figure


def _panel(axes: Axes, curve: ModelCurve, sources: Sequence[str]) -> None:
    look = _LOOKS[curve.name]
    for place, (label, points) in enumerate(curve.lines.items()):
        axes.plot(
            [x * look.x_per for x, _ in points],
            [y * look.y_per for _, y in points],
            **line_look(place),
            linewidth=1.6,
            marker="o" if look.x_scale == "log2" else None,
            markersize=3.5,
            label=label,
        )
    for point in curve.published:
        _mark(axes, point, look, f"[{sources.index(point.source) + 1}]")
    _scale(axes, look)
    axes.set_title(look.title, fontsize=10)
    axes.set_xlabel(look.x_label)
    axes.set_ylabel(look.y_label)
    handles, labels = axes.get_legend_handles_labels()
    if any(point.x is not None for point in curve.published):
        handles.append(_diamond([], []))
        labels.append("published")
    if any(point.x is None for point in curve.published):
        handles.append(_dashes([], []))
        labels.append("published, mean of all")
    axes.legend(handles, labels, loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0, fontsize=8)


def _mark(axes: Axes, point: PublishedPoint, look: _Look, label: str) -> None:
    """A diamond where the figure lies, or a line across at its height."""
    y = point.y * look.y_per
    if point.x is None:
        place, where = (1.0, y), axes.get_yaxis_transform()
        line = _dashes([0.0, 1.0], [y, y])
        line.set_transform(where)
    else:
        place, where = (point.x * look.x_per, y), axes.transData
        line = _diamond([place[0]], [y])
    axes.add_line(line)
    axes.annotate(label, place, (6, 5), xycoords=where, textcoords="offset points", fontsize=8, color=BLACK)


def _diamond(x: Sequence[float], y: Sequence[float]) -> Line2D:
    return Line2D(x, y, marker="D", markersize=6, color="white", markeredgecolor=BLACK, linestyle="none", zorder=3)


def _dashes(x: Sequence[float], y: Sequence[float]) -> Line2D:
    return Line2D(x, y, color=GREY, linewidth=1, linestyle="--", zorder=0.5)


def _scale(axes: Axes, look: _Look) -> None:
    if look.x_scale == "log2":
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(thousands)
        axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        axes.xaxis.set_major_formatter(thousands)
    low, high = axes.dataLim.intervaly
    if look.y_scale == "log" and high > _DECADE * low > 0:
        axes.set_yscale("log")
        # Within one decade the powers of ten alone would leave an axis without labels.
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(thousands)
