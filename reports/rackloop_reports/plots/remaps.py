"""Plots of remaps: the timeline of a run and the stages of a remap."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from rackloop.record import IoSeries, RemapSeen
from rackloop.record.acts import ChangeMap, DropSignal, FlapSignal
from rackloop.units import counted
from rackloop_reports.plots._io_strips import draw_io, io_strips
from rackloop_reports.plots._limits import LimitLine
from rackloop_reports.plots._style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    Source,
    blank,
    in_paper_order,
    label_time,
    milliseconds,
    put_caption,
    stack_title,
    styled,
)
from rackloop_reports.record import Act

# A remap's time, cut at its stages; each piece is named by the stage that ends it.
PIECES: Mapping[str, tuple[str, str]] = {
    "executed": ("switch executes the map", SKY),
    "phy_up": ("PHY trains", ORANGE),
    "link": ("kernel has the link", ORANGE),
    "device": ("kernel has the device", PURPLE),
    "online": ("driver brings the drive online", BLUE),
    "named": ("udev names its node", GREY),
    "verified": ("first verified read", GREEN),
    "mounted": ("mount and first file", RED),
}
_DARK = frozenset({BLUE, GREEN, GREY, PURPLE, RED})
_LANES_AT_MOST = 24
_DETAILS_AT_MOST = 4
_STRIPS_AT_MOST = 12
_MARKED = (ChangeMap, DropSignal, FlapSignal)
# The heights of strips that share the axis of times, and of those that have their own.
_STRIP_IN, _TIMED_STRIP_IN = 1.25, 1.75


class Piece(NamedTuple):
    """A part of a remap's time that ends with ``stage``."""

    stage: str
    start_ns: int
    end_ns: int


def pieces(remap: RemapSeen) -> Iterator[Piece]:
    """The parts of a remap's time, in order. A stage unseen, or without a piece, is no cut: the next has its time."""
    start_ns = remap.stages[0].at_ns if remap.stages else 0
    for stage in remap.stages[1:]:
        if stage.name in PIECES:
            yield Piece(stage.name, start_ns, stage.at_ns)
            start_ns = stage.at_ns


def _stages_of(remaps: Sequence[RemapSeen]) -> list[str]:
    """The stages that end a piece of one of these remaps, in order: which are seen depends on the rack."""
    seen = {stage.name for remap in remaps for stage in remap.stages[1:]}
    return [stage for stage in PIECES if stage in seen]


@styled
def stage_breakdown(remaps: Sequence[RemapSeen], source: Source) -> Figure:
    """Stacked bars of the median duration of each stage, a bar for each stack; shares of the whole beside."""
    medians = _stage_medians(remaps)
    stacks = in_paper_order(set(medians))
    figure = blank(9.6, 1.9 + 0.62 * len(stacks))
    axes = figure.subplots()
    axes.grid(visible=False, axis="y")
    for place, stack in enumerate(stacks):
        total = sum(medians[stack].values())
        left = 0.0
        for stage in medians[stack]:
            duration, color = medians[stack][stage], PIECES[stage][1]
            share = duration / total * 100 if total else 0.0
            axes.barh(place, share, 0.62, left=left, color=color, edgecolor="white", linewidth=0.8)
            if share >= 9:
                axes.text(
                    left + share / 2,
                    place,
                    milliseconds(duration),
                    ha="center",
                    va="center",
                    fontsize=9,
                    color="white" if color in _DARK else BLACK,
                )
            left += share
        axes.text(101, place, milliseconds(total), va="center", fontsize=9, fontweight="bold")
    axes.set_yticks(range(len(stacks)), [stack_title(stack) for stack in stacks])
    axes.invert_yaxis()
    axes.set_xlim(0, 112)
    axes.set_xticks(range(0, 101, 20))
    axes.set_xlabel("Share of the remap, %")
    axes.set_title(source.title("Where the time of a remap goes"))
    counts = ", ".join(f"{stack_title(stack)} {sum(remap.stack == stack for remap in remaps)}" for stack in stacks)
    put_caption(
        figure,
        source.caption(f"Median duration of each stage, and at the right their sum. Remaps: {counts}."),
        _piece_handles(remaps),
    )
    return figure


def _stage_medians(remaps: Sequence[RemapSeen]) -> dict[str, dict[str, float]]:
    durations: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for remap in remaps:
        for piece in pieces(remap):
            durations[remap.stack][piece.stage].append(piece.end_ns - piece.start_ns)
    return {
        stack: {stage: statistics.median(stages[stage]) / 1e9 for stage in PIECES if stage in stages}
        for stack, stages in durations.items()
    }


def _piece_handles(remaps: Sequence[RemapSeen]) -> list[Patch]:
    shown = (PIECES[stage] for stage in _stages_of(remaps))
    return [Patch(color=color, label=title) for title, color in shown]


@styled
def remap_timeline(
    remaps: Sequence[RemapSeen],
    acts: Sequence[Act],
    series: Sequence[IoSeries],
    start_ns: int,
    source: Source,
    limits: Sequence[LimitLine] = (),
) -> Figure:
    """Every remap on the lane of its server port, with map changes and PHY drops; I/O below on the same time axis;
    at the bottom, for each stack, the slowest remap with its neighbours. ``limits`` are of stalls.

    The I/O of several tests stands in strips of each test, which have times of their own: on the axis of a whole run a
    test of seconds would be a line."""  # noqa: D205, D209
    lanes = sorted({(remap.server, remap.port) for remap in remaps})[:_LANES_AT_MOST]
    stacks = in_paper_order({remap.stack for remap in remaps})[:_DETAILS_AT_MOST]
    has_own_times = len({entry.test for entry in series if entry.points}) > 1
    strips = io_strips(series, by_test=has_own_times)
    unshown = len(strips[_STRIPS_AT_MOST:]) if has_own_times else 0
    strips = strips[: len(strips) - unshown]
    has_lanes = bool(lanes or has_own_times or not strips or any(isinstance(act.what, _MARKED) for act in acts))
    heights = [*[0.9 + 0.24 * len(lanes)] * has_lanes, *[_TIMED_STRIP_IN if has_own_times else _STRIP_IN] * len(strips)]
    figure = blank(11.5, sum(heights) + 1.6 + (2.0 if stacks else 0.0))
    grid = figure.add_gridspec(2, 1, height_ratios=(sum(heights) + 0.5, 2.0))
    whole = (
        (grid[0] if stacks else grid[:])
        .subgridspec(len(heights), 1, height_ratios=heights)
        .subplots(sharex=not has_own_times, squeeze=False)[:, 0]
    )
    if stacks:
        for axes, stack in zip(grid[1].subgridspec(1, len(stacks)).subplots(squeeze=False)[0], stacks, strict=True):
            _detail(axes, [remap for remap in remaps if remap.stack == stack], stack)
    if has_lanes:
        _lanes(whole[0], remaps, lanes, start_ns)
        _marks(whole[0], acts, start_ns, len(lanes))
    draw_io(list(whole[has_lanes:]), strips, start_ns, limits)
    whole[0].set_title(source.title("Remaps and I/O"))
    for axes in whole if has_own_times else whole[-1:]:
        label_time(axes, "Time since the run started")
    hidden = len({(remap.server, remap.port) for remap in remaps}) - len(lanes)
    put_caption(
        figure,
        source.caption(
            (
                f"n = {len(remaps)} remaps on {len(lanes)} server ports"
                + (f" ({hidden} more not shown)." if hidden else ".")
                if remaps
                else f"{_changes(acts)}; no remap of a measured port among them."
            ),
            "The I/O of each test has an axis of times of its own." if has_own_times else "",
            f"{counted(unshown, 'strip')} of I/O not shown: see the pages of the tests." if unshown else "",
            "Bottom: the slowest remap of each stack with the remaps before and after it, from its command on."
            if stacks
            else "",
        ),
        [*_piece_handles(remaps), *_mark_handles()] if has_lanes else (),
    )
    return figure


def _changes(acts: Sequence[Act]) -> str:
    maps = sum(isinstance(act.what, ChangeMap) for act in acts)
    drops = sum(isinstance(act.what, (DropSignal, FlapSignal)) for act in acts)
    return f"{counted(maps, 'map change')}, {counted(drops, 'PHY drop')}"


def _lanes(axes: Axes, remaps: Sequence[RemapSeen], lanes: Sequence[tuple[str, str]], origin_ns: int) -> None:
    """A rectangle for every piece, one collection for every stage: thousands of remaps stay quick to draw."""
    rows = {lane: place for place, lane in enumerate(lanes)}
    # Of each piece its row, start, end and the width of its edge.
    shown: dict[str, list[tuple[float, float, float, float]]] = {stage: [] for stage in _stages_of(remaps)}
    for remap in remaps:
        row = rows.get((remap.server, remap.port))
        cut = list(pieces(remap))
        if row is None or not cut:
            continue
        longest = max(cut, key=lambda piece: piece.end_ns - piece.start_ns)
        for piece in cut:
            # The edge keeps a remap of a millisecond visible on an axis of minutes, by its longest piece.
            edge = 0.5 if piece is longest else 0.0
            shown[piece.stage].append((row, piece.start_ns - origin_ns, piece.end_ns - origin_ns, edge))
    for stage, boxes in shown.items():
        row_of, left, right, edges = np.array(boxes).reshape(-1, 4).T
        left, right, below, above = left / 1e9, right / 1e9, row_of - 0.38, row_of + 0.38
        # Of one array, which its stubs do not have, matplotlib makes them several times as fast as of a list.
        corners = np.stack([left, below, left, above, right, above, right, below], axis=-1).reshape(-1, 4, 2)
        rectangles = cast("Sequence[NDArray[np.float64]]", corners)
        color = PIECES[stage][1]
        axes.add_collection(PolyCollection(rectangles, facecolors=color, edgecolors=color, linewidths=edges))
    axes.set_yticks(range(len(lanes)), [f"{server}.{port}" for server, port in lanes], fontsize=8.5)
    axes.set_ylim(len(lanes) - 0.4, -0.6)
    axes.autoscale_view(scaley=False)
    axes.grid(visible=False, axis="y")


def _marks(axes: Axes, acts: Sequence[Act], origin_ns: int, lanes: int) -> None:
    changes = [(act.announced_ns - origin_ns) / 1e9 for act in acts if isinstance(act.what, ChangeMap)]
    drops = [(act.announced_ns - origin_ns) / 1e9 for act in acts if isinstance(act.what, (DropSignal, FlapSignal))]
    axes.set_ylim(lanes - 0.4, -1.6)
    if changes:
        axes.eventplot(changes, lineoffsets=-0.85, linelengths=0.45, linewidths=0.5, colors=GREY)
    if drops:
        axes.plot(drops, [-1.25] * len(drops), marker="v", markersize=6, color=RED, linestyle="none", clip_on=False)


def _mark_handles() -> list[Line2D]:
    return [
        Line2D([], [], color=GREY, marker="|", markersize=8, linestyle="none", label="map change commanded"),
        Line2D([], [], color=RED, marker="v", linestyle="none", label="PHY drop injected"),
    ]


def _detail(axes: Axes, remaps: Sequence[RemapSeen], stack: str) -> None:
    timed = [remap for remap in remaps if len(remap.stages) > 1]
    axes.set_title(stack_title(stack), fontsize=10)
    if not timed:
        return
    slowest = max(range(len(timed)), key=lambda place: timed[place].stages[-1].at_ns - timed[place].stages[0].at_ns)
    chosen = timed[max(0, slowest - 1) : slowest + 2]
    for row, remap in enumerate(chosen):
        for piece in pieces(remap):
            begin = (piece.start_ns - remap.stages[0].at_ns) / 1e6
            axes.barh(row, (piece.end_ns - piece.start_ns) / 1e6, 0.6, left=begin, color=PIECES[piece.stage][1])
    axes.set_yticks(range(len(chosen)), [f"{remap.drive}\n#{remap.generation}" for remap in chosen], fontsize=8)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("ms since commanded", fontsize=8.5)
