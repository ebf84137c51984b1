"""The terms on which tenants share a box, and their f-Utils as an index compares them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rackloop_oracles.fairness._measures import Array

# They share by the weights of tenants; others have no use for them.
_WEIGHING = frozenset({"flashfq", "parda"})
# Divides nothing by itself.
_LEAST = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class Terms:
    """The terms of a tenant: its ``weight`` beside the others', and whether its demand ``is_bounded``.

    It is with a rate (``has_rate``), or with pauses: the tenant asks for no more than that, and has it whole when
    alone. With pauses it asks for all it can get between them, with a rate it never does. Raises ValueError where the
    weight is not above 0, or what has a rate is not bounded.
    """

    weight: float = 1.0
    is_bounded: bool = False
    has_rate: bool = False

    @classmethod
    def through(cls, scheduler: str | None, weight: float, *, is_bounded: bool, has_rate: bool = False) -> Terms:
        """Those of a tenant through a scheduler of this kind, which may have no use for its weight."""
        return cls(weight if scheduler in _WEIGHING else 1.0, is_bounded, has_rate)

    def __post_init__(self) -> None:
        if not self.weight > 0:
            raise ValueError(f"the weight of a tenant must be above 0, found {self.weight}")
        if self.has_rate and not self.is_bounded:
            raise ValueError("a tenant with a rate asks for no more than that: its demand is bounded")


def compared_shares(f_utils: Array, terms: Sequence[Terms], alone: Array | None = None) -> Array:
    """The f-Utils as Jain's index and the min/max share compare them, of tenants on these ``terms``.

    By weight: f-Util / (weight / mean weight), which is equal where a box serves exactly by weight.

    A tenant of bounded demand has that demand as its standalone maximum, so that its f-Util is n when it is wholly
    served, and more than a tenant that always asks could have. It counts as a part of the ``level``, which is what
    those have who always ask, or 1 where that is more, or what max-min fairness gives them (see :func:`_demands`).

    With pauses that part is min(f-Util, 1): while it asks, an equal share is its due. With a rate it is what was served
    over what was due by max-min fairness, min(demand, equal share). Where all tenants have rates, they are compared
    with each other alone. ``alone`` are the tenants' bandwidths alone, above 0, of the shape of ``f_utils``: rates
    beside others ask for as much of the box, relative to each other; for equally much where it is None.
    """
    weights = np.asarray([one.weight for one in terms], dtype=np.float64)
    weights = weights / weights.mean()
    bounded = np.asarray([one.is_bounded for one in terms])
    paced = np.asarray([one.has_rate for one in terms])
    shares = np.asarray(f_utils / weights)
    if not bounded.any():
        return shares
    n = len(terms)
    served = f_utils / n
    if paced.all():
        return np.asarray(served / np.maximum(_dealt(served, weights), _LEAST))
    level = np.ones_like(shares[..., :1])
    if not bounded.all():
        level = np.maximum(level, shares[..., ~bounded].mean(axis=-1, keepdims=True))
    if not paced.any():
        return np.where(bounded, level * np.minimum(shares, 1), shares)
    sizes = np.ones_like(f_utils) if alone is None else alone
    taken = np.where(bounded, np.minimum(served, 1 / n), served)
    left = 1 - taken[..., ~paced].sum(axis=-1, keepdims=True)
    demands = np.ones_like(served)
    demands[..., paced] = _demands(sizes[..., paced], served[..., paced], left)
    # Tenants with pauses have what they took: the others are due the rest.
    asking = paced | ~bounded
    rest = 1 - taken[..., ~asking].sum(axis=-1, keepdims=True)
    level = np.maximum(level, _fair_level(demands[..., asking], weights[asking] / n, rest))
    equal = level * weights / n
    due = equal / np.maximum(demands, equal)
    return np.where(bounded, level * np.minimum(np.where(paced, served / due, shares), 1), shares)


def _demands(sizes: Array, served: Array, left: Array) -> Array:
    """The parts of the box that the whole demands of tenants with rates would take, beside others.

    ``sizes`` are their demands in bytes, ``served`` the parts of them that they had, and ``left`` is the part of the
    box that the others left. How much of the box a demand takes is not known, for none of them ever asked for all of
    it. Assumed is that all that was left was used, and that a byte takes as much of the box whichever rate it is of: so
    a rate takes min(1, left * its size / sum of the bytes served), which is next to nothing where nothing was left.
    """
    sizes = sizes / sizes.sum(axis=-1, keepdims=True)
    whole = np.maximum(left, 0) * sizes
    return np.asarray(whole / np.maximum(np.maximum(whole, (sizes * served).sum(axis=-1, keepdims=True)), _LEAST))


def _fair_level(demands: Array, weights: Array, box: Array) -> Array:
    """The level at which tenants that have min(demand, level * weight) have the ``box`` among them.

    It is the largest level of those at which some are wholly served, from the least demand for its weight upwards, and
    the others have what these leave by their weights.
    """
    order = np.argsort(demands / weights, axis=-1)
    demands, weights = np.take_along_axis(demands, order, axis=-1), weights[order]
    served = demands.cumsum(axis=-1) - demands
    others = weights[..., ::-1].cumsum(axis=-1)[..., ::-1]
    return np.asarray(((box - served) / others).max(axis=-1, keepdims=True))


def _dealt(served: Array, weights: Array) -> Array:
    """The parts of their demands that tenants would have had if the sum of those served was dealt out max-min fairly.

    That is min(1, level * weight), with the level at which they come to the same sum.
    """
    levels = np.unique(np.append(0.0, 1 / weights))
    sums = np.minimum(np.outer(levels, weights), 1).sum(axis=-1)
    level = np.interp(served.sum(axis=-1, keepdims=True), sums, levels)
    return np.asarray(np.minimum(level * weights, 1))
