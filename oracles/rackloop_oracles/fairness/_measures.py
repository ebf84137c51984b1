"""Measures of a fair share, from bandwidths of tenants alone and together.

An array has one quantity in each place of its last axis, such as the bandwidth of one tenant; the axes before it,
rounds or resamples of them, are kept. Each measure raises ValueError where it is undefined.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rackloop.measurement import Distribution

Array = NDArray[np.float64]
Measure = Callable[[Array], Array]
"""A measure of the last axis of an array."""


def standalone_maximum(tenant: str, served: Mapping[str, ArrayLike]) -> Array:
    """The standalone maximum of ``tenant``: its bandwidth with its own load while no other tenant is on the box.

    ``served`` has the bandwidths of every tenant of a run without others, by name, of one round or of many. So as many
    tenants of the same load together are no standalone maximum: they keep more I/O outstanding than one of them does.
    Raises ValueError where another tenant was served in that run, or this one was not in every round.
    """
    if list(served) != [tenant]:
        among = ", ".join(served) or "nothing"
        raise ValueError(f"a standalone maximum is of one tenant alone: {tenant} was to be measured, {among} was")
    alone = np.asarray(served[tenant], dtype=np.float64)
    _require_positive(f"the standalone maximum of {tenant}", alone)
    return alone


def f_util(alone: Array, together: Array) -> Array:
    """The fair utilisation of each tenant: its bandwidth, over an equal share of its standalone maximum.

    f-Util(i) = bandwidth_i / (standalone maximum_i / number of tenants), ideally 1: Min et al., Gimbal, SIGCOMM 2021,
    section 5.1. So a tenant of large reads is held against large reads, and one of small writes against small writes.
    Neither a weight nor a bounded demand is in it: an index of tenants that have one is of :func:`compared_shares`.
    """
    _require_positive("the standalone maximum of each tenant", alone)
    return np.asarray(together * alone.shape[-1] / alone)


def jain_index(shares: Array) -> Array:
    """The index of fairness: 1 where all shares are equal, 1/n where one of n has everything.

    (sum x)^2 / (n sum x^2): Jain, Chiu and Hawe, "A Quantitative Measure of Fairness and Discrimination for Resource
    Allocation in Shared Computer Systems", DEC Research Report TR-301, 1984.
    """
    _require_some("share", shares)
    largest = shares.max(axis=-1, keepdims=True)
    scaled = shares / largest  # squares of very small and very large shares stay numbers
    return np.asarray(scaled.sum(axis=-1) ** 2 / (shares.shape[-1] * (scaled**2).sum(axis=-1)))


def min_max_share(shares: Array) -> Array:
    """The smallest share over the largest: 1 where all are equal, 0 where one tenant has nothing."""
    _require_some("share", shares)
    return np.asarray(shares.min(axis=-1) / shares.max(axis=-1))


def utilisation(alone: Array, together: Array) -> Array:
    """The work done for all tenants together, each counted by its own standalone maximum.

    The sum of bandwidth_i / standalone maximum_i, which is the mean of the f-Utils: 1 where a box that serves all at
    once does as much as one that serves each by itself for an equal part of the time; less is lost to interference.
    """
    return np.asarray(f_util(alone, together).mean(axis=-1))


def ratio(over_under: Array) -> Array:
    """The first quantity over the second.

    Of a victim's bandwidth beside neighbours and alone it is the part that isolation keeps.
    """
    _require_positive("what a ratio is taken of", over_under[..., 1])
    return np.asarray(over_under[..., 0] / over_under[..., 1])


def within_objective(
    latency_s: Distribution, objective_s: float, late_with: Callable[[float], float] = lambda _seconds: 0.0
) -> int:
    """The number of I/Os that were no slower than their objective (SLO); over all, it is the attainment.

    ``late_with`` has what is taken off a latency before, such as what the machine may have added to it.
    """
    pairs = zip(latency_s.values, latency_s.counts, strict=True)
    return sum(count for value, count in pairs if value - late_with(value) <= objective_s)


def _require_positive(what: str, found: Array) -> None:
    if not (np.isfinite(found).all() and (found > 0).all()):
        raise ValueError(f"{what} must be above 0 in every round: nothing is a share of nothing")


def _require_some(what: str, found: Array) -> None:
    if not (np.isfinite(found).all() and (found >= 0).all() and (found.sum(axis=-1) > 0).all()):
        raise ValueError(f"every {what} is a finite number of 0 or more, and one of them is above 0")
