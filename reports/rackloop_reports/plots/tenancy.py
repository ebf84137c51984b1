"""Plots of tenants that share a drive: their shares, what each waits, and what neighbours leave of a victim's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rackloop.measurement import Interval
from rackloop_reports.plots._limits import LimitLine, draw_limits, mark_limit
from rackloop_reports.plots._style import (
    BLACK,
    BLUE,
    GREY,
    LINES,
    Source,
    bar_look,
    blank,
    fitting,
    make_y_logarithmic,
    put_caption,
    put_legend_beside,
    styled,
)
from rackloop_reports.plots.characterize import shown

_INTERVALS = "Bars: 95 % intervals by bootstrap over the rounds."
_BAR = 0.8
_MARKERS = "os^DvP"


@dataclass(frozen=True)
class Figured:
    """A figure with its interval and its limits."""

    value: float
    interval: Interval = (None, None)
    limits: Sequence[LimitLine] = ()


@dataclass(frozen=True)
class TenantShare:
    """The share of one tenant: bytes a second ``alone`` and ``together`` with the others, and its f-Util.

    ``weight`` is the one by which it is to be served, beside those of the others. ``has_bounded_demand`` says that it
    has a rate or pauses, so that alone it asks for less than all it can get.
    """

    name: str
    alone: float
    together: float
    f_util: Figured
    weight: float = 1.0
    has_bounded_demand: bool = False


@dataclass(frozen=True)
class TenantLatency:
    """The latency quantiles of one tenant in seconds, by the phase and the quantile: ``("alone", "p99")``.

    ``phases`` are all those that it had, also those without a quantile.
    """

    name: str
    quantiles: Mapping[tuple[str, str], Figured] = field(default_factory=dict)
    phases: Sequence[str] = ()


@dataclass(frozen=True)
class BesideNeighbours:
    """A victim beside neighbours of one kind: what it keeps of its bandwidth, and how many times its p99 is."""

    neighbours: str
    kept: Figured
    p99_factor: Figured | None = None


@styled
def tenant_shares(
    tenants: Sequence[TenantShare],
    overall: Sequence[tuple[str, Figured]],
    source: Source,
    meanwhile: str = "nothing",
) -> Figure:
    """Each tenant's bandwidth with its ideal, and beside it its f-Util.

    The ideal is an equal part of what the tenant has alone, an f-Util of 1, times its weight over the mean weight. One
    with a rate or pauses has none, and beside it that part is the least that is due to the others. ``overall`` are the
    figures of all tenants, by name; ``meanwhile`` is the work of the rack while all were together.
    """
    figure = blank(max(9.6, 3.6 + 1.3 * len(tenants)), 4.9)
    left, right = figure.subplots(1, 2)
    places = range(len(tenants))
    mean = fmean(one.weight for one in tenants)
    ideals = {place: one.weight / mean for place, one in enumerate(tenants) if not one.has_bounded_demand}
    parts = [tenants[place].alone / len(tenants) * ideal for place, ideal in ideals.items()]
    scale, unit = fitting("B/s", max([*(one.together for one in tenants), *parts]))
    left.bar(places, [one.together * scale for one in tenants], _BAR, **bar_look(0), label="together")
    are_weighted = len({one.weight for one in tenants}) > 1
    is_ideal = len(ideals) == len(tenants)
    starts, ends = ([place + end for place in ideals] for end in (-_BAR / 2, _BAR / 2))
    name = _name_of_line(is_ideal=is_ideal, is_drawn=bool(ideals), are_weighted=are_weighted)
    width = 2 if ideals else 0
    left.hlines([part * scale for part in parts], starts, ends, BLACK, LINES[1], label=name, linewidth=width)
    left.set_ylabel(f"Bandwidth, {unit}")
    left.set_ylim(bottom=0)
    if are_weighted or not is_ideal:
        right.hlines(list(ideals.values()), starts, ends, BLACK, LINES[1], linewidth=1.2, zorder=1)
    else:
        right.axhline(1, color=BLACK, linewidth=1.2, linestyle=LINES[1], zorder=1)
    for place, one in enumerate(tenants):
        _point(right, place, one.f_util)
    said_of_line = (
        f" ({'ideal' if is_ideal else 'least due'}: {'by weight' if are_weighted else '1'})" if ideals else ""
    )
    right.set_ylabel(f"f-Util{said_of_line}")
    most = max([*(one.f_util.interval[1] or one.f_util.value for one in tenants), *ideals.values()])
    right.set_ylim(0, max(1.25, 1.1 * most))
    # One limit on all is one line; others are each tenant's own.
    limits = {tuple(one.f_util.limits) for one in tenants}
    if len(limits) == 1:
        draw_limits(right, next(iter(limits)), 1.0)
    else:
        for place, one in enumerate(tenants):
            for limit in one.f_util.limits:
                mark_limit(right, limit, 1.0, (place - _BAR / 2, place + _BAR / 2))
    for axes in (left, right):
        _name_tenants(axes, [one.name for one in tenants])
    figure.suptitle(source.title("Shares of tenants"), x=0.012, ha="left", fontweight="bold")
    said = "; ".join(f"{name} {_said(of)}" for name, of in overall)
    put_caption(figure, source.caption(f"Meanwhile: {meanwhile}.", f"{said}." if said else "", _INTERVALS), shown(left))
    return figure


def _name_of_line(*, is_ideal: bool, is_drawn: bool, are_weighted: bool) -> str:
    by_weight = ", by weight" if are_weighted else ""
    if is_ideal:
        return f"ideal: alone / number of tenants{by_weight}"
    if not is_drawn:
        return "no ideal: all have rates or pauses"
    return f"least due: alone / number of tenants{by_weight}; no ideal with rates or pauses"


@styled
def tenant_latency(tenants: Sequence[TenantLatency], source: Source) -> Figure:
    """The latency of each tenant by quantile, alone and together with the others."""
    names = list(dict.fromkeys(name for one in tenants for _, name in one.quantiles))
    phases = list(dict.fromkeys(phase for one in tenants for phase, _ in one.quantiles))
    figure = blank(max(7.0, 2.4 + (1.1 + 0.35 * len(phases)) * len(tenants)), 4.9)
    axes = figure.subplots()
    make_y_logarithmic(axes)
    scale, unit = fitting("s", max(of.value for one in tenants for of in one.quantiles.values()))
    width = _BAR / len(phases)
    limits: dict[LimitLine, None] = {}
    for number, phase in enumerate(phases):
        label = phase
        for place, one in enumerate(tenants):
            middle = place + (number - (len(phases) - 1) / 2) * width
            found = [(name, one.quantiles[phase, name]) for name in names if (phase, name) in one.quantiles]
            if not found:
                continue
            look = bar_look(number)
            ends = [of.value * scale for _, of in found]
            axes.plot([middle] * len(ends), ends, color=look["facecolor"], linewidth=3, alpha=0.45)
            axes.plot(
                [middle] * len(ends),
                ends,
                color=look["facecolor"],
                marker=_MARKERS[number % len(_MARKERS)],
                ls="",
                label=label,
            )
            label = "_again"
            for name, of in found:
                axes.annotate(
                    _QUANTILE_WORDS.get(name, name),
                    (middle, of.value * scale),
                    (5, 0),
                    textcoords="offset points",
                    va="center",
                    fontsize=7,
                    color=GREY,
                )
                limits |= dict.fromkeys(of.limits)
    axes.set_ylabel(f"Latency, {unit}")
    _name_tenants(axes, [one.name for one in tenants])
    draw_limits(axes, list(limits), scale)
    axes.set_title(source.title("Latency of tenants"))
    put_legend_beside(axes)
    put_caption(figure, source.caption("Means over the rounds of each round's quantile.", _missing(tenants, names)))
    return figure


def _missing(tenants: Sequence[TenantLatency], names: Sequence[str]) -> str:
    """The quantiles that tenants lack in some phase, with the reason; empty where all are there."""
    lacking = []
    for one in tenants:
        phases = list(dict.fromkeys((*one.phases, *(phase for phase, _ in one.quantiles))))
        for name in dict.fromkeys((*_EXPECTED, *names)):
            if without := [phase for phase in phases if (phase, name) not in one.quantiles]:
                said = ", ".join(without[:_PHASES_SAID])
                more = f" and {len(without) - _PHASES_SAID} more" if len(without) > _PHASES_SAID else ""
                lacking.append(f"{_QUANTILE_WORDS[name]} of {one.name.partition(chr(10))[0]} ({said}{more})")
    if not lacking:
        return ""
    why = "a round had too few I/Os beyond it (longer rounds have more), or not all that were due were issued"
    return f"Not shown, because {why}: {'; '.join(lacking)}."


# What people look for, also where no tenant has it.
_EXPECTED = ("p50", "p99")
_PHASES_SAID = 6
_QUANTILE_WORDS = {"p50": "p50", "p99": "p99", "p999": "p99.9"}


@styled
def isolation_sheet(cases: Sequence[BesideNeighbours], source: Source) -> Figure:
    """A victim's bandwidth and latency beside neighbours of each kind, over those alone."""
    with_latency = [case for case in cases if case.p99_factor is not None]
    figure = blank(11.5 if with_latency else 7.5, 2.2 + 0.42 * len(cases))
    drawn = figure.subplots(1, 2 if with_latency else 1, squeeze=False, sharey=True)[0]
    names = [case.neighbours for case in cases]
    panels = [("Bandwidth kept (ideal: 1)", [case.kept for case in cases])]
    if with_latency:
        panels.append(("p99 latency, times that alone (ideal: 1)", [case.p99_factor for case in cases]))  # type: ignore[misc]
    for axes, (words, found) in zip(drawn, panels, strict=True):
        axes.axvline(1, color=BLACK, linewidth=1.2, linestyle=LINES[1], zorder=1)
        limits: dict[LimitLine, None] = {}
        for place, of in enumerate(found):
            if of is None:
                continue
            low, high = of.interval
            bars = [[of.value - (of.value if low is None else low)], [(of.value if high is None else high) - of.value]]
            axes.errorbar([of.value], [place], xerr=bars, color=BLUE, marker="o", markersize=5, capsize=3, ls="")
            limits |= dict.fromkeys(of.limits)
        axes.set_xlabel(words)
        axes.set_xlim(left=0)
        draw_limits(axes, list(limits), 1.0, is_across=False)
    drawn[0].set_yticks(range(len(names)), names)
    drawn[0].set_ylim(len(names) - 0.5, -0.5)
    figure.suptitle(source.title("A tenant beside its neighbours"), x=0.012, ha="left", fontweight="bold")
    put_caption(figure, source.caption(_INTERVALS))
    return figure


def _point(axes: Axes, place: int, of: Figured) -> None:
    low, high = of.interval
    bars = [[of.value - (of.value if low is None else low)], [(of.value if high is None else high) - of.value]]
    axes.errorbar([place], [of.value], bars, color=BLUE, marker="o", markersize=6, capsize=4, ls="")
    axes.annotate(f"{of.value:.2f}", (place, of.value), (8, 0), textcoords="offset points", va="center", fontsize=8)


def _name_tenants(axes: Axes, names: Sequence[str]) -> None:
    axes.set_xticks(range(len(names)), names, fontsize=8)
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.grid(visible=False, axis="x")


def _said(of: Figured) -> str:
    low, high = of.interval
    between = "" if low is None or high is None else f" ({low:.3g} to {high:.3g})"
    return f"{of.value:.3g}{between}"
