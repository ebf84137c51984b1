"""The store in a file (https://sqlite.org/wal.html): write-ahead, synced before a transaction is over."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakSet

from rackloop.clock import Clock, Deadline, RealClock
from rackloop.safety.store._engine import EngineFailed, Row, boot_id
from rackloop.safety.store._turns import Place

_BUSY_S = 30.0
# SQLite's own patience grows slower and slower, so that of a hundred the longest waiting would get nothing.
_TRY_AGAIN_NS = 5_000_000
# Another process writes in real time, whatever the clock of a test says.
_REAL = RealClock()
_CLOCK = "CREATE TABLE IF NOT EXISTS store_clock (boot_id TEXT PRIMARY KEY, started_ns INTEGER NOT NULL)"
_STARTED = "SELECT started_ns FROM store_clock WHERE boot_id = ?"


class SqliteEngine:
    """A connection to a SQLite file, made on first use."""

    is_private = True

    def __init__(self, path: Path, clock: Clock) -> None:
        self.name = str(path)
        self._path = path
        self._clock = clock
        self._started_ns: int | None = None
        self._is_synced: bool | None = None
        self._cursors: WeakSet[sqlite3.Cursor] = WeakSet()
        with _explained():
            self._db = sqlite3.connect(path, timeout=0.0, isolation_level=None, check_same_thread=False)
        try:
            self._execute("PRAGMA journal_mode = WAL")
        except BaseException:
            self._db.close()
            raise

    def execute(self, sql: str, values: Sequence[object] = ()) -> Iterator[Row]:
        """Carry out a statement."""
        text = sql.replace("{serial}", "INTEGER PRIMARY KEY AUTOINCREMENT")
        # A statement is carried out whether or not its rows are read.
        return self._rows(self._execute(text, tuple(values)))

    def _execute(self, sql: str, values: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        """Carry out a statement, once the process that writes now is done. Raises EngineFailed."""
        deadline: Deadline | None = None
        while True:
            try:
                cursor = self._db.cursor()
                self._cursors.add(cursor)
                return cursor.execute(sql, values)
            except sqlite3.DatabaseError as error:
                deadline = deadline or Deadline.after(_REAL, _BUSY_S)
                if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_BUSY or deadline.is_over():
                    with _explained():
                        raise
            _REAL.sleep_until_ns(_REAL.now_ns() + _TRY_AGAIN_NS)

    def _rows(self, cursor: sqlite3.Cursor) -> Iterator[Row]:
        with _explained():
            yield from cursor

    def be_ready(self) -> None:
        """A file always answers."""

    def begin(self, lab: str | None, *, synced: bool) -> None:  # noqa: ARG002 - a file has one writer at a time
        """Begin a transaction that may write."""
        # Outside it: where the transaction is rolled back, the time that was read in it stays.
        self.now_s()
        if synced != self._is_synced:
            # Until it is said, whatever comes between: then it is said again.
            self._is_synced = None
            self._execute(f"PRAGMA synchronous = {'FULL' if synced else 'NORMAL'}")
            self._is_synced = synced
        self._execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """End it, on disk if it was to be."""
        self._execute("COMMIT")

    def rollback(self) -> None:
        """End it as if it had never begun."""
        with _explained():
            # What an interrupt left half carried out lives on in its traceback, and would let nothing be committed.
            for cursor in list(self._cursors):
                cursor.close()
            if self._db.in_transaction:
                self._execute("ROLLBACK")

    def now_s(self) -> float:
        """The wall clock of the store's first use since the machine started, and what passed since."""
        if self._started_ns is None:
            self._started_ns = self._started()
        return (self._started_ns + self._clock.now_ns()) / 1e9

    def up_since_s(self) -> float:
        """A file always answers."""
        return 0.0

    @contextmanager
    def turn(self, lab: str, wait_s: float) -> Iterator[bool]:  # noqa: ARG002 - one file, one lab
        """Queue at a file beside the store."""
        deadline = Deadline.after(self._clock, wait_s)
        with closing(Place(self._path.with_name(f"{self._path.name}-turn"), self._clock)) as place:
            yield place.wait(deadline)

    def close(self) -> None:
        """Close the file."""
        with _explained():
            self._db.close()

    def _started(self) -> int:
        here = boot_id()
        with _explained():
            self._execute(_CLOCK)
            known = self._execute(_STARTED, (here,)).fetchone()
            if known is None:
                wall_ns = round(self._clock.wall().timestamp() * 1e9)
                # A machine whose clock lost its battery starts in the past, where no lease would ever end.
                first_ns = max(wall_ns, self._newest_ns()) - self._clock.now_ns()
                self._execute("INSERT OR IGNORE INTO store_clock VALUES (?, ?)", (here, first_ns))
                known = self._execute(_STARTED, (here,)).fetchone()
        return int(known[0])

    def _newest_ns(self) -> int:
        """The time when the newest lease was asked for; 0 where there is none."""
        if self._execute("SELECT 1 FROM sqlite_master WHERE name = 'lease'").fetchone() is None:
            return 0
        (newest_s,) = self._execute("SELECT max(asked_s) FROM lease").fetchone()
        return round((newest_s or 0) * 1e9)


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except sqlite3.DatabaseError as error:
        is_damage = not isinstance(error, (sqlite3.OperationalError, sqlite3.ProgrammingError))
        raise EngineFailed(str(error), is_damage=is_damage) from error
