"""The user's own lease, taken before with `rackloop lab lease`, and leases within it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rackloop.clock import Clock
from rackloop.lab import Lab, LabState, Parts
from rackloop.safety.leases import HeldLease, Holder, Lease, Leases, LeaseTerms, RackLeased, holding, leases_of
from rackloop_cli.shared.lab_store import opened_store
from rackloop_labs import Bench, open_leased


def own_lease(leases: Leases, wanted: Parts) -> str | None:
    """The id of the user's own lease that has all of ``wanted``, which is printed; None where there is none.

    A process's lease is that process's alone, also where the same user started it.
    """
    for lease in _own(leases):
        if lease.parts.contains(wanted):
            print(f"within your lease {lease.id}", file=sys.stderr)
            return lease.id
    return None


@contextmanager
def telling_own(leases: Leases, *options: str) -> Iterator[None]:
    """Say of a RackLeased from the block which leases are the user's own; where none is, add the verb's ``options``."""
    try:
        yield
    except RackLeased as error:
        own = [lease.id for lease in _own(leases) if any(lease.id in said for said in error.held_up_by)]
        if not own:
            raise error.offering(*options) from None
        told = [
            f"{said}, which is your own lease and has not all that this takes"
            if any(one in said for one in own)
            else said
            for said in error.held_up_by
        ]
        back = [f"give it back with `rackloop lab release {leases.lab} {one}`" for one in own]
        raise RackLeased(leases.lab, told, options=back) from None


def _own(leases: Leases) -> list[Lease]:
    """The leases that the user has taken before, of which any process of theirs may use a part."""
    user = Holder.here(bound=False).user
    return [lease for lease in leases.held() if lease.holder.process is None and lease.holder.user == user]


@contextmanager
def leased_by_hand(lab: Lab, clock: Clock, wanted: Parts, purpose: str) -> Iterator[tuple[HeldLease, Bench]]:
    """``wanted`` of a lab that is up, leased for as long as the block runs, and its bench.

    The lease is within the user's own where that has all of ``wanted``. Raises RackLeased where another holder has any
    of it.
    """
    with opened_store(lab, clock) as store:
        leases = leases_of(lab, store)
        terms = LeaseTerms(purpose=purpose, within=own_lease(leases, wanted))
        with (
            telling_own(leases),
            holding(leases, wanted, terms) as held,
            open_leased(lab, clock, LabState.of(lab.name), held, bring_up=False) as bench,
        ):
            yield held, bench
