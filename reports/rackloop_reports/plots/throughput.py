"""The paper's Figure 3: the cost of switching the drive before every read, by block size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypedDict

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rackloop.units import format_quantity
from rackloop_reports.plots._limits import LimitLine, mark_limit
from rackloop_reports.plots._style import (
    BLUE,
    GREY,
    ORANGE,
    Source,
    blank,
    make_y_logarithmic,
    put_caption,
    put_legend_beside,
    styled,
)


class _Look(TypedDict):
    linewidth: float
    alpha: float
    solid_capstyle: Literal["round"]
    zorder: float


# The law behind the paper's curve, derived from its text: half at 4 KB means as much time an I/O as a switch.
SWITCH_S = 1e-3
BASE_S = 1e-3
BANDWIDTH = 280e6
# Half the width of the mark of a limit, on the logarithmic axis of block sizes.
_BESIDE = 1.5
# Broad and pale, below what was measured: it stays visible where the two agree.
_DERIVED: _Look = {"linewidth": 6.0, "alpha": 0.3, "solid_capstyle": "round", "zorder": 1.5}


@dataclass(frozen=True)
class ThroughputPoint:
    """Median throughput of reads of one block size, in B/s, with or without a switch before each.

    ``low`` and ``high`` bound it at 95 %; None where there are too few reads to. ``drive`` is the kind of drive, empty
    where nothing says it. ``ratio``, of a point with switches, is the median of its share of the point without in each
    round, with its interval, where that was measured; ``ratio_limits`` are its limits.
    """

    block_bytes: int
    is_switching: bool
    median: float
    low: float | None
    high: float | None
    drive: str = ""
    limits: Sequence[LimitLine] = ()
    ratio_limits: Sequence[LimitLine] = ()
    ratio: tuple[float, float | None, float | None] | None = None


def derived_throughput(block_bytes: float, *, is_switching: bool) -> float:
    """T(b) = b / (t0 + b/BW + ts) in B/s, with ts = 0 where the drive stays."""
    return block_bytes / (BASE_S + block_bytes / BANDWIDTH + (SWITCH_S if is_switching else 0.0))


@styled
def figure_3(points: Sequence[ThroughputPoint], source: Source) -> Figure:
    """Throughput against block size, log-log, with and without a switch for each read; below it their ratio.

    Each kind of drive has a column of its own.
    """
    kinds = list(dict.fromkeys(point.drive for point in points))
    figure = blank(10.4 if len(kinds) == 1 else 5.2 * len(kinds) + 1.8, 6.4)
    grid = figure.subplots(2, len(kinds), sharex=True, sharey="row", height_ratios=(3, 1.5), squeeze=False)
    blocks = sorted({point.block_bytes for point in points})
    for kind, (upper, lower) in zip(kinds, grid.T, strict=True):
        chosen = [point for point in points if point.drive == kind]
        _throughputs(upper, chosen, blocks)
        _ratio(lower, chosen, blocks)
        upper.set_title(kind)
    for axes, quantity in zip(grid[:, 0], ("Throughput, MB/s", "Switching / staying"), strict=True):
        axes.set_ylabel(quantity)
    for axes in grid[:, -1]:
        put_legend_beside(axes)
    title = source.title("Throughput when every read comes from another drive")
    figure.suptitle(title, x=0.012, ha="left", fontweight="bold")
    put_caption(
        figure,
        source.caption(
            "Medians with 95 % intervals.",
            "Paper: T(b) = b / (t0 + b/BW + ts), derived from its text with t0 = ts = 1 ms and BW = 280 MB/s.",
        ),
    )
    return figure


def _throughputs(axes: Axes, points: Sequence[ThroughputPoint], blocks: Sequence[int]) -> None:
    axes.set_xscale("log", base=2)
    make_y_logarithmic(axes)
    between = _between(blocks)
    for is_switching, color, name in ((False, BLUE, "one drive stays"), (True, ORANGE, "a switch before every read")):
        chosen = sorted((p for p in points if p.is_switching is is_switching), key=lambda p: p.block_bytes)
        axes.errorbar(
            [p.block_bytes for p in chosen],
            [p.median / 1e6 for p in chosen],
            _errors([(p.median / 1e6, p.low and p.low / 1e6, p.high and p.high / 1e6) for p in chosen]),
            marker="s" if is_switching else "o",
            markersize=6,
            color=color,
            capsize=3,
            label=f"here, {name}",
        )
        axes.plot(
            between,
            [derived_throughput(block, is_switching=is_switching) / 1e6 for block in between],
            **_DERIVED,
            color=color,
            label=f"paper (derived), {name}",
        )
        for point in chosen:
            for limit in point.limits:
                mark_limit(axes, limit, 1e-6, (point.block_bytes / _BESIDE, point.block_bytes * _BESIDE))


def _errors(bounded: Sequence[tuple[float, float | None, float | None]]) -> list[list[float]]:
    """The lengths of intervals below and above their values; 0 at an end that is open."""
    below = [value - low if low is not None else 0.0 for value, low, _ in bounded]
    above = [high - value if high is not None else 0.0 for value, _, high in bounded]
    return [below, above]


def _ratio(axes: Axes, points: Sequence[ThroughputPoint], blocks: Sequence[int]) -> None:
    staying = {p.block_bytes: p.median for p in points if not p.is_switching}
    # Of medians there is a ratio as well, which is not the median of ratios that limits are held against.
    found = {
        p.block_bytes: p.ratio or (p.median / staying[p.block_bytes], None, None)
        for p in sorted(points, key=lambda p: p.block_bytes)
        if p.is_switching and (p.ratio or staying.get(p.block_bytes))
    }
    values, errors = [value for value, _, _ in found.values()], _errors(list(found.values()))
    axes.errorbar(list(found), values, errors, marker="o", color=GREY, capsize=3, label="here")
    between = _between(blocks)
    derived = [derived_throughput(b, is_switching=True) / derived_throughput(b, is_switching=False) for b in between]
    axes.plot(between, derived, **_DERIVED, color=GREY, label="paper (derived)")
    # The columns share the axis.
    before = 0.0 if axes.get_autoscaley_on() else axes.get_ylim()[1]
    tops = [value if high is None else high for value, _, high in found.values()]
    axes.set_ylim(0, max([1.08, before, *(1.05 * top for top in tops)]))
    for point in points:
        for limit in point.ratio_limits:
            mark_limit(axes, limit, 1.0, (point.block_bytes / _BESIDE, point.block_bytes * _BESIDE))
    axes.set_xlabel("Block size of a read")
    axes.set_xticks(blocks, [format_quantity(block, "B") for block in blocks], minor=False)
    axes.tick_params(axis="x", rotation=45 if len(blocks) > 5 else 0)
    axes.minorticks_off()


def _between(blocks: Sequence[int]) -> list[float]:
    """The blocks and eight sizes between each two, evenly on a logarithmic axis."""
    steps = [low * (high / low) ** (step / 9) for low, high in pairwise(blocks) for step in range(9)]
    return [*steps, *map(float, blocks[-1:])]
