"""The undo journal: acts on a rack and their inverses, on disk before the acts are made.

A table in the lab's store (:mod:`rackloop.safety.store`). An intention is synced to the disk before
:meth:`Journal.intend` returns; its outcome is written with the next one, because an entry whose outcome was lost is
treated as one that may have happened. Several threads and several processes may use one journal at once.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

from rackloop.errors import LabError
from rackloop.lab import Part
from rackloop.portmap import MapChange, Partial, PortMap
from rackloop.record.acts import Act, InverseAct, act_json, entry_acts, inverse_json, touched_ports
from rackloop.safety.store import Store, StoreDamaged, Transaction, boot_id

if TYPE_CHECKING:
    from rackloop.safety.leases import Lease

_COLUMNS = "id, lab, run, ability, resource, what, inverse, state, boot_id, intended_ns, acted_ns, wall"
# Of an act that changes nothing: an empty list in the store is one whose acts were lost.
_NOTHING = Partial(PortMap())
_STANDS = "state IN ('intended', 'acted')"
_ACTED = "UPDATE undo_entry SET state = ?, acted_ns = ?, result = ? WHERE id = ? AND state = ?"

T = TypeVar("T")


class EntryState(StrEnum):
    """The state of an entry. ``intended`` and ``acted`` stand: something may be left to undo."""

    INTENDED = "intended"
    ACTED = "acted"
    UNDONE = "undone"
    FAILED = "failed"


@dataclass(frozen=True)
class Entry:
    """One act as the journal has it. ``inverse`` holds the acts that, made in order, undo it.

    ``intended_ns`` and ``acted_ns`` are CLOCK_MONOTONIC of the boot that ``boot_id`` names.
    """

    id: int
    lab: str
    run: str
    resource: str
    what: Act
    inverse: tuple[InverseAct, ...]
    state: EntryState
    boot_id: str
    intended_ns: int
    acted_ns: int | None
    wall: datetime

    @property
    def ability(self) -> str:
        """The ability of the rack that the act used."""
        return self.what.ability

    @property
    def part(self) -> Part:
        """The part of the rack that the act is on."""
        return Part.of_resource(self.resource)

    @property
    def ports(self) -> frozenset[int]:
        """The switch ports that the act, or its inverse, touches."""
        return touched_ports(self.what, self.inverse)

    @property
    def map_changes(self) -> list[MapChange]:
        """The changes of the map among the inverse acts."""
        return [act for act in self.inverse if isinstance(act, MapChange)]

    def inverses(self, kind: type[T]) -> list[T]:
        """The inverse acts of one kind, in their order."""
        return [act for act in self.inverse if isinstance(act, kind)]


class JournalDamaged(StoreDamaged):
    """Not every entry of the journal can be read. ``readable`` holds those that could be, newest first.

    ``broken`` has the number of each that could not, with the resource it names; those behind a page of the store that
    cannot be read are in neither.
    """

    def __init__(self, name: str, detail: str, readable: Sequence[Entry], broken: Mapping[int, str]) -> None:
        self.readable = tuple(readable)
        self.broken = dict(broken)
        super().__init__(
            f"undo journal {name} is damaged ({detail}); `rackloop heal` undoes what can still be read and "
            "restores the baseline, but not what such an entry did: see to that by hand, then move the store away"
        )


class Journal:
    """The undo journal in ``store``. Closing it closes the store, which may also be closed on its own.

    Every method raises LabError where the disk or the database refuses, JournalDamaged where it cannot be read.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.boot_id = boot_id()
        self._outcomes: deque[tuple[object, ...]] = deque()

    def intend(
        self, lab: str, run: str, resource: str, *, what: Act, inverse: Sequence[InverseAct], lease: Lease | None = None
    ) -> Entry:
        """Record that ``what`` is about to be done; the entry is on disk when this returns.

        With ``lease``, only where it is still held: asked in the same transaction. Where it raises, LeaseLost
        included, nothing was promised and the act must not happen.
        """
        undoes = tuple(inverse) or (_NOTHING,)
        clock = self.store.clock
        now_ns, wall = clock.now_ns(), clock.wall()
        texts = (json.dumps(act_json(what)), json.dumps([inverse_json(act) for act in undoes]))
        row = (lab, run, what.ability, resource, *texts, EntryState.INTENDED.value)
        stamps = (self.boot_id, now_ns, wall.isoformat())
        with self._transaction(lab if lease else None) as tables:
            if lease is not None:
                from rackloop.safety.leases import require_held

                require_held(tables, lease)
            [(number,)] = tables.rows(
                "INSERT INTO undo_entry (lab, run, ability, resource, what, inverse, state, boot_id, intended_ns, wall)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
                *row,
                *stamps,
            )
        return Entry(number, lab, run, resource, what, undoes, EntryState.INTENDED, self.boot_id, now_ns, None, wall)

    def acted(self, entry: Entry, result: Mapping[str, Any]) -> Entry:
        """Record that the act of ``entry`` was carried out, with what it returned; the entry as it is now.

        It costs no transaction: other processes read it once this one intends, reads or closes.
        """
        acted = replace(entry, state=EntryState.ACTED, acted_ns=self.store.clock.now_ns())
        self._outcomes.append(
            (acted.state.value, acted.acted_ns, json.dumps(result), entry.id, EntryState.INTENDED.value)
        )
        return acted

    def failed(self, entry: Entry, reason: str) -> None:
        """Record that the act of ``entry`` is known not to have happened, so that nothing is left to undo."""
        values = (EntryState.FAILED.value, json.dumps({"error": reason}), entry.id)
        with self._transaction(synced=False) as tables:
            tables.rows("UPDATE undo_entry SET state = ?, result = ? WHERE id = ?", *values)

    def undone(self, entries: Iterable[Entry]) -> None:
        """Record that these entries were undone, all of them or none."""
        with self._transaction() as tables:
            for entry in entries:
                tables.rows("UPDATE undo_entry SET state = ? WHERE id = ?", EntryState.UNDONE.value, entry.id)

    def standing(self, lab: str) -> list[Entry]:
        """The entries of acts that may have happened to ``lab`` and were not undone, newest first.

        Raises JournalDamaged where not all of it can be read; its ``readable`` holds what could be.
        """
        return self._entries(f"lab = ? AND {_STANDS}", lab)

    def mark(self) -> int:
        """A point in the journal, for :meth:`since`."""
        [(number,)] = self.store.read("SELECT coalesce(max(id), 0) FROM undo_entry")
        return int(number)

    def since(self, mark: int) -> list[Entry]:
        """Every entry made after ``mark``, whatever its lab and state, newest first."""
        return self._entries("id > ?", mark)

    def close(self) -> None:
        """Let go of the store."""
        self._write_outcomes()
        self.store.close()

    @contextmanager
    def _transaction(self, lab: str | None = None, *, synced: bool = True) -> Iterator[Transaction]:
        """A transaction of the store that writes the outcomes first which are not on disk yet."""
        written: list[tuple[object, ...]] = []
        try:
            with self.store.transaction(lab, synced=synced) as tables:
                while self._outcomes:
                    written.append(self._outcomes.popleft())
                    tables.rows(_ACTED, *written[-1])
                yield tables
        except BaseException:
            self._outcomes.extendleft(reversed(written))
            raise

    def _write_outcomes(self) -> None:
        # Where the store refuses, the entries stand as those of acts that may have happened.
        with suppress(LabError):
            if self._outcomes:
                with self._transaction(synced=False):
                    pass

    def _entries(self, condition: str, value: object) -> list[Entry]:
        self._write_outcomes()
        entries: list[Entry] = []
        broken: dict[int, str] = {}
        wrong: list[str] = []
        query = f"SELECT {_COLUMNS} FROM undo_entry WHERE {condition} ORDER BY id DESC"  # noqa: S608 - own constants
        try:
            for row in self.store.read(query, value):
                try:
                    entries.append(_entry(row))
                # A text nested deeper than Python reads, or a number larger, is an entry of nobody's.
                except (ValueError, TypeError, RecursionError, OverflowError) as error:
                    number, resource = row[0], ascii(row[4])[1:-1]
                    broken[number] = resource
                    wrong.append(f"entry {number}, of {resource}: {error}")
        except StoreDamaged as error:
            raise JournalDamaged(self.store.name, "; ".join([*wrong, str(error)]), entries, broken) from error
        if wrong:
            raise JournalDamaged(self.store.name, "; ".join(wrong), entries, broken)
        return entries


def _entry(row: tuple[Any, ...]) -> Entry:
    """The entry of a row. Raises ValueError, TypeError, RecursionError or OverflowError where it is none."""
    number, lab, run, ability, resource, what, inverse, state, boot_id, intended_ns, acted_ns, wall = row
    texts = (lab, run, ability, resource, what, inverse, boot_id, wall)
    if not all(isinstance(text, str) for text in texts) or not isinstance(intended_ns, int):
        raise TypeError("malformed journal entry: a column has a value of the wrong type")
    act, undoes = entry_acts(ability, json.loads(what), json.loads(inverse))
    # Older versions called a switch port port:17.
    of, moments = str(Part.of_resource(resource)), (intended_ns, acted_ns, datetime.fromisoformat(wall))
    return Entry(number, lab, run, of, act, undoes, EntryState(state), boot_id, *moments)
