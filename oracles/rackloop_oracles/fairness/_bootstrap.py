"""Ratios of what was measured in rounds, with intervals by bootstrap over the rounds.

A ratio has no interval of Student's: what it is taken of varies as well, and from round to round with it. So whole
rounds are drawn again, with replacement, and the ratio is taken of the means of each draw (Efron and Tibshirani, An
Introduction to the Bootstrap, 1993, chapters 6 and 13). Intervals of a few rounds that end at the plain percentiles of
the draws are too narrow; they end further out here, as far as Student's would (the expanded percentile interval:
Hesterberg, "What Teachers Should Know About the Bootstrap", The American Statistician 69(4), 2015). Of ratios of
log-normal quantities that vary by 10 % they hold 92 in 100 with five rounds, 94 to 95 from seven on.

Rounds are taken to be alike and independent: whether they are in steady state is to be asked before.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rackloop.measurement import Distribution, Interval
from rackloop_oracles.fairness._measures import Array, Measure

LEAST_ROUNDS = 5
"""The fewest rounds that an interval is told of, those of a steady window of SNIA's."""

_RESAMPLES = 10_000
_TAIL = 0.025


@dataclass(frozen=True)
class RoundRatio(Distribution):
    """The ratios of single rounds, and that of all rounds: its ``mean`` is ``overall``, the ratio of the means.

    Of one quantity by round, which is a ratio already, that is the mean of the rounds.

    ``interval`` is the 95 % interval of that, (None, None) where the rounds are too few for one.
    """

    overall: float = math.nan
    interval: Interval = (None, None)

    @property
    def mean(self) -> float:
        """The ratio of the means over all rounds."""
        return self.overall

    def mean_ci95(self) -> Interval:
        """The interval of that ratio, by bootstrap over the rounds."""
        return self.interval


class Rounds:
    """Quantities measured together, one row for each round; ``seed`` gives the same intervals again.

    Raises ValueError where a round has not as many quantities as the first, or there is none.
    """

    def __init__(self, rows: Sequence[Sequence[float]], seed: int, *, resamples: int = _RESAMPLES) -> None:
        self._rows: Array = np.asarray(rows, dtype=np.float64)
        if self._rows.ndim != 2 or not self._rows.size:
            raise ValueError("rounds need the same quantities in each, and one round at least")
        if not np.isfinite(self._rows).all():
            raise ValueError("every quantity of a round is a finite number")
        self._seed = seed
        self._resamples = resamples

    @property
    def n(self) -> int:
        """The number of rounds."""
        return int(self._rows.shape[0])

    def ratio(self, measure: Measure) -> RoundRatio:
        """The ``measure`` of each round, and of the means of all with its interval.

        Raises ValueError where it is undefined in a round.
        """
        of_rounds = sorted(Counter(map(float, measure(self._rows))).items())
        return RoundRatio(
            tuple(value for value, _ in of_rounds),
            tuple(count for _, count in of_rounds),
            overall=float(measure(self._rows.mean(axis=0))),
            interval=self._interval(measure),
        )

    def _interval(self, measure: Measure) -> Interval:
        n = self.n
        if n < LEAST_ROUNDS:
            return (None, None)
        from scipy.special import ndtr, stdtrit

        tail = float(ndtr(math.sqrt(n / (n - 1)) * stdtrit(n - 1, _TAIL)))
        # How often each round was drawn says as much as which were, in little memory.
        drawn = np.random.default_rng(self._seed).multinomial(n, np.full(n, 1 / n), size=self._resamples)
        low, high = np.quantile(measure(drawn @ self._rows / n), (tail, 1 - tail))
        return (float(low), float(high))
