"""Sessions on a lab that is up, for commands by hand: under a lease and the same journal as a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from rackloop.clock import Clock
from rackloop.errors import BadInput
from rackloop.lab import Lab, LabState, Part, Parts, wired_at
from rackloop.safety.maintenance import OutOfService, OutOfServiceStore, State
from rackloop.safety.store import Store
from rackloop.safety.undo import ActRecorder, Equipment, Journal, journalled
from rackloop_cli.shared.own_lease import leased_by_hand
from rackloop_drivers.host import NOBODY
from rackloop_labs import Bench, open_lab
from rackloop_labs.bench_view import BenchInService


@contextmanager
def running_bench(lab: Lab, clock: Clock, working_for: str = NOBODY) -> Iterator[Bench]:
    """The bench of a lab that is up already, for reading; nothing is brought up for a command.

    ``working_for`` is for whom commands run on its servers, as :class:`~rackloop_drivers.host.SshHost` takes it.
    """
    with open_lab(lab, clock, LabState.of(lab.name), None, working_for=working_for, bring_up=False) as bench:
        yield bench


@contextmanager
def acting(lab: Lab, clock: Clock, wanted: Parts, purpose: str, *, is_journalled: bool = True) -> Iterator[Equipment]:
    """The equipment of ``wanted``, leased for as long as the block runs and journalled.

    Acts by hand stand until `heal`, which undoes only journalled ones. Raises BadInput where a part of ``wanted`` is in
    maintenance; of the whole rack, parts in maintenance are left out instead. What they have their link by keeps its
    power. The lease is within the user's own where that has all of ``wanted``. Raises RackLeased where another holder
    has any of it.
    """
    with leased_by_hand(lab, clock, wanted, purpose) as (held, opened):
        store = held.leases.store
        out = in_maintenance(lab, store)
        if not wanted.whole:
            refuse_in_maintenance(lab, wanted, out)
        bench = BenchInService(opened, out, refusal=lambda part: _refusal(lab, out[part]))
        # A port named by hand is meant to be disturbed.
        recorder = ActRecorder(bench.lab, Journal(store), "by hand", lease=held, disturbs=frozenset(lab.drives))
        yield journalled(bench.equipment, recorder) if is_journalled else bench.equipment


def in_maintenance(lab: Lab, store: Store) -> dict[Part, OutOfService]:
    """The parts of ``lab`` in maintenance, with who, why and since when."""
    standing = OutOfServiceStore(store, lab.name).standing()
    return {part: out for part, out in standing.items() if out.state is State.MAINTENANCE}


def refuse_in_maintenance(lab: Lab, parts: Parts, out: Mapping[Part, OutOfService]) -> None:
    """Raise BadInput, with who, why and since when, where one of ``parts``, or what is at their ports, is out."""
    shared = {Part.drive(name) for name, drive in lab.drives.items() if drive.expander is not None}
    reached = parts | (wired_at(lab, parts.switch_ports) - shared)
    for part in sorted(filter(reached.reaches, out)):
        raise _refusal(lab, out[part])


def _refusal(lab: Lab, out: OutOfService) -> BadInput:
    return BadInput(f"{out}; leave it alone, or end that: rackloop lab maintain {lab.name} {out.part.name} --end")
