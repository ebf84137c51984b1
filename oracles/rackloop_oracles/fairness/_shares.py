"""The shares of tenants over rounds: each alone, then all together, in every round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from rackloop_oracles.fairness._bootstrap import RoundRatio, Rounds
from rackloop_oracles.fairness._measures import Array, Measure, f_util, jain_index, min_max_share, utilisation
from rackloop_oracles.fairness._terms import Terms, compared_shares


class TenantShares:
    """The measures of some tenants, from their bandwidths in as many rounds ``alone`` as ``together``.

    What was taken in one round stays together when rounds are drawn again, so that a drive that is slower in one round
    is slower in both. The ``terms`` of those that have a weight or a bounded demand bear on the indices. Raises
    ValueError where the rounds or the tenants differ, and where a tenant alone did nothing.
    """

    def __init__(
        self,
        alone: Mapping[str, Sequence[float]],
        together: Mapping[str, Sequence[float]],
        seed: int,
        terms: Mapping[str, Terms] | None = None,
    ) -> None:
        self._tenants = list(alone)
        if not self._tenants or set(alone) != set(together):
            raise ValueError(
                f"tenants alone are {', '.join(alone) or 'none'}, together {', '.join(together) or 'none'}"
            )
        self._terms = [(terms or {}).get(tenant, Terms()) for tenant in self._tenants]
        columns = [*alone.values(), *(together[tenant] for tenant in self._tenants)]
        if len({len(column) for column in columns}) > 1:
            raise ValueError("every tenant needs as many rounds alone as together")
        self._rows: Array = np.transpose(np.asarray(columns, dtype=np.float64))
        self._seed = seed
        self._rounds = Rounds(self._rows.tolist(), seed)

    def f_utils(self) -> dict[str, RoundRatio]:
        """The f-Util of each tenant."""
        return {
            tenant: self._rounds.ratio(partial(self._f_util_of, place=place))
            for place, tenant in enumerate(self._tenants)
        }

    def jain(self, *, idle: float = 0.0) -> RoundRatio:
        """Jain's index of each round, of its f-Utils as :func:`compared_shares`, and its mean over the rounds.

        A round in which no tenant was served, though each asks, has the index ``idle``.
        """
        return self._index(jain_index, idle)

    def min_max(self, *, idle: float = 0.0) -> RoundRatio:
        """The smallest of these over the largest of each round, and its mean over the rounds; ``idle`` as there."""
        return self._index(min_max_share, idle)

    def utilisation(self) -> RoundRatio:
        """The utilisation of the box by all tenants together."""
        return self._rounds.ratio(lambda rows: utilisation(*self._split(rows)))

    def _split(self, rows: Array) -> tuple[Array, Array]:
        n = len(self._tenants)
        return rows[..., :n], rows[..., n:]

    def _f_util_of(self, rows: Array, place: int) -> Array:
        return np.asarray(f_util(*self._split(rows))[..., place])

    def _index(self, measure: Measure, idle: float) -> RoundRatio:
        """An index of every round's own shares; by their means, tenants that starve in turns would have equal ones."""
        alone, together = self._split(self._rows)
        f_utils = f_util(alone, together)
        was_served = f_utils.any(axis=-1)
        of_rounds = np.full(len(f_utils), idle)
        of_rounds[was_served] = measure(compared_shares(f_utils[was_served], self._terms, alone[was_served]))
        return Rounds([[float(value)] for value in of_rounds], self._seed).ratio(lambda rows: rows[..., 0])
