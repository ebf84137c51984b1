"""Cells in virtual time, and the measures of what each client got."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rackloop.clock import Deadline
from rackloop.errors import BadInput
from rackloop_models.client._cells import Cell, Setup, cells
from rackloop_models.drives import (
    QUANTILES,
    BlobStoreResult,
    DriveSim,
    State,
    StoreClientResult,
    all_known,
    on_prepared,
)
from rackloop_oracles.fairness import f_util, jain_index

_LONGER = "measure for longer, or give the scheduler other parameters"


@dataclass(frozen=True)
class StoreOutcome:
    """A cell's figures; f-Utils are shares of what one client has alone with the whole client and no scheduler."""

    cell: Cell
    operations_per_s: float
    alone_operations_per_s: float
    f_utils: tuple[float, ...]
    jain: float
    clients: tuple[StoreClientResult, ...]

    def worst_get_ns(self, quantile: str) -> float | None:
        """A quantile of the latency of gets, of that client for which it is longest; None as for the mean."""
        return max(self._gets_ns(quantile), default=None)

    def mean_get_ns(self, quantile: str) -> float | None:
        """The mean over clients of a quantile of the latency of gets; None where one completed too few for it.

        Too few are those of :data:`QUANTILES`. Such a client may have waited longest.
        """
        found = self._gets_ns(quantile)
        return sum(found) / len(found) if found else None

    def _gets_ns(self, quantile: str) -> list[float]:
        """Of each client; empty where one completed too few."""
        enough = QUANTILES[quantile].is_of
        found = all_known(one.gets.latency_ns if enough(one.gets.count) else None for one in self.clients)
        return [float(getattr(latency, quantile)) for latency in found]

    @property
    def second_replica_share(self) -> float | None:
        """The share of reads that the second replica served; None without reads."""
        reads = sum(sum(one.reads_by_replica) for one in self.clients)
        second = sum(sum(one.reads_by_replica[1:]) for one in self.clients)
        return second / reads if reads else None

    @property
    def errors(self) -> int:
        """Operations that failed."""
        return sum(one.errors for one in self.clients)


def stores(
    sim: DriveSim, setup: Setup, schedulers: Mapping[str, Mapping[str, Any]], state: State, deadline: Deadline
) -> tuple[StoreOutcome, ...]:
    """Every cell on the drives of ``sim`` in ``state``, which no other cell has changed.

    Raises as DriveSim.run, and BadInput where no client completes an operation.
    """
    planned = cells(schedulers)
    alone = Cell("none", {"kind": "none"}).experiment(setup, 1)
    acts = [alone, *(cell.experiment(setup) for cell in planned)]
    found = [one for one in on_prepared(sim, state, acts, deadline) if isinstance(one, BlobStoreResult)]
    most = found[0].clients[0].operations_per_s
    if not most:
        raise BadInput(
            f"YCSB {setup.mix.upper()}: a client completes nothing in {setup.seconds:g} s even alone; {_LONGER}"
        )
    return tuple(_outcome(cell, result.clients, most) for cell, result in zip(planned, found[1:], strict=True))


def _outcome(cell: Cell, clients: Sequence[StoreClientResult], alone: float) -> StoreOutcome:
    together = np.array([one.operations_per_s for one in clients])
    if not together.any():
        raise BadInput(f"{cell.name}: no client completes an operation in the measured time; {_LONGER}")
    shares = f_util(np.full(len(clients), alone), together)
    return StoreOutcome(
        cell,
        float(together.sum()),
        alone,
        tuple(float(share) for share in shares),
        float(jain_index(shares)),
        tuple(clients),
    )
