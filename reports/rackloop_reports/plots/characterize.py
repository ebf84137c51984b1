"""Plots of a drive's characterization, as readers of SNIA Performance Test Specification reports know them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rackloop.measurement import Criteria, Window, attained
from rackloop.record import RoundsMeasured
from rackloop.units import format_quantity
from rackloop_reports.plots._limits import LimitLine, draw_limits, mark_limit
from rackloop_reports.plots._style import (
    BLACK,
    BLUE,
    GREEN,
    LIMIT_DASHES,
    ORANGE,
    RED,
    Source,
    bar_look,
    blank,
    fitting,
    line_look,
    make_y_logarithmic,
    put_caption,
    put_legend_beside,
    styled,
)

_QUANTITIES = {"IOPS": "{}", "B/s": "Throughput, {}", "s": "Average latency, {}"}
# Half the width of the mark of a limit, on the logarithmic axis of block sizes.
_BESIDE = 1.25
# Some rounds before the window, for the eye to compare it with.
_ROUNDS_BEFORE = 2


@dataclass(frozen=True)
class Cell:
    """One figure of a matrix: what was measured at this block size and share of reads, and its limits.

    ``statistic`` is the one shown; limits of others are told with theirs.
    """

    block_bytes: int
    read_percent: int
    value: float
    limits: Sequence[LimitLine] = ()
    statistic: str = ""

    @property
    def bounds(self) -> list[str]:
        """The limits in words."""
        return [
            limit.bound if self.statistic in {"", limit.statistic} else f"{limit.statistic} {limit.bound}"
            for limit in self.limits
        ]


@dataclass(frozen=True)
class DemandPoint:
    """IOPS and latency, in seconds, with this many I/Os outstanding; limits of the latter, and of the former."""

    outstanding: int
    iops: float
    average_s: float
    p99_s: float
    limits: Sequence[LimitLine] = ()
    iops_limits: Sequence[LimitLine] = ()


def criteria_of(rounds: RoundsMeasured) -> Criteria | None:
    """The criteria that steady state was judged by from these rounds; None where it was not."""
    if rounds.criteria is None:
        return None
    found = rounds.criteria
    return Criteria(rounds=round(found["rounds"]), excursion=found["excursion"], slope=found["slope"])


@styled
def steady_state_convergence(
    series: Sequence[RoundsMeasured], source: Source, limits: Sequence[LimitLine] = ()
) -> Figure:
    """Each series round after round, on a logarithmic axis; what decided is drawn bold, its steady window shaded.

    ``limits`` are of what decided.
    """
    figure = blank(8.6, 4.9)
    axes = figure.subplots()
    make_y_logarithmic(axes)
    is_by_depth = len({rounds.labels.get("block") for rounds in series}) == 1
    unit = series[0].unit
    scale, shown_unit = fitting(unit, max(max(rounds.values) for rounds in series))
    for place, rounds in enumerate(series):
        criteria = criteria_of(rounds)
        numbers = range(1, len(rounds.values) + 1)
        axes.plot(
            numbers,
            [value * scale for value in rounds.values],
            **line_look(place),
            linewidth=2.4 if criteria else 1.2,
            marker="o",
            markersize=5 if criteria else 3,
            label=_name(rounds, is_by_depth=is_by_depth) + (" (decides)" if criteria else ""),
        )
        if criteria and (window := attained(rounds.values, criteria)):
            axes.axvspan(window.first - 0.5, window.last + 0.5, color=GREEN, alpha=0.12, linewidth=0)
    _rounds_axis(axes, max(len(rounds.values) for rounds in series))
    axes.set_ylabel(_QUANTITIES[unit].format(shown_unit))
    draw_limits(axes, limits, scale)
    axes.set_title(source.title(f"Steady state convergence, reads/writes {series[0].labels['mix']}"))
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), title="outstanding" if is_by_depth else "block size")
    put_caption(figure, source.caption(criteria_words(series), "Shaded: the steady window." if axes.patches else ""))
    return figure


@styled
def measurement_window(
    tracked: Sequence[RoundsMeasured], source: Source, limits: Sequence[Sequence[LimitLine]] = ()
) -> Figure:
    """The steady window of each series, or its last: average, the band it may range over, the line through it.

    ``limits`` are those of each series.
    """
    figure = blank(8.6 if len(tracked) == 1 else 11.5, 4.7)
    drawn = figure.subplots(1, len(tracked), squeeze=False).flat
    for axes, rounds, limited in zip(drawn, tracked, limits or [[]] * len(tracked), strict=True):
        _window(axes, rounds)
        draw_limits(axes, limited, fitting(rounds.unit, max(rounds.values))[0])
    figure.suptitle(source.title("Steady state measurement window"), x=0.012, ha="left", fontweight="bold")
    put_caption(figure, source.caption(criteria_words(tracked)), shown(figure.axes[0]))
    return figure


def shown(axes: Axes) -> list[Artist]:
    """The entries of the axes' legend, for one below the figure."""
    return list(axes.get_legend_handles_labels()[0])


def _window(axes: Axes, rounds: RoundsMeasured) -> None:
    criteria = criteria_of(rounds) or Criteria()
    count = len(rounds.values)
    scale, shown_unit = fitting(rounds.unit, max(rounds.values))
    axes.set_title(f"{_name(rounds)}, reads/writes {rounds.labels['mix']}", fontsize=10)
    axes.set_ylabel(_QUANTITIES[rounds.unit].format(shown_unit))
    axes.set_xlabel("Round")
    window = attained(rounds.values, criteria)
    if window is None and count < criteria.rounds:
        axes.plot(range(1, count + 1), [value * scale for value in rounds.values], color=BLUE, marker="o")
        return
    is_steady = window is not None
    window = window or Window.over(rounds.values, count, criteria.rounds)
    first = max(1, window.first - _ROUNDS_BEFORE)
    shown = range(first, window.last + 1)
    axes.plot(shown, [rounds.values[number - 1] * scale for number in shown], color=BLUE, marker="o", label="measured")
    edges = (window.first, window.last)
    average, half = window.average * scale, criteria.excursion / 2
    axes.hlines(average, *edges, color=BLACK, linewidth=1.2, label="average")
    axes.fill_between(
        edges,
        average * (1 - half),
        average * (1 + half),
        color=GREEN if is_steady else RED,
        alpha=0.12,
        linewidth=0,
        label=f"average ± {_percent(half)}",
    )
    ends = [window.start, window.start + window.slope * (criteria.rounds - 1)]
    axes.plot(edges, [value * scale for value in ends], color=ORANGE, linestyle=(0, (5, 2)), label="least squares")
    axes.set_xticks(list(shown))
    highest = max(*(rounds.values[number - 1] * scale for number in shown), average * (1 + half))
    lowest = min(*(rounds.values[number - 1] * scale for number in shown), average * (1 - half))
    axes.set_ylim(max(0.0, lowest - 0.5 * (highest - lowest)), highest + 0.25 * (highest - lowest))
    verdict = "steady" if is_steady else "not steady"
    shown_average = format_quantity(window.average, rounds.unit)
    words = f"{verdict}, average {shown_average}: excursion {window.excursion:.1%}, slope {window.slope_excursion:.1%}"
    axes.text(0.5, 0.97, words, transform=axes.transAxes, ha="center", va="top", fontweight="bold", fontsize=9)


@styled
def iops_matrix(cells: Sequence[Cell], source: Source, *, is_steady: bool = True) -> Figure:
    """IOPS by block size and mix: every figure in a table, and as one curve for each mix."""
    figure = blank(11.5, 4.9)
    left, right = figure.subplots(1, 2, width_ratios=(1.1, 1))
    _table(left, cells, _thousands, is_high_good=True)
    left.set_title("IOPS", fontsize=10)
    right.set_xscale("log", base=2)
    make_y_logarithmic(right)
    blocks = sorted({cell.block_bytes for cell in cells})
    scale, shown_unit = fitting("IOPS", max(cell.value for cell in cells))
    for place, reads in enumerate(sorted({cell.read_percent for cell in cells}, reverse=True)):
        chosen = sorted((cell.block_bytes, cell.value) for cell in cells if cell.read_percent == reads)
        right.plot(
            [block for block, _ in chosen],
            [value * scale for _, value in chosen],
            marker="o",
            markersize=4,
            **line_look(place),
            label=_mix(reads),
        )
    for cell in cells:
        for limit in cell.limits:
            mark_limit(right, limit, scale, (cell.block_bytes / _BESIDE, cell.block_bytes * _BESIDE))
    right.set_xticks(blocks, [format_quantity(block, "B") for block in blocks], rotation=30, ha="right")
    right.minorticks_off()
    right.set_xlabel("Block size")
    right.set_ylabel(shown_unit)
    put_legend_beside(right, "reads/writes")
    figure.suptitle(source.title(f"Random IOPS {_state(is_steady=is_steady)}"), x=0.012, ha="left", fontweight="bold")
    put_caption(figure, source.caption(f"Averages over {_window_words(is_steady=is_steady)}."))
    return figure


@styled
def latency_matrix(panels: Sequence[tuple[str, Sequence[Cell]]], source: Source, *, is_steady: bool = True) -> Figure:
    """Latency by block size and mix, a table for each statistic named in ``panels``."""
    figure = blank(11.5, 3.9)
    for axes, (name, cells) in zip(figure.subplots(1, len(panels), squeeze=False).flat, panels, strict=True):
        _table(axes, cells, _microseconds, is_high_good=False)
        axes.set_title(f"{name}, us", fontsize=10)
    figure.suptitle(
        source.title(f"Latency {_state(is_steady=is_steady)}, one I/O outstanding"),
        x=0.012,
        ha="left",
        fontweight="bold",
    )
    put_caption(figure, source.caption(f"Over all I/O of {_window_words(is_steady=is_steady)}."))
    return figure


def _table(axes: Axes, cells: Sequence[Cell], word: Callable[[float], str], *, is_high_good: bool) -> None:
    """Every cell's figure on a ground that is the darker the better it is, on a logarithmic scale."""
    import numpy as np

    blocks = sorted({cell.block_bytes for cell in cells})
    mixes = sorted({cell.read_percent for cell in cells}, reverse=True)
    values = np.full((len(blocks), len(mixes)), np.nan)
    for cell in cells:
        values[blocks.index(cell.block_bytes), mixes.index(cell.read_percent)] = cell.value
    logs = np.log10(np.where(values > 0, values, np.nan))
    axes.imshow(logs, cmap="Blues" if is_high_good else "Oranges", aspect="auto", alpha=0.75)
    middle = (np.nanmin(logs) + np.nanmax(logs)) / 2
    for (row, column), value in np.ndenumerate(values):
        if np.isfinite(value):
            is_dark = logs[row, column] > middle + 0.5 * (np.nanmax(logs) - middle)
            color = "white" if is_dark and np.nanmax(logs) > np.nanmin(logs) else BLACK
            axes.text(column, row, word(float(value)), ha="center", va="center", fontsize=8.5, color=color)
    for cell in (cell for cell in cells if cell.limits):
        place = (mixes.index(cell.read_percent), blocks.index(cell.block_bytes))
        _frame(axes, place, cell.bounds)
    axes.set_xticks(range(len(mixes)), [_mix(reads) for reads in mixes])
    axes.set_yticks(range(len(blocks)), [format_quantity(block, "B") for block in blocks])
    axes.set_xlabel("Reads/writes, %")
    axes.set_ylabel("Block size")
    axes.grid(visible=False)


def _frame(axes: Axes, place: tuple[int, int], bounds: Sequence[str]) -> None:
    """Frame a cell of a table as a limit is drawn, with its bounds at the bottom."""
    from matplotlib.patches import Rectangle

    column, row = place
    corner = (column - 0.47, row - 0.47)
    # White below the dashes: the ground may be as dark as they are.
    axes.add_patch(Rectangle(corner, 0.94, 0.94, fill=False, edgecolor="white", linewidth=2.4))
    axes.add_patch(Rectangle(corner, 0.94, 0.94, fill=False, edgecolor=RED, linewidth=1.6, linestyle=LIMIT_DASHES))
    ground = {"boxstyle": "square,pad=0.05", "facecolor": "white", "edgecolor": "none", "alpha": 0.9}
    axes.text(column, row + 0.42, "\n".join(bounds), ha="center", va="bottom", fontsize=6, color=RED, bbox=ground)


@styled
def bandwidth_bars(cells: Sequence[Cell], source: Source, *, is_steady: bool = True) -> Figure:
    """Sequential throughput by block size, reads beside writes."""
    figure = blank(8.6, 4.2)
    axes = figure.subplots()
    blocks = sorted({cell.block_bytes for cell in cells})
    scale, shown_unit = fitting("B/s", max(cell.value for cell in cells))
    for number, (shift, reads, name) in enumerate(((-0.2, 100, "reads"), (0.2, 0, "writes"))):
        chosen = {cell.block_bytes: cell for cell in cells if cell.read_percent == reads}
        places = {block: place + shift for place, block in enumerate(blocks) if block in chosen}
        heights = [chosen[block].value * scale for block in places]
        bars = axes.bar(list(places.values()), heights, 0.36, **bar_look(number), label=name)
        axes.bar_label(bars, [f"{height:.3g}" for height in heights], fontsize=9, padding=2)
        for block, place in places.items():
            for limit in chosen[block].limits:
                mark_limit(axes, limit, scale, (place - 0.19, place + 0.19))
    axes.set_xticks(range(len(blocks)), [format_quantity(block, "B") for block in blocks])
    axes.set_xlabel("Block size")
    axes.set_ylabel(f"Throughput, {shown_unit}")
    axes.grid(visible=False, axis="x")
    axes.margins(y=0.15)
    put_legend_beside(axes)
    axes.set_title(source.title(f"Sequential throughput {_state(is_steady=is_steady)}"))
    put_caption(figure, source.caption(f"Averages over {_window_words(is_steady=is_steady)}."))
    return figure


@styled
def demand_curve(points: Sequence[DemandPoint], workload: str, source: Source, *, is_steady: bool = True) -> Figure:
    """Latency against IOPS as more is outstanding: the number stands at each point."""
    figure = blank(8.6, 4.9)
    axes = figure.subplots()
    make_y_logarithmic(axes)
    chosen = sorted(points, key=lambda point: point.outstanding)
    per_iops, iops_unit = fitting("IOPS", max(point.iops for point in chosen))
    per_s, latency_unit = fitting("s", max(point.p99_s for point in chosen))
    iops = [point.iops * per_iops for point in chosen]
    axes.plot(iops, [point.average_s * per_s for point in chosen], **line_look(0), marker="o", label="average")
    axes.plot(iops, [point.p99_s * per_s for point in chosen], **line_look(1), marker="s", markersize=4, label="p99")
    for point in chosen:
        place = (point.iops * per_iops, point.average_s * per_s)
        axes.annotate(f"{point.outstanding}", place, (6, -11), textcoords="offset points", fontsize=8.5)
    axes.set_xlim(left=0)
    axes.margins(y=0.15)
    axes.set_xlabel(iops_unit)
    axes.set_ylabel(f"Latency, {latency_unit}")
    draw_limits(axes, [limit for point in chosen for limit in point.limits], per_s)
    draw_limits(axes, [limit for point in chosen for limit in point.iops_limits], per_iops, is_across=False)
    put_legend_beside(axes)
    axes.set_title(source.title(f"Demand curve, {workload}" + ("" if is_steady else ", NOT STEADY")))
    put_caption(figure, source.caption("The number at a point is how many I/Os were outstanding."))
    return figure


def _state(*, is_steady: bool) -> str:
    return "in steady state" if is_steady else "of a drive that is NOT STEADY"


def _window_words(*, is_steady: bool) -> str:
    return "the rounds of the steady window" if is_steady else "the last rounds, which are not steady"


def _name(rounds: RoundsMeasured, *, is_by_depth: bool = False) -> str:
    return rounds.labels["outstanding"] if is_by_depth and "outstanding" in rounds.labels else rounds.labels["block"]


def _mix(reads: int) -> str:
    return f"{reads}/{100 - reads}"


def _rounds_axis(axes: Axes, rounds: int) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.set_xlabel("Round")
    axes.set_xlim(0.5, rounds + 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def criteria_words(series: Sequence[RoundsMeasured]) -> str:
    """The criteria of steady state in a sentence; empty where none of the series was judged by them."""
    criteria = next((found for found in map(criteria_of, series) if found), None)
    if criteria is None:
        return ""
    return (
        f"Steady: over {criteria.rounds} rounds, excursion at most {_percent(criteria.excursion)} and slope at most "
        f"{_percent(criteria.slope)} of the average (SNIA PTS 2.0.2: 20% and 10%)."
    )


def _percent(share: float) -> str:
    """``20%``, ``12.5%``: a criterion is not rounded."""
    return f"{share * 100:.6g}%"


def _thousands(value: float) -> str:
    return format_quantity(value, "IOPS").removesuffix("IOPS").replace(" ", "")


def _microseconds(value_s: float) -> str:
    return f"{value_s * 1e6:,.0f}" if value_s >= 1e-4 else f"{value_s * 1e6:.3g}"
