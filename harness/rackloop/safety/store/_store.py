"""The lab store: transactions on its tables, whichever database keeps them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from rackloop.clock import Clock
from rackloop.errors import LabError
from rackloop.safety.store._engine import Engine, EngineFailed, Row
from rackloop.safety.store._schema import TABLES

SCHEMA = 2
# Version 1 held the journal alone; its tables are those of today.
_UPGRADED = 1


class StoreDamaged(LabError):
    """The store cannot be read: its file is not a database, or a page of it is broken."""


class Transaction:
    """The questions to the tables within one transaction."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def rows(self, sql: str, *values: object) -> list[Row]:
        """Carry out a statement, with ``?`` for each of ``values``; every row it gives."""
        return list(self._engine.execute(sql, values))

    def now_s(self) -> float:
        """Seconds since 1970 of the store's own time: steady, and the same for every machine that shares the store.

        PostgreSQL's own clock; for SQLite the machine's wall clock as it was when the store was first used since the
        machine started, going on by CLOCK_MONOTONIC, so that a clock that is set ends no lease.
        """
        return self._engine.now_s()

    def up_since_s(self) -> float:
        """The start of the store's server, in the store's own time: no lease was renewed before; 0 for a file."""
        return self._engine.up_since_s()


class Store:
    """One lab store, opened with :func:`open_store`. Any number of threads and processes may use one.

    Everything raises LabError where the database refuses or does not answer, StoreDamaged where it cannot be read.
    ``clock`` is that of the process that opened it.
    """

    def __init__(self, engine: Engine, clock: Clock) -> None:
        self.clock = clock
        self._engine = engine
        self._lock = Lock()
        try:
            self._prepare()
        except BaseException:
            engine.close()
            raise

    @property
    def name(self) -> str:
        """The file or the URL, for messages; without a password."""
        return self._engine.name

    @property
    def is_private(self) -> bool:
        """Whether only processes of this machine can have the store open."""
        return self._engine.is_private

    @contextmanager
    def transaction(self, lab: str | None = None, *, synced: bool = True) -> Iterator[Transaction]:
        """All of it or nothing, on disk when the block is left, unless not ``synced``.

        Of two transactions with the same ``lab`` one begins when the other has ended.
        """
        with self._lock, self._explained():
            try:
                self._engine.begin(lab, synced=synced)
                yield Transaction(self._engine)
                self._engine.commit()
            except BaseException:
                self._engine.rollback()
                raise

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """Queries one after the other, during which others may write; each sees the newest state."""
        with self._lock, self._explained():
            self._engine.be_ready()
            yield Transaction(self._engine)

    def read(self, sql: str, *values: object) -> Iterator[Row]:
        """The rows of a query, one after the other, so that those before a damaged page are read."""
        with self._lock, self._explained():
            self._engine.be_ready()
            yield from self._engine.execute(sql, values)

    @contextmanager
    def turn(self, lab: str, wait_s: float) -> Iterator[bool]:
        """Have the lab's turn, one controller at a time, in the order in which they ask.

        False where it did not come within ``wait_s``. It ends with its holder, however that ends, and after
        :data:`TURN_S` at the latest: then the next has it too.
        A courtesy that saves retries, not a safeguard.
        """
        with self._explained(), self._engine.turn(lab, wait_s) as is_mine:
            yield is_mine

    def close(self) -> None:
        """Let go of the database."""
        with self._lock:
            self._engine.close()

    def _prepare(self) -> None:
        with self._explained():
            if self._version_read() == SCHEMA:
                return
        with self.transaction("") as tables:
            tables.rows("CREATE TABLE IF NOT EXISTS undo_schema (version INTEGER NOT NULL)")
            version = next((row[0] for row in tables.rows("SELECT version FROM undo_schema")), None)
            if version not in {None, _UPGRADED, SCHEMA}:
                raise LabError(
                    f"lab store {self.name} has schema {version}, this Rackloop knows {SCHEMA}; "
                    "heal the lab with the Rackloop that wrote it"
                )
            for statement in TABLES:
                tables.rows(statement)
            tables.rows("DELETE FROM undo_schema")
            tables.rows("INSERT INTO undo_schema VALUES (?)", SCHEMA)

    def _version_read(self) -> int | None:
        """The schema of a store that was made before; None where there is none yet."""
        try:
            return next((int(row[0]) for row in self._engine.execute("SELECT version FROM undo_schema")), None)
        except EngineFailed as error:
            if error.is_damage:
                raise
            return None

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except EngineFailed as error:
            if error.is_damage:
                raise StoreDamaged(
                    f"lab store {self.name} is damaged ({error}); `rackloop heal` undoes what can still be read and "
                    "restores the baseline; then move it away. Where heal itself ends with this, it cannot tell "
                    "whether a run works on the lab: see that none does, move the store away first, and heal again"
                ) from error
            raise LabError(f"lab store {self.name}: {error}; nothing may be done to the lab without it") from error
