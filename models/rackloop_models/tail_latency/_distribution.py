"""A probability mass function of latencies."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LatencyPmf:
    """Latencies in seconds, ascending, and the probability of each.

    ``truncated`` is the probability that was left out, of what is rarer than anything that is asked for; it counts as
    longer than every latency here.
    """

    seconds: Floats
    masses: Floats
    truncated: float

    @classmethod
    def of(cls, seconds: Floats, masses: Floats, truncated: float) -> LatencyPmf:
        """Latencies in any order, those that are the same to the nanosecond put together."""
        ns, which = np.unique(np.rint(seconds * 1e9).astype(np.int64), return_inverse=True)
        together = np.asarray(np.bincount(which, weights=masses), dtype=np.float64)
        seen = together > 0
        return cls(ns[seen].astype(np.float64) / 1e9, together[seen], truncated)

    @property
    def total(self) -> float:
        """The probability of all latencies here: 1 less what was left out."""
        return math.fsum(self.masses)

    @property
    def mean(self) -> float:
        """The mean, of what was not left out."""
        return math.fsum(self.seconds * self.masses) / self.total

    def quantile(self, q: float) -> float:
        """The shortest latency that is not exceeded with a probability of ``q`` (eq. 4).

        From the upper end: what exceeds it is summed, not taken from 1. Raises ValueError where ``q`` is not between 0
        and 1, or lies within what was left out.
        """
        if not 0 < q < 1:
            raise ValueError(f"a quantile is between 0 and 1, found {q}")
        rest = 1 - q
        if self.truncated > rest:
            raise ValueError(f"{self.truncated:g} of the probability was left out, more than lies beyond quantile {q}")
        exceeded = self.truncated + np.concatenate((np.cumsum(self.masses[:0:-1])[::-1], (0.0,)))
        return float(self.seconds[np.argmax(exceeded <= rest * (1 + 1e-12))])

    def cumulative(self, seconds: Floats) -> Floats:
        """The probability of latencies up to each of these."""
        sums = np.concatenate(((0.0,), np.cumsum(self.masses)))
        return np.asarray(sums[np.searchsorted(self.seconds, seconds, side="right")])
