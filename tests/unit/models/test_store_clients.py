"""Key-value stores on a shared box: clients that complete nothing are refused, not divided by."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import BadInput
from rackloop_cli.model.store import _get_ns
from rackloop_models.client import Cell, Setup, StoreOutcome, store_claims, stores
from rackloop_models.drives import (
    QUANTILES,
    BlobStore,
    BlobStoreResult,
    Done,
    DriveSim,
    Experiment,
    Latency,
    Operations,
    Result,
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

    def run(
        self, experiments: list[Experiment], _deadline: Deadline, *, branches: list[tuple[BlobStore]]
    ) -> list[Result]:
        """A result for each experiment, of which each with stores has drives of its own."""
        done: list[Result] = [Done(kind="idle", name=act.name, end_s=0.0) for act in experiments]
        return done + [
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
            for (act,), rate in zip(branches, self._rates, strict=True)
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


def outcome(scheduler: str, *gets_ns: int | None, count: int = 10_000) -> StoreOutcome:
    """An outcome of clients whose gets, so many, took so long; None is a client that completed none."""
    gets = [
        NOTHING if ns is None else Operations(count=count, latency_ns=Latency(ns, ns, ns, ns, ns, ns, ns))
        for ns in gets_ns
    ]
    clients = tuple(replace(CLIENT, gets=one) for one in gets)
    return StoreOutcome(Cell(scheduler, {"kind": scheduler}), 10.0, 10.0, (1.0, 1.0), 1.0, clients)


def test_a_client_without_a_get_leaves_no_latency_and_makes_none_better() -> None:
    served, starved = outcome("reflex", 100, 300), outcome("gimbal", 100, None)
    assert (served.worst_get_ns("p99_9"), served.mean_get_ns("p99_9")) == (300, 200)
    assert starved.worst_get_ns("p99_9") is starved.mean_get_ns("p99_9") is None
    quick = outcome("gimbal", 50, 50)
    assert (_get_ns([quick, served], "p99_9"), _get_ns([quick, starved], "p99_9")) == (125, None), "seeds of a cell"
    found = {mix: {one.cell: [one] for one in (gimbal, served)} for mix, gimbal in (("a", quick), ("b", starved))}
    throughput, tail = store_claims(found)
    assert throughput.ours == "over reflex x1.00 (A), x1.00 (B)"
    beyond = "with fewer than 10 gets of a client beyond it"
    assert tail.ours == f"over reflex 75.0% less (A); left out, {beyond}: gimbal (B)"


@pytest.mark.parametrize(
    ("count", "told"),
    [(10_000, {"p50", "p99", "p99_9"}), (9_999, {"p50", "p99"}), (999, {"p50"}), (19, set())],
)
def test_a_quantile_of_gets_has_ten_beyond_it(count: int, told: set[str]) -> None:
    one = outcome("gimbal", 100, 100, count=count)
    assert {name for name in QUANTILES if one.worst_get_ns(name) is not None} == told
    assert {name for name in QUANTILES if one.mean_get_ns(name) is not None} == told
