"""The records of a lab's store: leases, queue, stolen leases, write attempts, acts left to undo."""

from __future__ import annotations

import shlex
from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from rich.console import Console

from rackloop.clock import Clock
from rackloop.lab import Lab, LabState, Parts
from rackloop.record.acts import act_json
from rackloop.safety.leases import Lease, Leases, Theft, Ticket
from rackloop.safety.store import open_lab_store
from rackloop.safety.undo import Entry, Journal, JournalDamaged
from rackloop_cli.lab.maintenance import out_of_service
from rackloop_cli.shared.tables import plain_table, print_whole

_SHOWN = 5


def holders(lab: Lab, clock: Clock) -> dict[str, Any]:
    """The records of ``lab`` in its store, as ``--json`` prints them; times in ISO 8601, UTC."""
    with closing(open_lab_store(lab, LabState.of(lab.name), clock)) as store:
        leases, journal = Leases(store, lab.name), Journal(store)
        try:
            standing, damage = journal.standing(lab.name), None
        except JournalDamaged as damaged:
            standing, damage = list(damaged.readable), str(damaged)
        return {
            "store": store.name,
            "leases": [_lease(lease) for lease in leases.held()],
            "queue": [_ticket(ticket) for ticket in leases.queue()],
            "stolen": [_theft(theft) for theft in leases.thefts(_SHOWN)],
            "attempts": [
                asdict(attempt) | {"at": attempt.at.isoformat(), "reasons": list(attempt.reasons)}
                for attempt in leases.attempts(_SHOWN)
            ],
            "standing": [_entry(entry) for entry in standing],
            "journal_damage": damage,
            "out_of_service": out_of_service(lab, store),
        }


def print_holders(lab: Lab, held: dict[str, Any], given: str | None = None) -> None:
    """Print the records as tables and lines; the lab is ``given`` as that in a command."""
    console = Console(highlight=False, soft_wrap=True, markup=False, emoji=False)
    if held["leases"]:
        table = plain_table("lease", "holder", "has", "for", "since", "until")
        for lease in held["leases"]:
            until = _utc(lease["until"]) + (" *" if lease["process"] else "")
            table.add_row(
                *(lease["id"], lease["holder"], lease["slice"]["short"], lease["purpose"]),
                *(_utc(lease["granted_at"]), until),
            )
        print_whole(console, table)
        if any(lease["process"] for lease in held["leases"]):
            console.print("* and on, while its process lives")
    else:
        console.print(f"lab {lab.name}: no lease is held")
    for place, ticket in enumerate(held["queue"], 1):
        console.print(
            f"waiting, {place}: {ticket['holder']} for {ticket['slice']['short']} since {_utc(ticket['asked_at'])}, "
            f"priority {ticket['priority']}"
        )
    for theft in held["stolen"]:
        console.print(
            f"stolen {_utc(theft['at'])}: {theft['slice']['short']} from {theft['from']} by {theft['by']}, "
            f"{theft['why']}"
        )
    going_on = {lease["id"] for lease in held["leases"]}
    for attempt in held["attempts"]:
        if not attempt["reasons"] and attempt["lease"] not in going_on:
            # It may write no more: the store keeps it, and --json shows it.
            continue
        answer = "refused" if attempt["reasons"] else "granted"
        why = ": " + "; ".join(attempt["reasons"]) if attempt["reasons"] else ""
        console.print(
            f"permission to write {attempt['drive']} {answer} {_utc(attempt['at'])} to {attempt['who']} "
            f"under lease {attempt['lease']}{why}"
        )
    for out in held["out_of_service"]:
        console.print(f"not used: {out['said']}")
    if held["journal_damage"]:
        console.print(held["journal_damage"])
    if held["standing"]:
        console.print(f"left to undo, newest first (`rackloop heal {shlex.quote(given or lab.name)}`):")
        for entry in held["standing"]:
            done = f"{entry['ability']} {entry['resource']} {entry['what'].get('do', '')}"
            console.print(f"  {entry['id']}: {done}, {entry['state']} {_utc(entry['wall'])} by run {entry['run']}")


def _lease(lease: Lease) -> dict[str, Any]:
    return {
        "id": lease.id,
        "holder": str(lease.holder),
        "process": lease.holder.process and lease.holder.process.pid,
        "slice": _parts(lease.parts),
        "token": lease.token,
        "purpose": lease.purpose,
        "priority": lease.priority,
        "within": lease.within,
        "granted_at": lease.granted_at.isoformat(),
        "until": lease.until.isoformat(),
    }


def _ticket(ticket: Ticket) -> dict[str, Any]:
    return {
        "id": ticket.id,
        "holder": str(ticket.holder),
        "slice": _parts(ticket.parts),
        "purpose": ticket.purpose,
        "priority": ticket.priority,
        "asked_at": ticket.asked_at.isoformat(),
    }


def _theft(theft: Theft) -> dict[str, Any]:
    return {
        "lease": theft.lease,
        "from": theft.previous_holder,
        "by": theft.new_holder,
        "slice": _parts(theft.parts),
        "at": theft.at.isoformat(),
        "why": theft.why,
    }


def _parts(parts: Parts) -> dict[str, Any]:
    return {
        "text": str(parts),
        "short": parts.short,
        "whole": parts.whole,
        "servers": sorted(parts.servers),
        "ports": sorted(parts.switch_ports),
        "drives": sorted(parts.drives),
        "outlets": sorted(parts.outlets),
    }


def _entry(entry: Entry) -> dict[str, Any]:
    return {
        "id": entry.id,
        "run": entry.run,
        "ability": entry.ability,
        "resource": entry.resource,
        "what": act_json(entry.what),
        "state": entry.state,
        "wall": entry.wall.isoformat(),
    }


def _utc(iso: str) -> str:
    return datetime.fromisoformat(iso).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
