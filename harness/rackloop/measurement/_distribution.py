"""Samples of one quantity, and what may honestly be said of their quantiles.

Confidence intervals on quantiles are distribution-free, from order statistics: the number of samples below the
true q-quantile is Binomial(n, q), so the l-th and u-th smallest samples enclose it with a probability that depends
on n and q alone (David and Nagaraja, Order Statistics, section 7.1). Where n is too small for an upper (or lower)
bound at 95 %, that bound is None and the quantile is not claimed.

Samples that were taken together (several drives of one map change) are late together, and count as what was drawn
independently: the cluster. The ranks then come from the number of clusters and are mapped onto the pooled samples by
their share, which is Woodruff's interval (JASA 47, 1952) with the largest design effect there can be (Kish, Survey
Sampling, 1965): too wide where the samples of a cluster differ, exact where they are all alike.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate

Interval = tuple[float | None, float | None]

_TAIL = 0.025
# More than anything is measured with.
_MOST_DRAWS = 100_000_000


@dataclass(frozen=True)
class Distribution:
    """Distinct values, ascending, and how often each was seen.

    Exact samples and the bins of a high dynamic range histogram (fio's json+, rackprobe's) both fit: a bin stands
    as its value with its count. ``clusters`` is how many independent draws the samples come from, None where each
    sample is one. Raises ``ValueError`` when empty, not ascending, or not finite.
    """

    values: tuple[float, ...]
    counts: tuple[int, ...]
    clusters: int | None = None
    _cumulative: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.values or len(self.values) != len(self.counts):
            raise ValueError("a distribution needs at least one value, and one count for each")
        if not all(map(math.isfinite, self.values)):
            bad = ", ".join(str(value) for value in self.values if not math.isfinite(value))
            raise ValueError(f"every sample of a distribution is a finite number; found {bad}")
        if any(low >= high for low, high in zip(self.values, self.values[1:], strict=False)):
            raise ValueError("the values of a distribution are distinct and ascending")
        if min(self.counts) < 1:
            raise ValueError("every count is at least 1")
        if self.clusters is not None and self.clusters < 1:
            raise ValueError("samples come from one independent draw at least")
        object.__setattr__(self, "_cumulative", tuple(accumulate(self.counts)))

    @classmethod
    def of(cls, samples: Iterable[float], clusters: int | None = None) -> Distribution:
        """The distribution of these samples."""
        return cls.from_bins(Counter(samples), clusters)

    @classmethod
    def from_bins(cls, bins: Mapping[float, int], clusters: int | None = None) -> Distribution:
        """The distribution of a histogram: value -> count; empty bins are left out."""
        seen = sorted((value, count) for value, count in bins.items() if count)
        return cls(tuple(value for value, _ in seen), tuple(count for _, count in seen), clusters)

    @classmethod
    def pooled(cls, parts: Iterable[Distribution]) -> Distribution:
        """The samples of all parts together."""
        bins: Counter[float] = Counter()
        draws = 0
        for part in parts:
            bins.update(dict(zip(part.values, part.counts, strict=True)))
            draws += part.draws
        return cls.from_bins(bins, draws if draws != bins.total() else None)

    @property
    def n(self) -> int:
        """The number of samples."""
        return self._cumulative[-1]

    @property
    def draws(self) -> int:
        """The number of independent draws that the samples are worth."""
        return self.n if self.clusters is None else min(self.clusters, self.n)

    @property
    def minimum(self) -> float:
        """The smallest sample."""
        return self.values[0]

    @property
    def maximum(self) -> float:
        """The largest sample."""
        return self.values[-1]

    @property
    def mean(self) -> float:
        """The arithmetic mean."""
        return math.fsum(value * count for value, count in zip(self.values, self.counts, strict=True)) / self.n

    def order_statistic(self, rank: int) -> float:
        """The ``rank``-th smallest sample, counted from 1."""
        if not 1 <= rank <= self.n:
            raise ValueError(f"rank {rank} of {self.n} samples")
        return self.values[bisect_left(self._cumulative, rank)]

    def quantile(self, q: float) -> float:
        """The smallest sample with at least a share ``q`` of all samples at or below it (0 < q < 1)."""
        return self.order_statistic(max(1, math.ceil(q * self.n - 1e-9)))

    def quantile_ci95(self, q: float) -> Interval:
        """An interval that holds the true ``q``-quantile with at least 95 %; None where the draws cannot bound it."""
        from scipy.special import bdtr

        n = self.draws

        def share_below(rank: int) -> float:
            """The chance that at most ``rank`` draws lie below the quantile."""
            return float(bdtr(rank, n, q))

        low = bisect_right(range(n), _TAIL, key=share_below)
        high = bisect_left(range(n), 1 - _TAIL, key=share_below) + 1
        # A draw has self.n / n samples: the first of the low one, the last of the high one.
        return (
            self.order_statistic((low - 1) * self.n // n + 1) if low >= 1 else None,
            self.order_statistic(-(-high * self.n // n)) if high <= n else None,
        )

    @staticmethod
    def fewest_draws(q: float) -> int:
        """The fewest draws with which :meth:`quantile_ci95` is closed at both ends."""
        return math.ceil(math.log(_TAIL) / math.log(max(q, 1 - q)))

    @staticmethod
    def draws_to_bear(q: float, outliers: int) -> int:
        """The fewest draws with which so many of the largest lie beyond the upper end of :meth:`quantile_ci95`."""
        from scipy.special import bdtr

        def share_below(n: int) -> float:
            return float(bdtr(n - outliers - 1, n, q))

        return bisect_left(range(_MOST_DRAWS), 1 - _TAIL, lo=outliers + 1, key=share_below)

    def mean_ci95(self) -> Interval:
        """A Student t interval for the mean; (None, None) with fewer than two independent draws."""
        n = self.draws
        if n < 2:
            return (None, None)
        from scipy.special import stdtrit

        mean = self.mean
        squares = math.fsum(count * (value - mean) ** 2 for value, count in zip(self.values, self.counts, strict=True))
        half = float(stdtrit(n - 1, 1 - _TAIL)) * math.sqrt(squares / self.n / (n - 1))
        return (mean - half, mean + half)
