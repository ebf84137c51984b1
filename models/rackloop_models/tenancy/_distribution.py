"""Distributions of latency, from the buckets of histograms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from rackloop_models.drives import REQUESTS_BEYOND

Buckets = tuple[tuple[int, int], ...]
"""Upper bounds in ns, each with the number of latencies up to it and beyond the one before."""
Exceedance = tuple[tuple[float, float], ...]
"""Of so many requests one takes longer than so many seconds."""

_MOST = 1 << 20


def merged(found: Iterable[Buckets | None]) -> Buckets:
    """The buckets of several histograms together."""
    counts: Counter[int] = Counter()
    for buckets in found:
        for bound_ns, count in buckets or ():
            counts[bound_ns] += count
    return tuple(sorted(counts.items()))


def quantile_ns(buckets: Buckets, share: float) -> int | None:
    """The bound of the bucket in which a share of all latencies is reached; None where there are none."""
    wanted = share * sum(count for _, count in buckets)
    reached = 0
    for bound_ns, count in buckets:
        reached += count
        if reached >= wanted:
            return bound_ns
    return None


def exceedance(buckets: Buckets) -> Exceedance:
    """For 1 in 2, 4, 8 ... requests the latency that it exceeds, as far as enough requests are beyond it."""
    total = sum(count for _, count in buckets)
    points = []
    one_in = 2
    while one_in <= _MOST and total >= REQUESTS_BEYOND * one_in:
        latency_ns = quantile_ns(buckets, 1 - 1 / one_in)
        if latency_ns is not None:
            points.append((float(one_in), latency_ns / 1e9))
        one_in *= 2
    return tuple(points)
