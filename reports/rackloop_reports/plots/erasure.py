"""Plots of erasure recovery: correctness, degraded reads, rebuild, tail latency and codec throughput."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rackloop.measurement import Distribution
from rackloop.units import counted, format_quantity
from rackloop_reports.plots._limits import LimitLine, draw_limits, mark_limit
from rackloop_reports.plots._style import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    RED,
    Source,
    bar_look,
    blank,
    line_look,
    put_caption,
    put_legend_beside,
    styled,
)

# Width and height of a cell of the matrix.
_CELL_IN = (1.25, 0.42)
_READS_FOR_P99 = Distribution.fewest_draws(0.99)
# Each curve is drawn so far beside the one before, so that their bars do not hide each other.
_ASIDE = 1.06


@dataclass(frozen=True)
class RecoveryCell:
    """The outcomes of one kind of damage, out of ``tried`` attempts.

    ``row`` and ``column`` name the damage and its time. ``right`` counts correct answers and, where more was lost than
    can be recovered, reported errors.
    """

    row: str
    column: str
    tried: int
    right: int
    wrong: int = 0
    unknown: int = 0


@dataclass(frozen=True)
class StateLatency:
    """Latencies of reads, in seconds, while a store was in some state, such as degraded."""

    state: str
    samples: Distribution
    limits: Sequence[LimitLine] = ()


@dataclass(frozen=True)
class RebuildBar:
    """The duration of a rebuild in seconds, and tenants' read latencies during it, None where there were no reads."""

    way: str
    seconds: float
    tenants: Distribution | None = None
    limits: Sequence[LimitLine] = ()


@dataclass(frozen=True)
class TailCurve:
    """Read latency in seconds by the probability of a sector failure: ``points`` of (probability, low, median, high).

    ``panel`` is what the curve shares axes with, such as the number of sectors and what a retry takes.
    """

    panel: str
    name: str
    points: Sequence[tuple[float, float | None, float, float | None]] = field(default_factory=tuple)
    limits: Sequence[LimitLine] = ()


@dataclass(frozen=True)
class GroupedBar:
    """One bar of a group: a code, say, and what was done with it. ``value`` is in the unit of the axis."""

    group: str
    name: str
    value: float
    limits: Sequence[LimitLine] = ()


@styled
def recovery_matrix(cells: Sequence[RecoveryCell], source: Source) -> Figure:
    """Damage by time: green where every answer was correct, red where one was wrong, else orange."""
    rows = list(dict.fromkeys(cell.row for cell in cells))
    columns = list(dict.fromkeys(cell.column for cell in cells))
    longest = max(map(len, rows))
    figure = blank(1.2 + 0.085 * longest + _CELL_IN[0] * len(columns), 2.1 + _CELL_IN[1] * len(rows))
    axes = figure.subplots()
    for cell in cells:
        x, y = columns.index(cell.column), rows.index(cell.row)
        color = RED if cell.wrong else GREEN if cell.right == cell.tried else ORANGE
        axes.barh(y, 0.94, 0.88, left=x - 0.47, color=color, alpha=1 if cell.wrong else 0.3)
        ink, weight = ("white", "bold") if cell.wrong else (BLACK, "normal")
        axes.text(x, y, _cell_words(cell), ha="center", va="center", fontsize=8.5, color=ink, fontweight=weight)
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(rows)), rows)
    axes.set_xlim(-0.5, len(columns) - 0.5)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)
    figure.suptitle(source.title("Recovery correctness"), x=0.012, ha="left", fontweight="bold")
    asked = sum(cell.tried for cell in cells)
    put_caption(
        figure,
        source.caption(
            f"{asked:,} answers: correct ones of all. Where more is lost than the code recovers, an "
            "answer must be a loud failure. Orange: wrong data, a failure only if silent corruption "
            "must be detected. Yellow: unknown, or an error where there should be data."
        ),
    )
    return figure


def _cell_words(cell: RecoveryCell) -> str:
    words = f"{cell.right:,} of {cell.tried:,}"
    if cell.wrong:
        words += f"\n{cell.wrong:,} wrong"
    if cell.unknown:
        words += f"\n{cell.unknown:,} unknown"
    return words


@styled
def degraded_reads(states: Sequence[StateLatency], source: Source) -> Figure:
    """The distribution of read latency in each state of a store, on one logarithmic axis."""
    import numpy as np
    from matplotlib.ticker import FuncFormatter

    figure = blank(8.6, 4.6)
    axes = figure.subplots()
    axes.set_xscale("log")
    for place, entry in enumerate(states):
        values_ms = np.asarray(entry.samples.values) * 1e3
        x = np.append(values_ms[:1], values_ms)
        y = np.append(0.0, np.cumsum(entry.samples.counts) / entry.samples.n)
        look = line_look(place)
        p50 = format_quantity(entry.samples.quantile(0.5), "s")
        share, name = (0.99, "p99") if entry.samples.n >= _READS_FOR_P99 else (1.0, "longest")
        high = entry.samples.quantile(share)
        words = f"{entry.state}: median {p50}, {name} {format_quantity(high, 's')}, n = {entry.samples.n:,}"
        axes.step(x, y, where="post", **look, label=words)
        axes.plot([high * 1e3], [share], marker="D", markersize=4, color=look["color"])
    axes.set_ylim(0, 1.05)
    draw_limits(axes, [limit for entry in states for limit in entry.limits], 1e3, is_across=False)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlabel("Read latency, ms")
    axes.set_ylabel("Share of reads at or below")
    axes.set_title(source.title("Reads during degradation"))
    caption = source.caption(f"Diamonds: p99, or the longest of fewer than {_READS_FOR_P99} reads.")
    put_caption(figure, caption, axes.get_legend_handles_labels()[0], columns=1)
    return figure


@styled
def rebuild_times(bars: Sequence[RebuildBar], source: Source) -> Figure:
    """The duration of each way to rebuild, and tenants' read latency during it."""
    has_tenants = any(bar.tenants for bar in bars)
    figure = blank(11.5 if has_tenants else 6.4, 1.6 + 0.5 * len(bars))
    left, *rest = figure.subplots(1, 2 if has_tenants else 1, squeeze=False).flat
    _across(left, [(bar.seconds, f"{bar.seconds:.3g} s") for bar in bars], "Rebuild, s", BLUE)
    for place, bar in enumerate(bars):
        for limit in bar.limits:
            mark_limit(left, limit, 1.0, (place + 0.45, place - 0.45), is_across=False)
    left.set_yticks(range(len(bars)), [bar.way for bar in bars])
    for axes in rest:
        _across(axes, [_waits(bar.tenants) for bar in bars], "Tenants' reads meanwhile, median, ms", ORANGE)
        axes.set_yticks([])
    figure.suptitle(source.title("Rebuild"), x=0.012, ha="left", fontweight="bold")
    put_caption(figure, source.caption("Until every stripe had all of its units again."))
    return figure


def _waits(reads: Distribution | None) -> tuple[float, str]:
    """The median in milliseconds, and with it p99 where there are enough reads to say."""
    if reads is None:
        return 0.0, "no reads"
    median = reads.quantile(0.5) * 1e3
    enough = f", p99 {reads.quantile(0.99) * 1e3:.3g}" if reads.n >= _READS_FOR_P99 else f", {counted(reads.n, 'read')}"
    return median, f"{median:.3g}{enough}"


def _across(axes: Axes, bars: Sequence[tuple[float, str]], what: str, color: str) -> None:
    drawn = axes.barh(range(len(bars)), [value for value, _ in bars], 0.6, color=color)
    axes.bar_label(drawn, [words for _, words in bars], fontsize=9, padding=3)
    axes.set_ylim(len(bars) - 0.5, -0.5)
    axes.set_xlabel(what)
    axes.margins(x=0.25)
    axes.grid(visible=False, axis="y")


@styled
def tail_curves(curves: Sequence[TailCurve], source: Source) -> Figure:
    """Read latency by the probability of a sector failure, a panel for each kind of drive, intervals as bars."""
    panels = list(dict.fromkeys(curve.panel for curve in curves))
    names = list(dict.fromkeys(curve.name for curve in curves))
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    figure = blank(max(6.4, 4.0 * columns), 1.6 + 3.0 * rows)
    drawn = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for axes in drawn.flat[len(panels) :]:
        axes.set_visible(False)
    for axes, panel in zip(drawn.flat, panels, strict=False):
        for curve in (curve for curve in curves if curve.panel == panel):
            number = names.index(curve.name)
            _tail(axes, curve, number, _ASIDE**number)
        axes.set_title(panel, fontsize=10)
        axes.set_xscale("log")
    tried = sorted({probability for curve in curves for probability, *_ in curve.points})
    drawn.flat[0].set_xticks(tried, [f"{probability:g}" for probability in tried])
    drawn.flat[0].set_xticks([], minor=True)
    # The panels share their axis: set before all are drawn, it would end at the first one's.
    drawn.flat[0].set_ylim(bottom=0)
    for axes, panel in zip(drawn.flat, panels, strict=False):
        draw_limits(axes, [limit for curve in curves if curve.panel == panel for limit in curve.limits], 1.0)
    for axes in drawn[:, 0]:
        axes.set_ylabel("Time of a read, s")
    for axes in drawn[-1, :]:
        axes.set_xlabel("Probability that a sector fails")
    figure.suptitle(source.title("Reads of many sectors"), x=0.012, ha="left", fontweight="bold")
    named = {str(artist.get_label()): artist for axes in drawn.flat for artist in axes.get_legend_handles_labels()[0]}
    caption = source.caption("Medians; bars: their 95 % intervals, from order statistics.")
    put_caption(figure, caption, [named[name] for name in names if name in named])
    return figure


def _tail(axes: Axes, curve: TailCurve, number: int, aside: float) -> None:
    points = sorted(curve.points)
    values = [value for _, _, value, _ in points]
    below = [value - low if low is not None else 0.0 for _, low, value, _ in points]
    above = [high - value if high is not None else 0.0 for _, _, value, high in points]
    axes.errorbar(
        [probability * aside for probability, *_ in points],
        values,
        [below, above],
        **line_look(number),
        marker="o",
        markersize=4,
        capsize=3,
        label=curve.name,
    )


@styled
def codec_throughput(bars: Sequence[GroupedBar], source: Source) -> Figure:
    """The encoding rate of each code, and its decoding rate by erased sectors, in GB of user data per second."""
    return _grouped(
        bars,
        source.title("Codec"),
        ("Code: user sectors + redundancy sectors", "Throughput, GB/s"),
        source.caption("Medians on one core of the machine that the harness runs on."),
        1e-9,
    )


@styled
def update_latency(bars: Sequence[GroupedBar], source: Source) -> Figure:
    """The latency of a partial codeword update by each method, in milliseconds."""
    return _grouped(
        bars,
        source.title("Updates of part of a codeword"),
        ("Code, and sectors updated", "Latency, ms"),
        source.caption("Medians, until data and redundancy are on the drive; nothing was in a cache."),
        1e3,
    )


def _grouped(bars: Sequence[GroupedBar], title: str, labels: tuple[str, str], caption: str, factor: float) -> Figure:
    groups = list(dict.fromkeys(bar.group for bar in bars))
    names = list(dict.fromkeys(bar.name for bar in bars))
    figure = blank(max(6.4, 2.0 + 1.1 * len(groups)), 4.4)
    axes = figure.subplots()
    width = 0.84 / len(names)
    for number, name in enumerate(names):
        found = {bar.group: bar.value for bar in bars if bar.name == name}
        places = [groups.index(group) + (number - (len(names) - 1) / 2) * width for group in found]
        drawn = axes.bar(places, list(found.values()), width * 0.92, **bar_look(number), label=name)
        axes.bar_label(drawn, fmt="%.2g", fontsize=8, padding=2)
        for place, group in zip(places, found, strict=True):
            for limit in (limit for bar in bars if (bar.group, bar.name) == (group, name) for limit in bar.limits):
                mark_limit(axes, limit, factor, (place - width / 2, place + width / 2))
    axes.set_xticks(range(len(groups)), groups)
    axes.set_xlabel(labels[0])
    axes.set_ylabel(labels[1])
    axes.margins(y=0.15)
    axes.grid(visible=False, axis="x")
    put_legend_beside(axes)
    axes.set_title(title)
    put_caption(figure, caption)
    return figure
