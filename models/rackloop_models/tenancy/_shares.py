"""The shares of tenants over seeds, with intervals by bootstrap: each seed is a round of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rackloop.measurement import Interval
from rackloop_oracles.fairness import RoundRatio, Rounds, TenantShares, Terms, f_util

Rows = Sequence[Sequence[float]]


@dataclass(frozen=True)
class Figure:
    """A ratio of the means over all seeds, and its 95 % interval, (None, None) with fewer than five."""

    value: float
    ci95: Interval = (None, None)

    def is_above(self, other: Figure) -> bool:
        """Whether the whole interval is above that of another; False where one of them has none."""
        low, high = self.ci95[0], other.ci95[1]
        return low is not None and high is not None and low > high


@dataclass(frozen=True)
class Shares:
    """The measures of tenants; ``kinds`` has the mean f-Util of each kind."""

    f_utils: tuple[float, ...]
    jain: Figure
    min_max: Figure
    utilisation: Figure
    kinds: Mapping[str, Figure]


def shares_of(
    kinds: Sequence[str], alone: Rows, together: Rows, seed: int, terms: Mapping[str, Terms] | None = None
) -> Shares:
    """The measures of tenants of ``kinds``, from bandwidths in a row for each seed; ``terms`` are those of kinds.

    Seeds are drawn again with replacement as the fairness oracle draws rounds, alone and together at once; ``seed``
    gives the same draws again. Raises ValueError where a tenant alone did nothing.
    """
    before, after = np.asarray(alone, dtype=np.float64), np.asarray(together, dtype=np.float64)
    names = [str(place) for place in range(len(kinds))]
    of_all = TenantShares(
        dict(zip(names, before.T.tolist(), strict=True)),
        dict(zip(names, after.T.tolist(), strict=True)),
        seed,
        {name: (terms or {}).get(kind, Terms()) for name, kind in zip(names, kinds, strict=True)},
    )
    rounds = Rounds(np.hstack([before, after]).tolist(), seed)
    return Shares(
        f_utils=tuple(float(one) for one in f_util(before.mean(axis=0), after.mean(axis=0))),
        jain=_figure(of_all.jain()),
        min_max=_figure(of_all.min_max()),
        utilisation=_figure(of_all.utilisation()),
        kinds={kind: _figure(rounds.ratio(_MeanOf(kinds, kind))) for kind in dict.fromkeys(kinds)},
    )


class _MeanOf:
    """The mean f-Util of a kind, as a measure of rows of bandwidths alone and together."""

    def __init__(self, kinds: Sequence[str], kind: str) -> None:
        self._n = len(kinds)
        self._places = [place for place, one in enumerate(kinds) if one == kind]

    def __call__(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        found = f_util(rows[..., : self._n], rows[..., self._n :])
        return np.asarray(found[..., self._places].mean(axis=-1))


def _figure(found: RoundRatio) -> Figure:
    return Figure(found.mean, found.mean_ci95())
