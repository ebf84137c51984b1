"""The database that a store runs on, SQLite or PostgreSQL, and the boot that its processes belong to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from rackloop.errors import LabError

Row = tuple[Any, ...]
TURN_S = 5.0
"""A holder of the lab's turn loses it after so long: the next goes on without waiting."""

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class EngineFailed(Exception):
    """The database refused. ``is_damage`` says that what it holds cannot be read, not that it could not be asked."""

    def __init__(self, message: str, *, is_damage: bool = False) -> None:
        self.is_damage = is_damage
        super().__init__(message)


class Engine(Protocol):
    """One connection, used by one thread at a time. Everything raises EngineFailed.

    SQL is what SQLite and PostgreSQL both understand, with ``?`` for a value and ``{serial}`` for the type of a primary
    key that numbers itself. ``is_private`` says that only processes of this machine can have the store open.
    """

    name: str
    is_private: bool

    def execute(self, sql: str, values: Sequence[object] = ()) -> Iterator[Row]: ...

    def be_ready(self) -> None:
        """Have a connection that answers, before something is asked outside a transaction."""
        ...

    def begin(self, lab: str | None, *, synced: bool) -> None:
        """Begin a transaction; two of one lab never run at once."""
        ...

    def commit(self) -> None: ...
    def rollback(self) -> None: ...

    def now_s(self) -> float:
        """Seconds since 1970 of the store's own time, which every client reads alike; within a transaction."""
        ...

    def up_since_s(self) -> float:
        """Since when, in its own time, the store has answered without having been started again; 0 for a file."""
        ...

    def turn(self, lab: str, wait_s: float) -> AbstractContextManager[bool]:
        """Have the lab's turn, in the order in which it was asked for; gives False where it did not come in time."""
        ...

    def close(self) -> None: ...


@cache
def boot_id() -> str:
    """The kernel's identifier of this boot. Raises LabError where there is no /proc."""
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError as error:
        raise LabError(f"cannot read {_BOOT_ID}: {error.strerror}; the undo journal needs Linux's /proc") from error
