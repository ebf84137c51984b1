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


def compared_shares(f_utils: Array, terms: Sequence[Terms]) -> Array:
    """The f-Utils as Jain's index and the min/max share compare them, of tenants on these ``terms``.

    By weight: f-Util / (weight / mean weight), which is equal where a box serves exactly by weight.

    A tenant of bounded demand has that demand as its standalone maximum, so that its f-Util is n when it is wholly
    served, and more than a tenant that always asks could have. It counts as a part of the ``level``, which is what
    those have who always ask, or 1 where that is more: what they have besides an equal share is what it left to them.

    With pauses that part is min(f-Util, 1): while it asks, an equal share is its due. With a rate it is what was served
    over what was due by max-min fairness, min(demand, equal share): see :func:`_parts_due`. Where all tenants have
    rates, they are compared with each other alone.
    """
    weights = np.asarray([one.weight for one in terms], dtype=np.float64)
    weights = weights / weights.mean()
    bounded = np.asarray([one.is_bounded for one in terms])
    paced = np.asarray([one.has_rate for one in terms])
    shares = np.asarray(f_utils / weights)
    if not bounded.any():
        return shares
    served = f_utils / len(terms)
    if paced.all():
        return np.asarray(served / np.maximum(_dealt(served, weights), _LEAST))
    level = np.ones_like(shares[..., :1])
    if not bounded.all():
        level = np.maximum(level, shares[..., ~bounded].mean(axis=-1, keepdims=True))
    compared = np.where(bounded, level * np.minimum(shares, 1), shares)
    if not paced.any():
        return compared
    taken = np.where(bounded, np.minimum(f_utils, 1), f_utils)[..., ~paced].sum(axis=-1, keepdims=True) / len(terms)
    due = _parts_due(served[..., paced], level * weights[paced] / len(terms), 1 - taken)
    compared[..., paced] = level * np.minimum(served[..., paced] / due, 1)
    return compared


def _parts_due(served: Array, equal: Array, left: Array) -> Array:
    """The parts of their demands that tenants with rates were due, beside others.

    ``served`` are the parts of their demands that they had, ``equal`` are equal shares of the box, and ``left`` is the
    part of the box that the others left. How much of the box a whole demand takes is not known, for none of them ever
    asked for all of it; it is no more than if all that was left was used for what was served. So the part is
    min(1, equal / (left / sum of served)): all of it where nothing was left, for then it takes next to nothing.
    """
    left = np.maximum(left, 0)
    demand = left / np.maximum(np.maximum(left, served.sum(axis=-1, keepdims=True)), _LEAST)
    return np.asarray(equal / np.maximum(demand, equal))


def _dealt(served: Array, weights: Array) -> Array:
    """The parts of their demands that tenants would have had if the sum of those served was dealt out max-min fairly.

    That is min(1, level * weight), with the level at which they come to the same sum.
    """
    levels = np.unique(np.append(0.0, 1 / weights))
    sums = np.minimum(np.outer(levels, weights), 1).sum(axis=-1)
    level = np.interp(served.sum(axis=-1, keepdims=True), sums, levels)
    return np.asarray(np.minimum(level * weights, 1))
