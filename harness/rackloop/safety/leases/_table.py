"""The rows of leases and requests in the store, their order, and which of them are over."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from rackloop.clock import Clock
from rackloop.lab import WHOLE_RACK, Part, PartKind, Parts
from rackloop.names import printable
from rackloop.safety.leases._holder import Holder
from rackloop.safety.leases._lease import Lease, LeaseLost, Ticket
from rackloop.safety.store import Transaction

_PATIENCE = 3
QUEUED, HELD, ENDED = "queued", "held", "ended"
_COLUMNS = (
    "id, lab, state, within, holder, slice, purpose, priority, place, token, term_s, asked_s, granted_s, until_s, "
    "ended_how, ended_by, ended_why"
)


@dataclass(frozen=True)
class Row:
    """A lease or a place in the queue, as the store has it; times in seconds of the store's own time."""

    id: str
    lab: str
    state: str
    within: str | None
    holder: Holder
    parts: Parts
    purpose: str
    priority: int
    place: int
    token: int
    term_s: float
    asked_s: float
    granted_s: float | None
    until_s: float
    ended_how: str | None
    ended_by: str | None
    ended_why: str | None

    def lease(self, now_s: float, clock: Clock) -> Lease:
        """The row as a Lease."""
        return Lease(
            self.id,
            self.lab,
            self.holder,
            self.parts,
            self.token,
            wall(self.granted_s or self.asked_s, now_s, clock),
            wall(self.until_s, now_s, clock),
            printable(self.purpose),
            self.priority,
            self.within,
        )

    def ticket(self, now_s: float, clock: Clock, held_up_by: tuple[str, ...] = ()) -> Ticket:
        """The row as a Ticket."""
        return Ticket(
            self.id,
            self.lab,
            self.holder,
            self.parts,
            printable(self.purpose),
            self.priority,
            wall(self.asked_s, now_s, clock),
            self.lease(now_s, clock) if self.state == HELD else None,
            held_up_by,
        )


def live_rows(tables: Transaction, lab: str) -> list[Row]:
    """The leases held and queued for ``lab``: those who are next first."""
    found = tables.rows(
        f"SELECT {_COLUMNS} FROM lease WHERE lab = ? AND state IN ('queued', 'held')"  # noqa: S608 - own constants
        " ORDER BY priority DESC, place",
        lab,
    )
    return [_row(row) for row in found]


def row_of(tables: Transaction, lease_id: str) -> Row | None:
    """One lease, live or not."""
    found = tables.rows(f"SELECT {_COLUMNS} FROM lease WHERE id = ?", lease_id)  # noqa: S608 - own constants
    return _row(found[0]) if found else None


def over(tables: Transaction, rows: Iterable[Row], now_s: float, *, private: bool) -> list[Row]:
    """Those whose time is over, or whose process is known to have ended.

    A process that is seen to live may be short of a processor: it is given its term several times over. None can renew
    its lease while the store's server is away: its term counts from the server's start. ``private`` says that every
    process is one of this machine.
    """
    rows = list(rows)
    living = {process: process.is_living(private=private) for row in rows if (process := row.holder.process)}
    found: list[Row] = []
    for row in rows:
        lives = living.get(row.holder.process) if row.holder.process else None
        patience_s = _PATIENCE * row.term_s if lives else 0.0
        until_s = row.until_s if row.holder.process is None else max(row.until_s, tables.up_since_s() + row.term_s)
        if lives is False or now_s > until_s + patience_s:
            found.append(row)
    return found


def end(tables: Transaction, lease_ids: list[str], how: str, now_s: float, by: str = "", why: str = "") -> None:
    """End these leases, and with each those that are parts of it."""
    for lease_id in lease_ids:
        tables.rows(
            "UPDATE lease SET state = 'ended', ended_s = ?, ended_how = ?, ended_by = ?, ended_why = ?"
            " WHERE (id = ? OR within = ?) AND state IN ('queued', 'held')",
            *(now_s, how, by, why, lease_id, lease_id),
        )


def sweep(tables: Transaction, lab: str, now_s: float, *, private: bool) -> list[Row]:
    """End what is over; the rest, those who are next first."""
    rows = live_rows(tables, lab)
    ended = over(tables, rows, now_s, private=private)
    if not ended:
        return rows
    end(tables, [row.id for row in ended], "lapsed", now_s)
    return live_rows(tables, lab)


def in_the_way(rows: list[Row], wanted: Row) -> list[Row]:
    """The rows that keep ``wanted`` waiting: leases that overlap it, and requests before it in the queue that do.

    A request that overlaps none before it may overtake; one that does never may, however little it asks for. A part of
    a lease waits for other parts alone: a request from outside waits for the lease itself.
    """
    found: list[Row] = []
    for row in rows:
        if row.id == wanted.id:
            break
        is_among_these = wanted.within is None or row.within == wanted.within
        if row.state == QUEUED and is_among_these and row.parts.overlaps(wanted.parts):
            found.append(row)
    held = [
        row
        for row in rows
        if row.state == HELD
        and row.id != wanted.id
        and row.parts.overlaps(wanted.parts)
        and not _is_family(row, wanted)
    ]
    return held + found


def _is_family(one: Row, other: Row) -> bool:
    """A part does not stand in the way of the lease it is a part of, nor that in the way of it."""
    return one.id == other.within or other.id == one.within


def raise_token(tables: Transaction, lab: str, above: int = 0) -> int:
    """A token higher than ``above`` and every one given for ``lab`` before, also by a store that this one replaced.

    A switch keeps the highest that it was shown for ever, and no copy of a store knows it: so none is lower than the
    seconds since 1970, which a store is ahead of only where holders of parts act oftener than once a second.
    """
    least = max(above + 1, int(tables.now_s()))
    [(token,)] = tables.rows(
        "INSERT INTO fencing VALUES (?, ?) ON CONFLICT (lab) DO UPDATE SET token ="
        " CASE WHEN fencing.token < excluded.token THEN excluded.token ELSE fencing.token + 1 END RETURNING token",
        *(lab, least),
    )
    return int(token)


def require_held(tables: Transaction, lease: Lease) -> Row:
    """The row of ``lease``. Raises LeaseLost where it is over, saying how it ended and by whom.

    A lease whose process was only slow goes on, until another lease of the same parts was granted.
    """
    row = row_of(tables, lease.id)
    if row is None:
        raise LeaseLost(f"lease {lease.id} of lab {lease.lab} is not in the store any more; lease the rack again")
    now_s = tables.now_s()
    if row.state == HELD and row.within is not None:
        parent = row_of(tables, row.within)
        if parent is None or parent.state != HELD or _is_past(parent, now_s):
            raise LeaseLost(f"lease {row.within} of lab {lease.lab}, which {lease.id} is a part of, is over")
    if row.state != HELD or _is_past(row, now_s):
        raise LeaseLost(f"lease {lease.id} of lab {lease.lab} is over{_how(row)}; lease the rack again")
    if now_s > row.until_s:
        tables.rows("UPDATE lease SET until_s = ? WHERE id = ?", now_s + row.term_s, row.id)
    return row


def _is_past(row: Row, now_s: float) -> bool:
    return row.holder.process is None and now_s > row.until_s


def _how(row: Row) -> str:
    if row.ended_how is None:
        return ": its time is up"
    by = f" by {row.ended_by}" if row.ended_by else ""
    why = f" ({row.ended_why})" if row.ended_why else ""
    return f": {row.ended_how}{by}{why}"


def parts_json(parts: Parts) -> str:
    """The parts of a lease, for the store; ``ports`` are those of the switch."""
    names = {"servers": parts.servers, "ports": parts.switch_ports, "drives": parts.drives, "outlets": parts.outlets}
    return json.dumps({**{key: sorted(found) for key, found in names.items()}, "whole": parts.whole})


def parts_of_json(text: str) -> Parts:
    """The parts that :func:`parts_json` wrote."""
    value = json.loads(text)
    outlets = (Part(PartKind.OUTLET, name) for name in value["outlets"])
    return Parts(
        (
            *map(Part.server, value["servers"]),
            *map(Part.switch_port, value["ports"]),
            *map(Part.drive, value["drives"]),
            *outlets,
            *([WHOLE_RACK] if value["whole"] else []),
        )
    )


def wall(at_s: float, now_s: float, clock: Clock) -> datetime:
    """A moment of the store's own time, told by the wall clock of this machine."""
    return clock.wall() + timedelta(seconds=at_s - now_s)


def _row(values: tuple[Any, ...]) -> Row:
    fields = dict(zip(Row.__dataclass_fields__, values, strict=True))
    return Row(**{**fields, "holder": _holder(fields["holder"]), "parts": _parts(fields["parts"])})


# A queue of a hundred is read again and again by a hundred.
_holder = lru_cache(1024)(Holder.of_json)
_parts = lru_cache(1024)(parts_of_json)
