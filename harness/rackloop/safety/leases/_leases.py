"""The leases of one lab: asked for, queued, granted, renewed, given back and taken over."""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rackloop.errors import BadInput, LabError
from rackloop.lab import Parts, parts_of
from rackloop.names import require_line
from rackloop.safety.leases import _table
from rackloop.safety.leases._holder import Holder
from rackloop.safety.leases._lease import Attempt, Lease, LeaseLost, RackLeased, Theft, Ticket
from rackloop.safety.store import Store, Transaction

if TYPE_CHECKING:
    from rackloop.lab import Lab

HEARTBEAT_S = 15.0
"""A lease bound to a process ends when none of its heartbeats came for so long.

One whose process is seen to live, on the same machine, ends after four times that: it may be short of a processor.
"""

_ID_BYTES = 4
_COLUMNS = "id, lab, state, within, holder, slice, purpose, priority, place, token, term_s, asked_s, until_s"
_NEXT_PLACE = "(SELECT coalesce(max(place), 0) + 1 FROM lease WHERE lab = ?)"


@dataclass(frozen=True)
class LeaseTerms:
    """The terms of a lease: the whole rack, or ``servers`` with what they have at the baseline.

    It is waited for in the queue for ``wait_s``, the higher ``priority`` first. ``within`` is a lease that a person
    took before, of which this one is a part. With ``steal_why``, which is kept, it is taken from its holder, or, where
    ``steal_from`` names leases by their ids, from those alone.
    """

    servers: tuple[str, ...] = ()
    purpose: str = ""
    priority: int = 0
    wait_s: float = 0.0
    steal_why: str | None = None
    steal_from: frozenset[str] | None = None
    within: str | None = None

    def parts_of(self, lab: Lab, leases: Leases) -> Parts:
        """The parts to be leased. Raises BadInput for servers that are not there, and a lease that is not held."""
        if not self.servers and self.within:
            return leases.find(self.within).parts
        return parts_of(lab, self.servers or None)


class Leases:
    """Leases of ``lab`` in ``store``. Any number of threads, processes and machines may use them at once.

    The next request is that of the higher priority, then the earlier one. A request that overlaps no lease and no
    request before it in the queue is granted at once; no other ever overtakes. Everything raises LabError where the
    store cannot be asked.
    """

    def __init__(self, store: Store, lab: str) -> None:
        self.store = store
        self.lab = lab

    def request(
        self,
        wanted: Parts,
        holder: Holder,
        *,
        purpose: str = "",
        priority: int = 0,
        term_s: float = HEARTBEAT_S,
        within: str | None = None,
    ) -> Ticket:
        """Ask for ``wanted``; the ticket has its lease where it could be granted at once, else a place in the queue.

        A lease bound to a process lasts as long as it is renewed within ``term_s``, and so does a place in the queue;
        one bound to a person lasts for ``term_s``. With ``within`` it is a part of that lease and ends with it at the
        latest. Raises BadInput where ``wanted`` is not a part of it, or where it is a process's or another user's, and
        for a purpose that is no line of text; LeaseLost where that lease is over.
        """
        require_line("purpose", purpose)
        lease_id = secrets.token_hex(_ID_BYTES)
        try:
            with self.store.transaction(self.lab) as tables:
                now_s = tables.now_s()
                if within is not None:
                    self._require_parent(tables, within, wanted, holder)
                tables.rows(
                    f"INSERT INTO lease ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, {_NEXT_PLACE}, ?, ?, ?, ?)",  # noqa: S608 - own constants
                    *(lease_id, self.lab, _table.QUEUED, within, holder.as_json(), _table.parts_json(wanted), purpose),
                    *(priority, self.lab, 0, term_s, now_s, now_s + term_s),
                )
                return self._look(tables, lease_id, now_s)
        except LabError:
            # A commit whose answer was lost may have been made: what was granted then has no holder.
            with suppress(LabError), self.store.transaction(self.lab) as tables:
                _table.end(tables, [lease_id], "cancelled", tables.now_s(), str(holder), "its answer was lost")
            raise

    def poll(self, ticket: Ticket) -> Ticket:
        """The ticket, with its lease if it is its turn now; a heartbeat of its place in the queue.

        Raises LeaseLost where the ticket was given up or not asked for in its term.
        """
        with self.store.transaction(self.lab) as tables:
            now_s = tables.now_s()
            tables.rows("UPDATE lease SET until_s = ? + term_s WHERE id = ? AND state = 'queued'", now_s, ticket.id)
            return self._look(tables, ticket.id, now_s)

    def may_be_next(self, ticket: Ticket) -> bool:
        """Whether :meth:`poll` may grant the ticket now; asking changes nothing in the store."""
        with self.store.reading() as tables:
            now_s = tables.now_s()
            rows = _table.live_rows(tables, self.lab)
            mine = next((row for row in rows if row.id == ticket.id), None)
            if mine is None:
                return True
            ahead = _table.in_the_way(rows, mine)
            return not ahead or bool(_table.over(tables, ahead, now_s, private=self.store.is_private))

    def renew(self, lease: Lease) -> Lease:
        """Send a heartbeat. A late one counts unless another lease of the parts was granted meanwhile.

        Raises LeaseLost where the lease is over.
        """
        with self.store.transaction(self.lab, synced=False) as tables:
            row = _table.require_held(tables, lease)
            now_s = tables.now_s()
            if row.holder.process is not None:
                row = replace(row, until_s=now_s + row.term_s)
                tables.rows("UPDATE lease SET until_s = ? WHERE id = ?", row.until_s, row.id)
            return row.lease(now_s, self.store.clock)

    def keep(self, lease: Lease, term_s: float) -> Lease:
        """Let a lease last for ``term_s`` from now, without its process. Raises LeaseLost where it is over."""
        with self.store.transaction(self.lab) as tables:
            row = _table.require_held(tables, lease)
            now_s = tables.now_s()
            person = replace(row.holder, process=None)
            kept = replace(row, holder=person, until_s=now_s + term_s, term_s=term_s)
            tables.rows(
                "UPDATE lease SET holder = ?, until_s = ?, term_s = ? WHERE id = ?",
                *(person.as_json(), kept.until_s, term_s, row.id),
            )
            return kept.lease(now_s, self.store.clock)

    def release(self, lease: Lease | Ticket, why: str = "") -> None:
        """Give a lease, with its parts, or a place in the queue back; one that is over already stays as it ended."""
        # Where this is lost, the store's machine lost power: the lease of a process ends with it, or lacks a heartbeat.
        with self.store.transaction(self.lab, synced=lease.holder.process is None) as tables:
            how = "released" if isinstance(lease, Lease) or lease.lease is not None else "cancelled"
            _table.end(tables, [lease.id], how, tables.now_s(), str(lease.holder), why)

    def steal(
        self, ticket: Ticket, why: str, steal_from: Collection[str] | None = None
    ) -> tuple[Lease, tuple[Lease, ...]]:
        """End every lease that overlaps the ticket and grant it, before all who wait; the leases that ended.

        Their rows keep who took them, when and why. With ``steal_from`` only these leases, by id, may end: where
        another is in the way, raises RackLeased and nothing ends. Raises LeaseLost where the ticket is over.
        """
        clock = self.store.clock
        with self.store.transaction(self.lab) as tables:
            now_s = tables.now_s()
            rows = _table.sweep(tables, self.lab, now_s, private=self.store.is_private)
            row = self._of_ticket(ticket.id, rows)
            holding = [other for other in _table.in_the_way(rows, row) if other.state == _table.HELD]
            if steal_from is not None and (unasked := [one for one in holding if not _is_among(steal_from, one)]):
                raise RackLeased(self.lab, [str(other.lease(now_s, clock)) for other in unasked])
            _table.end(tables, [other.id for other in holding], "stolen", now_s, str(row.holder), why)
            lease = self._grant(tables, row, now_s).lease(now_s, clock)
        return lease, tuple(other.lease(now_s, clock) for other in holding)

    def held(self) -> list[Lease]:
        """The leases that are held now, the oldest first."""
        rows, now_s = self._now(_table.HELD)
        return sorted((row.lease(now_s, self.store.clock) for row in rows), key=lambda lease: lease.token)

    def queue(self) -> list[Ticket]:
        """The requests that wait, the next first."""
        rows, now_s = self._now(_table.QUEUED)
        return [row.ticket(now_s, self.store.clock) for row in rows]

    def thefts(self, last: int = 20) -> list[Theft]:
        """The last leases of the lab that were taken from their holders, newest first."""
        clock = self.store.clock
        with self.store.reading() as tables:
            now_s = tables.now_s()
            found = tables.rows(
                "SELECT id, holder, ended_by, slice, ended_s, ended_why FROM lease"
                " WHERE lab = ? AND ended_how = 'stolen' ORDER BY ended_s DESC LIMIT ?",
                *(self.lab, last),
            )
        return [
            Theft(
                lease_id,
                str(Holder.of_json(holder)),
                new_holder,
                _table.parts_of_json(part),
                _table.wall(at_s, now_s, clock),
                why,
            )
            for lease_id, holder, new_holder, part, at_s, why in found
        ]

    def find(self, lease_id: str) -> Lease:
        """The lease of this id. Raises BadInput where it is not held."""
        held = {lease.id: lease for lease in self.held()}
        if lease_id in held:
            return held[lease_id]
        known = f"held are {', '.join(held)}" if held else "none is held"
        raise BadInput(f"no lease {lease_id!r} of lab {self.lab} is held; {known}")

    def fresh_token(self, lease: Lease, above: int = 0) -> int:
        """A token higher than ``above`` and every one given for the lab. Raises LeaseLost where ``lease`` is over."""
        with self.store.transaction(self.lab) as tables:
            _table.require_held(tables, lease)
            return _table.raise_token(tables, self.lab, above)

    def last_token(self) -> int:
        """The highest token given for the lab, 0 where none was."""
        with self.store.reading() as tables:
            found = tables.rows("SELECT token FROM fencing WHERE lab = ?", self.lab)
        return int(found[0][0]) if found else 0

    def record_attempt(self, lease: Lease, drive: str, reasons: Sequence[str]) -> None:
        """Keep that ``drive`` was to be overwritten under ``lease``, and every reason against it.

        One with none is kept as granted only while the lease is held; else raises LeaseLost, which is the reason kept.
        """
        lost: LeaseLost | None = None
        with self.store.transaction(self.lab) as tables:
            if not reasons:
                try:
                    _table.require_held(tables, lease)
                except LeaseLost as error:
                    lost, reasons = error, [str(error)]
            tables.rows(
                "INSERT INTO attempt (lab, drive, lease, who, at_s, granted, reasons) VALUES (?, ?, ?, ?, ?, ?, ?)",
                *(self.lab, drive, lease.id, str(lease.holder), tables.now_s(), int(not reasons)),
                json.dumps(list(reasons)),
            )
        if lost is not None:
            raise lost

    def attempts(self, last: int = 20) -> list[Attempt]:
        """The last attempts to overwrite a drive of the lab, newest first."""
        clock = self.store.clock
        with self.store.reading() as tables:
            now_s = tables.now_s()
            found = tables.rows(
                "SELECT drive, lease, who, at_s, granted, reasons FROM attempt WHERE lab = ? ORDER BY id DESC LIMIT ?",
                *(self.lab, last),
            )
        return [
            Attempt(drive, lease, who, _table.wall(at_s, now_s, clock), tuple(json.loads(reasons)))
            for drive, lease, who, at_s, _, reasons in found
        ]

    def _look(self, tables: Transaction, ticket_id: str, now_s: float) -> Ticket:
        """Grant the ticket if it is its turn."""
        clock = self.store.clock
        rows = _table.sweep(tables, self.lab, now_s, private=self.store.is_private)
        row = self._of_ticket(ticket_id, rows)
        waits_for = _table.in_the_way(rows, row) if row.state == _table.QUEUED else []
        if not waits_for:
            granted = self._grant(tables, row, now_s) if row.state == _table.QUEUED else row
            return granted.ticket(now_s, clock)
        held_up_by = tuple(
            str(other.lease(now_s, clock))
            if other.state == _table.HELD
            else f"{other.parts.short} wanted before by {other.holder}"
            for other in waits_for
        )
        return row.ticket(now_s, clock, held_up_by)

    def _grant(self, tables: Transaction, row: _table.Row, now_s: float) -> _table.Row:
        token, until_s = _table.raise_token(tables, self.lab), now_s + row.term_s
        tables.rows(
            "UPDATE lease SET state = ?, token = ?, granted_s = ?, until_s = ? WHERE id = ?",
            *(_table.HELD, token, now_s, until_s, row.id),
        )
        return replace(row, state=_table.HELD, token=token, granted_s=now_s, until_s=until_s)

    def _require_parent(self, tables: Transaction, within: str, wanted: Parts, holder: Holder) -> None:
        parent = _table.row_of(tables, within)
        if parent is None or parent.lab != self.lab:
            raise BadInput(f"lab {self.lab} has no lease {within!r}; see `rackloop lab status {self.lab}`")
        if parent.holder.process is not None or parent.holder.user != holder.user:
            raise BadInput(
                f"lease {within} of lab {self.lab} is held by {parent.holder}: only a lease that {holder.user} took "
                f"with `rackloop lab lease {self.lab}` has others within it; wait (--wait) or take it over (--steal)"
            )
        if parent.within is not None:
            raise BadInput(f"lease {within} of lab {self.lab} is a part of lease {parent.within}: ask within that one")
        _table.require_held(tables, parent.lease(tables.now_s(), self.store.clock))
        if not parent.parts.contains(wanted):
            raise BadInput(f"lease {within} is for {parent.parts}, which does not have all of {wanted}")

    def _of_ticket(self, ticket_id: str, rows: Iterable[_table.Row]) -> _table.Row:
        """The row of a ticket among those that are live. Raises LeaseLost where it is not."""
        for row in rows:
            if row.id == ticket_id:
                return row
        raise LeaseLost(f"the place {ticket_id} in the queue of lab {self.lab} was given up; ask again")

    def _now(self, state: str) -> tuple[list[_table.Row], float]:
        """The leases or requests that are not over, and the store's time then."""
        with self.store.reading() as tables:
            now_s = tables.now_s()
            rows = _table.live_rows(tables, self.lab)
            ended = _table.over(tables, rows, now_s, private=self.store.is_private)
            live = {row.id for row in rows} - {row.id for row in ended}
        are_live = (row for row in rows if row.id in live and (row.within is None or row.within in live))
        return [row for row in are_live if row.state == state], now_s


def _is_among(steal_from: Collection[str], row: _table.Row) -> bool:
    """Whether a lease, or the one that it is a part of and ends with, is among these."""
    return row.id in steal_from or row.within in steal_from
