"""Key-value stores on a shared box: clients that complete nothing are refused, not divided by."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import BadInput
from rackloop_models.client import Setup, stores
from rackloop_models.drives import (
    BlobStore,
    BlobStoreResult,
    DriveSim,
    Experiment,
    Operations,
    State,
    StoreClientResult,
)

SETUP = Setup(mix="b", clients=2, records=100, depth=1, seconds=0.5, warm_up_s=0.1)
NOTHING = Operations(count=0, latency_ns=None)
CLIENT = StoreClientResult(
    name="client-1",
    operations=0,
    operations_per_s=0.0,
    errors=0,
    gets=NOTHING,
    puts=NOTHING,
    scans=NOTHING,
    read_modify_writes=NOTHING,
    reads_by_replica=(0, 0),
    reads_by_drive=(0, 0),
    counters={},
    write_amplification=None,
    read_amplification=None,
    level_bytes=(),
    failure=None,
)


class Box:
    """A box that gives a client alone the first of ``rates``, and each of two clients the second."""

    def __init__(self, *rates: float) -> None:
        self._rates = rates

    def run(self, experiments: list[Experiment], _deadline: Deadline) -> list[BlobStoreResult]:
        """A result for each experiment with stores."""
        acts = [act for act in experiments if isinstance(act, BlobStore)]
        return [
            BlobStoreResult(
                kind="blobstore",
                name=act.name,
                scheduler="none",
                load_s=0.0,
                start_s=0.0,
                seconds=0.5,
                clients=tuple(replace(CLIENT, operations_per_s=rate) for _ in act.clients),
                drives=(),
            )
            for act, rate in zip(acts, self._rates, strict=True)
        ]


def found(*rates: float) -> Any:
    """The outcomes of no scheduler on such a box."""
    schedulers = {"none": {"kind": "none"}}
    soon = Deadline.after(VirtualClock(), 1.0)
    return stores(cast("DriveSim", Box(*rates)), SETUP, schedulers, State.FRAGMENTED, soon)


def test_shares_are_of_what_one_has_alone() -> None:
    assert found(10.0, 5.0)[0].f_utils == (1.0, 1.0)


@pytest.mark.parametrize(
    ("rates", "said"),
    [
        ((0.0, 5.0), "YCSB B: a client completes nothing in 0.5 s even alone; measure for longer"),
        ((10.0, 0.0), "none: no client completes an operation in the measured time; measure for longer"),
    ],
    ids=["alone", "together"],
)
def test_clients_that_complete_nothing_are_refused(rates: tuple[float, float], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        found(*rates)
