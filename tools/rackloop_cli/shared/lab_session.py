"""Sessions on a lab that is up, for commands by hand: under a lease and the same journal as a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rackloop.clock import Clock
from rackloop.lab import Lab, LabState, Parts
from rackloop.safety.undo import ActRecorder, Equipment, Journal, journalled
from rackloop_cli.lab.maintenance import in_maintenance, refuse_in_maintenance
from rackloop_cli.shared.own_lease import leased_by_hand
from rackloop_labs import Bench, open_lab
from rackloop_labs.bench_view import BenchInService


@contextmanager
def running_bench(lab: Lab, clock: Clock) -> Iterator[Bench]:
    """The bench of a lab that is up already, for reading; nothing is brought up for a command."""
    with open_lab(lab, clock, LabState.of(lab.name), None, bring_up=False) as bench:
        yield bench


@contextmanager
def acting(lab: Lab, clock: Clock, wanted: Parts, purpose: str, *, is_journalled: bool = True) -> Iterator[Equipment]:
    """The equipment of ``wanted``, leased for as long as the block runs and journalled.

    Acts by hand stand until `heal`, which undoes only journalled ones. Raises BadInput where a part of ``wanted`` is in
    maintenance; of the whole rack, parts in maintenance are left out instead. The lease is within the user's own where
    that has all of ``wanted``. Raises RackLeased where another holder has any of it.
    """
    with leased_by_hand(lab, clock, wanted, purpose) as (held, opened):
        store = held.leases.store
        out = in_maintenance(lab, store)
        if not wanted.whole:
            refuse_in_maintenance(lab, wanted, out)
        bench = BenchInService(opened, out)
        # A port named by hand is meant to be disturbed.
        recorder = ActRecorder(bench.lab, Journal(store), "by hand", lease=held, disturbs=frozenset(lab.drives))
        yield journalled(bench.equipment, recorder) if is_journalled else bench.equipment
