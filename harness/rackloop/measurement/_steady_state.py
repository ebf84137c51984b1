"""Steady state of a drive: whether what it does still changes, from rounds of one measured quantity.

SNIA, Solid State Storage Performance Test Specification (PTS) 2.0.2, definition of "Steady State": over a measurement
window of five rounds the quantity ranges over at most 20 % of its average, and the best linear fit through it over at
most 10 %. Rounds are counted from 1, as PTS reports count them.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Criteria:
    """The criteria of steady state: the rounds of a window, and the shares of its average it may range and drift over.

    The defaults are those of the PTS. Raises ValueError for fewer than two rounds and for shares that are negative.
    """

    rounds: int = 5
    excursion: float = 0.20
    slope: float = 0.10

    def __post_init__(self) -> None:
        if self.rounds < 2:
            raise ValueError(f"a window of {self.rounds} rounds has no slope: it needs at least 2")
        if not (self.excursion >= 0 and self.slope >= 0):
            raise ValueError(f"an excursion of {self.excursion:g} and a slope of {self.slope:g}: both are from 0 on")


PTS = Criteria()


@dataclass(frozen=True)
class Window:
    """Some rounds in a row, from ``first`` to ``last``, and how steady they are.

    ``excursion`` is the largest value less the smallest, ``slope_excursion`` the same of the least-squares line
    ``start + slope * (round - first)``; both as shares of ``average``, infinite where that is 0.
    """

    first: int
    last: int
    average: float
    excursion: float
    start: float
    slope: float
    slope_excursion: float

    @classmethod
    def over(cls, values: Sequence[float], last: int, rounds: int) -> Window:
        """The window of ``rounds`` rounds that ends with round ``last`` of ``values``."""
        first = last - rounds + 1
        seen = values[first - 1 : last]
        if first < 1 or len(seen) != rounds:
            raise ValueError(f"there is no window of {rounds} rounds that ends with round {last} of {len(values)}")
        if not all(math.isfinite(value) and value >= 0 for value in seen):
            raise ValueError(f"rounds {first} to {last} hold {list(seen)}: each has to be finite and not negative")
        average = statistics.fmean(seen)
        slope, start = statistics.linear_regression(range(rounds), seen)
        return cls(
            first=first,
            last=last,
            average=average,
            excursion=(max(seen) - min(seen)) / average if average else math.inf,
            start=start,
            slope=slope,
            slope_excursion=abs(slope) * (rounds - 1) / average if average else math.inf,
        )

    def meets(self, criteria: Criteria) -> bool:
        """Whether the window is steady."""
        return self.excursion <= criteria.excursion and self.slope_excursion <= criteria.slope

    def is_as(self, other: Window, criteria: Criteria) -> bool:
        """Whether this window's average lies in the band around the other's that a steady window ranges over."""
        return abs(self.average - other.average) <= criteria.excursion / 2 * other.average


@dataclass(frozen=True)
class SteadySpan:
    """A stretch of steady state: the window that attained it, and the round that left it, None where none did."""

    attained: Window
    left: int | None


def attained(values: Sequence[float], criteria: Criteria = PTS) -> Window | None:
    """The first steady window; None where there is none (yet)."""
    return next((window for window in _windows(values, criteria) if window.meets(criteria)), None)


def steady_spans(values: Sequence[float], criteria: Criteria = PTS) -> list[SteadySpan]:
    """Every stretch of steady state, in order.

    A stretch is left with the first round whose window is not steady any more, or whose window, steady in itself, has
    drifted: its average is no longer within half the allowed excursion of the average that attained it. The next
    steady window attains a new one, be it that very window: steady is what a window is, whatever was before it. So the
    last stretch was not left where, and only where, the last window is steady.
    """
    spans: list[SteadySpan] = []
    since: Window | None = None
    for window in _windows(values, criteria):
        steady = window if window.meets(criteria) else None
        if since is not None and not (steady and steady.is_as(since, criteria)):
            spans.append(SteadySpan(since, window.last))
            since = None
        since = since or steady
    return spans if since is None else [*spans, SteadySpan(since, None)]


def why_not_steady(values: Sequence[float], criteria: Criteria = PTS) -> str:
    """In words, how far the last window of ``values`` is from steady. Raises ValueError where it is steady."""
    if len(values) < criteria.rounds:
        return f"{len(values)} rounds were measured, a window has {criteria.rounds}"
    last = Window.over(values, len(values), criteria.rounds)
    if not last.average:
        return f"rounds {last.first} to {last.last} measured nothing at all"
    if last.meets(criteria):
        raise ValueError(f"rounds {last.first} to {last.last} are steady")
    return (
        f"rounds {last.first} to {last.last} range over {last.excursion:.1%} of their average (at most "
        f"{criteria.excursion * 100:g}%) and drift over {last.slope_excursion:.1%} (at most {criteria.slope * 100:g}%)"
    )


def _windows(values: Sequence[float], criteria: Criteria) -> Iterator[Window]:
    for last in range(criteria.rounds, len(values) + 1):
        yield Window.over(values, last, criteria.rounds)
