"""`rackloop lab lease|release`: leases held by a person rather than by a process."""

from __future__ import annotations

import shlex
from contextlib import closing
from dataclasses import replace
from datetime import UTC

from rich.console import Console

from rackloop.clock import RealClock
from rackloop.errors import EXIT_PASS, BadInput
from rackloop.lab import LabState, load_lab, parts_of
from rackloop.safety.leases import Holder, Leases, LeaseTerms, leases_of, obtain
from rackloop.safety.store import open_lab_store
from rackloop.units import format_duration
from rackloop_cli.shared.lab_store import opened_store
from rackloop_cli.shared.output import say
from rackloop_cli.shared.steal_prompt import offering, stealing
from rackloop_labs.choosing import chosen_servers

_LONGEST_S = 30 * 24 * 3600.0


def take(name: str, term_s: float, terms: LeaseTerms, *, steal: bool = False, yes: bool = False) -> int:
    """Take a lease that outlives the command. Raises RackLeased where another holder has any of its parts."""
    _check(term_s)
    lab, clock = load_lab(name), RealClock()
    terms = replace(terms, servers=chosen_servers(lab, terms.servers))
    wanted = parts_of(lab, terms.servers or None)
    with opened_store(lab, clock) as store:
        leases = leases_of(lab, store)
        if steal:
            terms = stealing(leases, wanted, terms, yes=yes)
        with offering("wait longer (--wait)" if terms.wait_s else "wait for it (--wait)", "take it over (--steal)"):
            lease, stolen = obtain(leases, wanted, terms)
        lease = leases.keep(lease, term_s)
    for one in stolen:
        say(f"stolen: {one}")
    until = lease.until.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    say(f"lease {lease.id} of lab {lab.name}: {lease.parts}, until {until}")
    say(
        f"work under it with `rackloop run PLAN --lab {shlex.quote(name)} --lease {lease.id}`; "
        f"give it back with `rackloop lab release {shlex.quote(name)} {lease.id}`"
    )
    return EXIT_PASS


def release(name: str, lease_id: str) -> int:
    """Give a lease back. Raises BadInput where it is not held, or has another holder."""
    lab, clock = load_lab(name), RealClock()
    with closing(open_lab_store(lab, LabState.of(lab.name), clock)) as store:
        leases = Leases(store, lab.name)
        lease = leases.find(lease_id)
        here = Holder.here(bound=False)
        if lease.holder.process is not None:
            raise BadInput(f"lease {lease_id} ends with its {lease.holder}: end that, or take the rack with --steal")
        if lease.holder.user != here.user:
            raise BadInput(f"lease {lease_id} is held by {lease.holder}, not by {here}: ask them, or take it (--steal)")
        leases.release(lease)
    Console().print(f"lease {lease_id} of lab {lab.name} is given back")
    return EXIT_PASS


def _check(term_s: float) -> None:
    if term_s <= 0:
        raise BadInput(f"--for {term_s:g} s is over before it begins; write a time such as 90min or 2h")
    if term_s > _LONGEST_S:
        raise BadInput(f"--for {format_duration(term_s)} is longer than 30 days; a lease can be taken again")
