"""Opening a store, by the name a lab description gives it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from rackloop.clock import Clock
from rackloop.errors import LabError
from rackloop.safety.store._engine import Engine, EngineFailed
from rackloop.safety.store._store import Store, StoreDamaged

if TYPE_CHECKING:
    from rackloop.lab import Lab, LabState


def open_store(where: str | Path, clock: Clock) -> Store:
    """The store in the file ``where``, made on first use, or at a ``postgresql://`` URL.

    Raises LabError where it cannot be had or another version of Rackloop made it, StoreDamaged where it is none.
    """
    if isinstance(where, str) and where.startswith(("postgresql://", "postgres://")):
        from rackloop.safety.store._postgres import PostgresEngine, shown_url

        return _opened(shown_url(where), lambda: PostgresEngine(where, clock), clock)
    from rackloop.safety.store._sqlite import SqliteEngine

    return _opened(str(where), lambda: SqliteEngine(Path(where), clock), clock)


def open_lab_store(lab: Lab, state: LabState, clock: Clock) -> Store:
    """The store that the description of ``lab`` names; raises as :func:`open_store` does.

    A rack beside the described one, that a worker of a run has, is this machine's alone and so is its store.
    """
    shared = lab.store != "sqlite" and state.directory.name == lab.name
    return open_store(lab.store if shared else state.store, clock)


def _opened(name: str, engine: Callable[[], Engine], clock: Clock) -> Store:
    try:
        return Store(engine(), clock)
    except EngineFailed as error:
        if error.is_damage:
            raise StoreDamaged(
                f"lab store {name} is damaged ({error}): it is no database; move it away, then `rackloop heal` "
                "restores the baseline"
            ) from error
        raise LabError(f"lab store {name}: {error}; nothing may be done to the lab without it") from error
