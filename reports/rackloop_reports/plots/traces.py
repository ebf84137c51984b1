"""A page of plots of a block trace: rate, offsets, sizes, interarrival times, burstiness, locality, footprint."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MultipleLocator, NullFormatter
from numpy.typing import NDArray

from rackloop.units import format_quantity
from rackloop_reports.plots._style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    LINES,
    ORANGE,
    PURPLE,
    LineLook,
    blank,
    put_caption,
    put_legend_beside,
    styled,
)

if TYPE_CHECKING:
    from rackloop_traces import HeatMap, Statistics

Floats: TypeAlias = NDArray[np.float64]

# Ink that the heat map does not share, so that the eye does not look for reads in it.
_HEAT = "viridis_r"
_COLORS = {"read": BLUE, "write": ORANGE, "trim": PURPLE, "flush": GREEN}
_DASHES = {"read": LINES[0], "write": LINES[1], "trim": LINES[2], "flush": LINES[3]}
_NAMES = {"read": "reads", "write": "writes", "trim": "trims", "flush": "flushes"}
_MOST_STEPS = 480
_SIZE_UNITS = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"))
_TIME_UNITS = (("days", 86400.0, 3 * 86400.0), ("h", 3600.0, 3 * 3600.0), ("min", 60.0, 300.0), ("s", 1.0, 0.0))


@styled
def trace_page(statistics: Statistics, heat_map: HeatMap, name: str) -> Figure:
    """The page of the trace called ``name``; a panel of which the trace says nothing says that."""
    figure = blank(12.5, 14.0)
    grid = figure.add_gridspec(4, 6, height_ratios=(1.05, 1.15, 1, 1))
    unit, scale_s = _time_unit(statistics.duration_s)
    _rate(figure.add_subplot(grid[0, :]), statistics, unit, scale_s)
    _heat(figure, figure.add_subplot(grid[1, :]), heat_map, unit, scale_s)
    _sizes(figure.add_subplot(grid[2, :2]), statistics)
    _gaps(figure.add_subplot(grid[2, 2:4]), statistics)
    _dispersion(figure.add_subplot(grid[2, 4:]), statistics)
    _locality(figure.add_subplot(grid[3, :2]), statistics)
    _growth(figure.add_subplot(grid[3, 2:4]), statistics, unit, scale_s)
    _working_set(figure.add_subplot(grid[3, 4:]), statistics, unit, scale_s)
    put_caption(figure, _caption(statistics, name))
    return figure


def _caption(statistics: Statistics, name: str) -> str:
    blocks = statistics.blocks
    precision = "" if blocks.is_exact else f" Blocks are estimated, standard error {blocks.standard_error:.1%}."
    doubts = "".join(f" {doubt[:1].upper()}{doubt[1:]}." for doubt in statistics.doubts)
    return f"Trace {name}, {statistics.requests:,} requests.{precision}{doubts}"


def _time_unit(duration_s: float) -> tuple[str, float]:
    return next((unit, scale) for unit, scale, least in _TIME_UNITS if duration_s >= least)


def _rate(axes: Axes, statistics: Statistics, unit: str, scale_s: float) -> None:
    series = statistics.arrivals.rate
    bins = len(series.requests["read"])
    joined = -(-bins // _MOST_STEPS)
    edges = np.minimum(np.arange(0, bins + joined, joined), bins) * series.bin_s
    below = np.zeros(edges.size - 1)
    for op, counts in series.requests.items():
        if not any(counts):
            continue
        sums = np.add.reduceat(np.asarray(counts), np.arange(0, bins, joined))
        above = below + sums / np.diff(edges)
        axes.stairs(above, edges / scale_s, baseline=below, fill=True, color=_COLORS[op], label=_NAMES[op])
        below = above
    mean = statistics.requests / max(statistics.duration_s, series.bin_s)
    axes.axhline(mean, color=BLACK, linewidth=0.9, linestyle=(0, (4, 3)))
    axes.annotate(
        f"mean {mean:.3g}",
        (1, mean),
        (-3, 3),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        ha="right",
        bbox={"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.8},
    )
    axes.set_xlim(0, edges[-1] / scale_s)
    axes.set_ylim(0, 1.05 * max(below))
    axes.set_xlabel(f"Time, {unit}")
    axes.set_ylabel("Requests per second")
    axes.set_title(f"Rate, by {format_quantity(series.bin_s * joined, 's')}")
    put_legend_beside(axes)


def _heat(figure: Figure, axes: Axes, heat_map: HeatMap, unit: str, scale_s: float) -> None:
    counts = heat_map.counts
    places, times = (np.arange(length + 1) for length in counts.shape)
    span_bytes = places[-1] * heat_map.place_bytes
    unit_bytes, name = next(((size, text) for size, text in _SIZE_UNITS if span_bytes >= size), (1, "B"))
    mesh = axes.pcolormesh(
        times * heat_map.bin_s / scale_s,
        places * (heat_map.place_bytes / unit_bytes),
        np.ma.masked_equal(counts, 0),
        norm=LogNorm(1, max(2, int(counts.max()))),
        cmap=_HEAT,
        rasterized=True,
    )
    figure.colorbar(mesh, cax=axes.inset_axes((1.01, 0, 0.012, 1)), label="Requests", format="{x:g}").minorticks_off()
    axes.set_xlabel(f"Time, {unit}")
    axes.set_ylabel(f"Offset, {name}")
    axes.set_title(
        f"Where requests go, by {format_quantity(heat_map.place_bytes, 'B')} and {format_quantity(heat_map.bin_s, 's')}"
    )


def _sizes(axes: Axes, statistics: Statistics) -> None:
    seen = {op: found.sizes for op, found in statistics.ops.items() if found.sizes and op != "flush"}
    for op, sizes in seen.items():
        values, counts = np.asarray(sizes).T
        look = LineLook(color=_COLORS[op], linestyle=_DASHES[op])
        _steps(axes, values, np.cumsum(counts) / counts.sum(), look, label=_NAMES[op])
    if seen:
        put_legend_beside(axes)
    else:
        _say(axes, "no sizes")
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: format_quantity(value, "B")))
    axes.tick_params(axis="x", labelrotation=35)
    _share_axis(axes, "Requests not larger, %")
    axes.set_title("Sizes")


def _gaps(axes: Axes, statistics: Statistics) -> None:
    arrivals = statistics.arrivals
    kinds = (
        ("all", arrivals.gaps, LineLook(color=GREY, linestyle=LINES[2])),
        ("reads", arrivals.read_gaps, LineLook(color=BLUE, linestyle=LINES[0])),
        ("writes", arrivals.write_gaps, LineLook(color=ORANGE, linestyle=LINES[1])),
    )
    for name, gaps, look in kinds:
        points = [] if gaps is None else [(us / 1e6, share) for us, share in gaps.curve_us if us > 0]
        if gaps is not None and points:
            together = f", {gaps.zero_share:.0%} at once" if gaps.zero_share >= 0.005 else ""
            values, shares = np.asarray(points).T
            _steps(axes, values, shares, look, first=gaps.zero_share, label=f"{name}{together}")
    if axes.lines:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: format_quantity(value, "s")))
        axes.tick_params(axis="x", labelrotation=35)
        put_legend_beside(axes)
    else:
        _say(axes, "all at the same time")
    _share_axis(axes, "Gaps not longer, %")
    axes.set_title("Time between arrivals")


def _dispersion(axes: Axes, statistics: Statistics) -> None:
    scales = [scale for scale in statistics.arrivals.scales if scale.dispersion > 0]
    if scales:
        axes.loglog([s.interval_s for s in scales], [s.dispersion for s in scales], marker="o", color=PURPLE)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: format_quantity(value, "s")))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.minorticks_off()
        axes.tick_params(axis="x", labelrotation=35)
        axes.axhline(1, color=GREY, linewidth=1, linestyle=(0, (4, 3)))
        axes.annotate(
            "Poisson",
            (1, 1),
            (-2, 3),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            ha="right",
            color=GREY,
        )
    else:
        _say(axes, "too short to say")
    axes.set_xlabel("Interval")
    axes.set_ylabel("Variance / mean of requests")
    axes.set_title("Burstiness by time scale")


def _locality(axes: Axes, statistics: Statistics) -> None:
    if curve := statistics.blocks.curve:
        blocks, touches = np.asarray(curve).T * 100
        even = np.geomspace(blocks[0], 100, 60) if blocks[0] < 100 else blocks
        axes.plot(even, even, color=GREY, linewidth=1, linestyle=(0, (4, 3)), label="all alike")
        axes.plot(blocks, touches, color=GREEN, label="trace")
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
        put_legend_beside(axes)
    else:
        _say(axes, "no block read or written")
    axes.set_xlabel("Busiest blocks, %")
    axes.set_ylim(0, 102)
    axes.set_ylabel("Their share of touches, %")
    axes.set_title("Locality, blocks of 4 KiB")


def _growth(axes: Axes, statistics: Statistics, unit: str, scale_s: float) -> None:
    seconds, blocks = np.asarray(statistics.blocks.growth).T
    axes.plot(seconds / scale_s, blocks * statistics.blocks.block_bytes, color=BLACK)
    _size_axis(axes, unit)
    axes.set_title("Footprint so far")


def _working_set(axes: Axes, statistics: Statistics, unit: str, scale_s: float) -> None:
    found = statistics.blocks.working_set
    if found is None:
        _say(axes, "too long to say")
    else:
        edges = np.arange(len(found.distinct) + 1) * found.window_s / scale_s
        sizes = np.asarray(found.distinct, dtype=np.float64) * statistics.blocks.block_bytes
        axes.stairs(sizes, edges, fill=True, color=GREEN)
        axes.set_title(f"Working set of each {format_quantity(found.window_s, 's')}")
    _size_axis(axes, unit)


def _size_axis(axes: Axes, unit: str) -> None:
    """Time below, and bytes at the side in a handful of round binary steps."""
    axes.set_xlim(0, None)
    axes.set_ylim(0, None)
    axes.set_xlabel(f"Time, {unit}")
    axes.yaxis.set_major_locator(MultipleLocator(2.0 ** np.ceil(np.log2(max(axes.get_ylim()[1] / 6, 1)))))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: format_quantity(value, "B") if value else "0"))


def _share_axis(axes: Axes, label: str) -> None:
    axes.set_ylim(0, 102)
    axes.set_ylabel(label)


def _steps(axes: Axes, values: Floats, shares: Floats, look: LineLook, *, label: str, first: float = 0.0) -> None:
    """A cumulative distribution in percent that begins at ``first`` with its least value."""
    axes.step(
        np.concatenate((values[:1], values)),
        np.concatenate(([first], shares)) * 100,
        where="post",
        **look,
        label=label,
    )


def _say(axes: Axes, text: str) -> None:
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", color=GREY)
