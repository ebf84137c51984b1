"""The terms on which tenants share a box, and their f-Utils as an index compares them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rackloop_oracles.fairness._measures import Array

# They share by the weights of tenants; others have no use for them.
_WEIGHING = frozenset({"flashfq", "parda"})


@dataclass(frozen=True)
class Terms:
    """The terms of a tenant: its ``weight`` beside the others', and whether its demand ``is_bounded``.

    It is with a rate, or with pauses: the tenant asks for no more than that, and has it whole when alone. Raises
    ValueError where the weight is not above 0.
    """

    weight: float = 1.0
    is_bounded: bool = False

    @classmethod
    def through(cls, scheduler: str | None, weight: float, *, is_bounded: bool) -> Terms:
        """Those of a tenant through a scheduler of this kind, which may have no use for its weight."""
        return cls(weight if scheduler in _WEIGHING else 1.0, is_bounded)

    def __post_init__(self) -> None:
        if not self.weight > 0:
            raise ValueError(f"the weight of a tenant must be above 0, found {self.weight}")


def compared_shares(f_utils: Array, terms: Sequence[Terms]) -> Array:
    """The f-Utils as Jain's index and the min/max share compare them, of tenants on these ``terms``.

    By weight: f-Util / (weight / mean weight), which is equal where a box serves exactly by weight.

    A tenant of bounded demand has that demand as its standalone maximum, so that its f-Util is n when it is wholly
    served, and more than a tenant that always asks could have. It counts as min(f-Util, 1) of what those have who
    always ask, or of 1 where that is more: what they have besides an equal share is what it left to them.
    """
    weights = np.asarray([one.weight for one in terms], dtype=np.float64)
    bounded = np.asarray([one.is_bounded for one in terms])
    shares = np.asarray(f_utils / (weights / weights.mean()))
    if not bounded.any():
        return shares
    level = np.ones_like(shares[..., :1])
    if not bounded.all():
        level = np.maximum(level, shares[..., ~bounded].mean(axis=-1, keepdims=True))
    return np.where(bounded, level * np.minimum(shares, 1), shares)
