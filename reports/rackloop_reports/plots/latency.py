"""Plots of remap latency: the paper's Figure 2, and the whole distribution."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from rackloop.measurement import Distribution, Interval
from rackloop_reports.plots._limits import GROUND, LimitLine, draw_limits
from rackloop_reports.plots._style import (
    BLACK,
    CYCLE,
    GREY,
    LIMIT_DASHES,
    RED,
    Source,
    blank,
    make_y_logarithmic,
    milliseconds,
    put_caption,
    stack_title,
    styled,
)

# Figure 2 of the Flexible Fabric paper: the time until the driver has the drive online, and the mount beside it.
PAPER_LATENCY_S = {"vanilla": 0.200, "no_timeouts": 0.090, "warm_port": 0.010, "comreset": 0.001}
PAPER_MOUNT_S = 0.050
# The width of the Dvoretzky-Kiefer-Wolfowitz band, with Massart's constant: sqrt(ln(2 / alpha) / 2n).
_DKW_95 = math.sqrt(math.log(2 / 0.05) / 2)
# A limit is beside the words of a bar where it is less than so many times its p99.
_NEAR = 2.5


@dataclass(frozen=True)
class StackLatency:
    """The remap latencies of one driver stack, in seconds; ``test`` tells two of the same stack apart.

    ``judged`` has the intervals of quantiles that are not those of the samples alone: what the machine may have added
    is in them.
    """

    stack: str
    samples: Distribution
    test: str = ""
    limits: Sequence[LimitLine] = ()
    judged: Mapping[float, Interval] = field(default_factory=dict)

    def interval(self, q: float) -> Interval:
        """The 95 % interval of a quantile."""
        return self.judged.get(q) or self.samples.quantile_ci95(q)

    @property
    def title(self) -> str:
        """The stack's name for people, and the test below it."""
        return "\n".join(filter(None, (stack_title(self.stack), self.test)))


@styled
def figure_2(stacks: Sequence[StackLatency], source: Source) -> Figure:
    """Bars of the median latency of each stack with its 95 % interval, p99 with its interval, the paper's beside."""
    figure = blank(8.6, 4.9)
    axes = figure.subplots()
    make_y_logarithmic(axes)
    axes.grid(visible=False, axis="x")
    for place, entry in enumerate(stacks):
        _measured_bar(axes, place, entry)
        for limit in entry.limits:
            value_ms = limit.value * 1e3
            axes.hlines(value_ms, place - 0.42, place + 0.02, color=RED, linewidth=2, linestyle=LIMIT_DASHES)
            said = (place - 0.43, value_ms)
            ground = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.8}
            axes.annotate(limit.bound, said, ha="right", va="center", color=RED, fontsize=7, bbox=ground)
        paper_s = PAPER_LATENCY_S.get(entry.stack)
        if paper_s is not None:
            axes.bar(place + 0.2, paper_s * 1e3, 0.34, color="white", edgecolor=GREY, hatch="////", linewidth=0.8)
            axes.annotate(
                milliseconds(paper_s),
                (place + 0.2, paper_s * 1e3),
                (0, 4),
                textcoords="offset points",
                ha="center",
                color=GREY,
                fontsize=9,
            )
    axes.axhline(PAPER_MOUNT_S * 1e3, color=GREY, linewidth=1, linestyle=(0, (4, 3)), zorder=0.5)
    axes.set_xticks(range(len(stacks)), [entry.title for entry in stacks])
    axes.set_xlim(-0.8 if any(entry.limits for entry in stacks) else -0.6, len(stacks) - 0.4)
    lowest = min([0.001, *(entry.samples.minimum for entry in stacks if entry.samples.minimum > 0)])
    limits_s = [limit.value for entry in stacks for limit in entry.limits]
    highest = max([0.2, *limits_s, *(entry.samples.quantile(0.99) for entry in stacks)])
    axes.set_ylim(lowest * 1e3 / 3, highest * 1e3 * 2.4)
    axes.set_ylabel("Remap latency, ms")
    axes.set_title(source.title("Remap latency by driver stack"))
    limited = list(dict.fromkeys(limit.statistic for entry in stacks for limit in entry.limits))
    put_caption(
        figure,
        source.caption(_counts(stacks), "Intervals from order statistics; log scale.", _lateness(stacks)),
        _figure_2_legend(limited),
    )
    return figure


def _measured_bar(axes: Axes, place: int, entry: StackLatency) -> None:
    samples = entry.samples
    median, p99 = samples.quantile(0.5) * 1e3, samples.quantile(0.99) * 1e3
    axes.bar(place - 0.2, median, 0.34, color=CYCLE[0])
    low, high = entry.interval(0.5)
    bars, is_open = _bars(median, (low, high)), high is None
    axes.errorbar(place - 0.2, median, bars, color=BLACK, capsize=5, elinewidth=1.3, lolims=is_open)
    low, high = entry.interval(0.99)
    axes.errorbar(
        place - 0.2,
        p99,
        _bars(p99, (low, high)),
        marker="D",
        markersize=3.5,
        color=CYCLE[1],
        # Too few samples to bound p99 from above: the marker is hollow and the interval an arrow.
        markerfacecolor=CYCLE[1] if high is not None else "white",
        capsize=5,
        elinewidth=1.3,
        lolims=high is None,
    )
    # The words stand above a limit that they would be struck through by.
    near = [limit.value * 1e3 for limit in entry.limits if p99 < limit.value * 1e3 < _NEAR * p99]
    top = (place - 0.2, max(p99, (high or 0) * 1e3, *near))
    for text, above_pt, weight, color in (
        (_claimed(samples, 0.5), 18, "bold", BLACK),
        (f"p99 {_claimed(samples, 0.99)}", 6, "normal", GREY),
    ):
        axes.annotate(
            text,
            top,
            (0, above_pt),
            textcoords="offset points",
            ha="center",
            color=color,
            fontsize=9 if weight == "bold" else 8,
            fontweight=weight,
        )


def _claimed(samples: Distribution, q: float) -> str:
    """A quantile in words; where the samples are too few to bound it from above, the least that it is."""
    low, high = samples.quantile_ci95(q)
    if high is not None:
        return milliseconds(samples.quantile(q))
    return "not claimed" if low is None else f"at least {milliseconds(low)}"


def _bars(value_ms: float, interval: Interval) -> list[list[float]]:
    low, high = interval
    below = value_ms - low * 1e3 if low is not None else 0.0
    above = high * 1e3 - value_ms if high is not None else value_ms * 0.5
    return [[below], [above]]


def _lateness(stacks: Sequence[StackLatency]) -> str:
    """Says of intervals that are longer than those of the samples why they are."""
    is_longer = any(
        interval != entry.samples.quantile_ci95(q) for entry in stacks for q, interval in entry.judged.items()
    )
    return "That of a judged quantile reaches as far down as the machine may have been late." if is_longer else ""


def _figure_2_legend(limited: Sequence[str]) -> list[Artist]:
    from matplotlib.patches import Patch

    limit = Line2D([], [], color=RED, linewidth=2, linestyle=LIMIT_DASHES, label=f"limit of {', '.join(limited)}")
    return [
        Patch(color=CYCLE[0], label="median, 95 % interval"),
        Line2D([], [], color=CYCLE[1], marker="D", linestyle="none", label="p99, 95 % interval"),
        *([limit] if limited else []),
        Patch(facecolor="white", edgecolor=GREY, hatch="////", label="paper, Figure 2"),
        Line2D([], [], color=GREY, linestyle=(0, (4, 3)), label="paper, NTFS mount"),
    ]


def _counts(stacks: Sequence[StackLatency]) -> str:
    numbers = {entry.samples.n for entry in stacks}
    if len(numbers) == 1:
        return f"n = {numbers.pop()} remaps for each stack."
    return (
        "n = " + ", ".join(f"{entry.samples.n} ({entry.title.replace(chr(10), ' ')})" for entry in stacks) + " remaps."
    )


@styled
def latency_ecdf(stacks: Sequence[StackLatency], source: Source) -> Figure:
    """The empirical distribution of each stack's latency, each on its own axis, with a simultaneous 95 % band."""
    columns = min(4, len(stacks))
    rows = math.ceil(len(stacks) / columns)
    figure = blank(11.5, 0.9 + 3.1 * rows)
    panels = figure.subplots(rows, columns, sharey=True, squeeze=False)
    for axes in panels.flat[len(stacks) :]:
        axes.set_visible(False)
    for axes, entry in zip(panels.flat, stacks, strict=False):
        _ecdf(axes, entry)
    for axes in panels[:, 0]:
        axes.set_ylabel("Share of remaps at or below")
    figure.suptitle(source.title("Remap latency, whole distribution"), x=0.012, ha="left", fontweight="bold")
    put_caption(
        figure,
        source.caption(_counts(stacks), "Bands: simultaneous 95 % confidence (Dvoretzky, Kiefer and Wolfowitz)."),
    )
    return figure


def _ecdf(axes: Axes, entry: StackLatency) -> None:
    import numpy as np

    samples = entry.samples
    values_ms = np.asarray(samples.values) * 1e3
    x = np.append(values_ms[:1], values_ms)
    y = np.append(0.0, np.cumsum(samples.counts) / samples.n)
    # Samples that were taken together are as one.
    half = _DKW_95 / math.sqrt(samples.draws)
    axes.fill_between(
        x, np.clip(y - half, 0, 1), np.clip(y + half, 0, 1), step="post", color=CYCLE[0], alpha=0.2, linewidth=0
    )
    axes.step(x, y, where="post", color=CYCLE[0], linewidth=1.7)
    # The words of a limit stand below the median.
    for share, name, above_pt, lower_pt in ((0.5, "median", 9, 0), (0.99, "p99", 9, 16)):
        value_ms = samples.quantile(share) * 1e3
        # A label has room on the side where the axis is long.
        is_left = value_ms - values_ms[0] < 0.5 * (values_ms[-1] - values_ms[0])
        axes.plot([value_ms], [share], marker="o", markersize=5, color=CYCLE[1], linestyle="none")
        axes.annotate(
            f"{name} {_claimed(samples, share)}",
            (value_ms, share),
            (7 if is_left else -7, above_pt - (lower_pt if is_left else 0)),
            textcoords="offset points",
            ha="left" if is_left else "right",
            va="center",
            fontsize=8.5,
            bbox=GROUND,
            zorder=5,
        )
    axes.set_ylim(0, 1.08)
    axes.margins(x=0.12)
    draw_limits(axes, entry.limits, 1e3, is_across=False)
    axes.set_title(entry.title, fontsize=10)
    axes.set_xlabel("Remap latency, ms")
