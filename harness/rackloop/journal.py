"""The undo journal: what was done to a rack and what undoes it, on disk before it is done.

Two tables in the lab's SQLite store, in write-ahead mode (https://sqlite.org/wal.html). An intention is synced to
the disk before :meth:`Journal.intend` returns; its outcome is not, because an entry whose outcome was lost is treated
as one that may have happened. Several threads and several processes may use one journal at once.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from threading import Lock
from typing import Any

from rackloop.clock import Clock
from rackloop.errors import LabError

SCHEMA = 1
_BUSY_S = 10.0
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_TABLE = """
CREATE TABLE undo_entry (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    lab TEXT NOT NULL,
    run TEXT NOT NULL,
    ability TEXT NOT NULL,
    resource TEXT NOT NULL,
    what TEXT NOT NULL,
    inverse TEXT NOT NULL,
    state TEXT NOT NULL,
    boot_id TEXT NOT NULL,
    intended_ns INTEGER NOT NULL,
    acted_ns INTEGER,
    wall TEXT NOT NULL,
    result TEXT
)
"""
_INDEX = "CREATE INDEX undo_standing ON undo_entry (lab, id) WHERE state IN ('intended', 'acted')"
_COLUMNS = "id, lab, run, ability, resource, what, inverse, state, boot_id, intended_ns, acted_ns, wall"
_STANDS = "state IN ('intended', 'acted')"

Act = Mapping[str, Any]


class EntryState(StrEnum):
    """How far an entry got. ``intended`` and ``acted`` stand: something may be left to undo."""

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
    ability: str
    resource: str
    what: Act
    inverse: tuple[Act, ...]
    state: EntryState
    boot_id: str
    intended_ns: int
    acted_ns: int | None
    wall: datetime

    @property
    def stands(self) -> bool:
        """Whether the act may have happened and has not been undone."""
        return self.state in {EntryState.INTENDED, EntryState.ACTED}


class JournalDamaged(LabError):
    """The journal's file cannot be read to its end. ``readable`` holds the entries that could be, newest first."""

    def __init__(self, path: Path, detail: str, readable: Sequence[Entry]) -> None:
        self.readable = tuple(readable)
        super().__init__(
            f"undo journal {path} is damaged ({detail}); `rackloop heal` undoes what can still be read and "
            "restores the baseline; then move the file away"
        )


class Journal:
    """The undo journal in the store ``path``, made on first use.

    Every method raises LabError where the disk or SQLite refuses, JournalDamaged where the file is not a database
    or a page of it is broken; opening also where another version of Rackloop wrote the journal.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self.path = path
        self._clock = clock
        self._lock = Lock()
        try:
            self.boot_id = _BOOT_ID.read_text(encoding="ascii").strip()
        except OSError as error:
            raise LabError(f"cannot read {_BOOT_ID}: {error.strerror}; the undo journal needs Linux's /proc") from error
        with self._explained():
            self._db = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
        try:
            self._prepare()
        except BaseException:
            self._db.close()
            raise

    def intend(self, lab: str, run: str, ability: str, resource: str, *, what: Act, inverse: Sequence[Act]) -> Entry:
        """Record that ``what`` is about to be done; the entry is on disk when this returns.

        Where it raises, nothing was promised and the act must not happen.
        """
        now_ns, wall = self._clock.now_ns(), self._clock.wall()
        row = (lab, run, ability, resource, json.dumps(what), json.dumps(list(inverse)), EntryState.INTENDED)
        stamps = (self.boot_id, now_ns, wall.isoformat())
        with self._transaction():
            cursor = self._db.execute(
                "INSERT INTO undo_entry (lab, run, ability, resource, what, inverse, state, boot_id, intended_ns, wall)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*row, *stamps),
            )
        number = cursor.lastrowid
        if number is None:
            raise LabError(f"undo journal {self.path}: SQLite gave the new entry no number")
        return Entry(
            number,
            lab,
            run,
            ability,
            resource,
            what,
            tuple(inverse),
            EntryState.INTENDED,
            self.boot_id,
            now_ns,
            None,
            wall,
        )

    def acted(self, entry: Entry, result: Act) -> Entry:
        """Record that the act of ``entry`` was carried out, with what it returned; the entry as it is now."""
        acted = replace(entry, state=EntryState.ACTED, acted_ns=self._clock.now_ns())
        values = (acted.state, acted.acted_ns, json.dumps(result), entry.id, EntryState.INTENDED)
        with self._transaction(synced=False):
            self._db.execute(
                "UPDATE undo_entry SET state = ?, acted_ns = ?, result = ? WHERE id = ? AND state = ?", values
            )
        return acted

    def failed(self, entry: Entry, reason: str) -> None:
        """Record that the act of ``entry`` is known not to have happened, so that nothing is left to undo."""
        values = (EntryState.FAILED, json.dumps({"error": reason}), entry.id)
        with self._transaction(synced=False):
            self._db.execute("UPDATE undo_entry SET state = ?, result = ? WHERE id = ?", values)

    def undone(self, entries: Iterable[Entry]) -> None:
        """Record that these entries were undone, all of them or none."""
        with self._transaction():
            self._db.executemany(
                "UPDATE undo_entry SET state = ? WHERE id = ?", [(EntryState.UNDONE, entry.id) for entry in entries]
            )

    def standing(self, lab: str) -> list[Entry]:
        """What may have been done to ``lab`` and was not undone, newest first.

        Raises JournalDamaged where the file cannot be read to its end; its ``readable`` holds what could be.
        """
        return self._entries(f"lab = ? AND {_STANDS}", (lab,))

    def mark(self) -> int:
        """A point in the journal, for :meth:`since`."""
        with self._lock, self._explained():
            (number,) = self._db.execute("SELECT coalesce(max(id), 0) FROM undo_entry").fetchone()
        return int(number)

    def since(self, mark: int) -> list[Entry]:
        """Every entry made after ``mark``, whatever its lab and state, newest first."""
        return self._entries("id > ?", (mark,))

    def close(self) -> None:
        """Let go of the file."""
        with self._lock, self._explained():
            self._db.close()

    def _entries(self, condition: str, values: tuple[object, ...]) -> list[Entry]:
        entries: list[Entry] = []
        query = f"SELECT {_COLUMNS} FROM undo_entry WHERE {condition} ORDER BY id DESC"  # noqa: S608 - own constants
        with self._lock, self._explained(entries):
            for row in self._db.execute(query, values):
                entries.append(_entry(row))  # noqa: PERF401 - what was read before a damaged page is kept
        return entries

    def _prepare(self) -> None:
        with self._explained():
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
        with self._transaction():
            self._db.execute("CREATE TABLE IF NOT EXISTS undo_schema (version INTEGER NOT NULL)")
            row = self._db.execute("SELECT version FROM undo_schema").fetchone()
            if row is None:
                self._db.execute(_TABLE)
                self._db.execute(_INDEX)
                self._db.execute("INSERT INTO undo_schema VALUES (?)", (SCHEMA,))
            elif row[0] != SCHEMA:
                raise LabError(
                    f"undo journal {self.path} has schema {row[0]}, this Rackloop knows {SCHEMA}; "
                    "heal the lab with the Rackloop that wrote it"
                )

    @contextmanager
    def _transaction(self, *, synced: bool = True) -> Iterator[None]:
        with self._lock, self._explained():
            self._db.execute(f"PRAGMA synchronous = {'FULL' if synced else 'NORMAL'}")
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    @contextmanager
    def _explained(self, readable: Sequence[Entry] = ()) -> Iterator[None]:
        try:
            yield
        except (sqlite3.OperationalError, sqlite3.ProgrammingError) as error:
            raise LabError(f"undo journal {self.path}: {error}; nothing may be done to the lab without it") from error
        except (sqlite3.DatabaseError, ValueError, KeyError, TypeError) as error:
            raise JournalDamaged(self.path, str(error), readable) from error


def _entry(row: tuple[Any, ...]) -> Entry:
    number, lab, run, ability, resource, what, inverse, state, boot_id, intended_ns, acted_ns, wall = row
    return Entry(
        id=number,
        lab=lab,
        run=run,
        ability=ability,
        resource=resource,
        what=json.loads(what),
        inverse=tuple(json.loads(inverse)),
        state=EntryState(state),
        boot_id=boot_id,
        intended_ns=intended_ns,
        acted_ns=acted_ns,
        wall=datetime.fromisoformat(wall),
    )
