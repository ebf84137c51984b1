"""An interrupt in the middle of a transaction leaves a store that can be written."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from rackloop.clock import VirtualClock
from rackloop.safety.store import open_store
from rackloop.safety.store._engine import EngineFailed
from rackloop.safety.store._sqlite import SqliteEngine

FENCING = "INSERT INTO fencing VALUES (?, 1) RETURNING token"


def test_what_was_interrupted_lets_the_next_transaction_be_committed(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    with closing(open_store(path, VirtualClock())):
        pass
    engine = SqliteEngine(path, VirtualClock())
    engine.begin("lab", synced=True)
    # As the traceback of an interrupt does, this keeps a statement whose rows nobody has read.
    half_done = engine.execute(FENCING, ("first",))
    engine.rollback()
    engine.begin("lab", synced=True)
    assert list(engine.execute(FENCING, ("second",))) == [(1,)]
    engine.commit()
    assert list(engine.execute("SELECT lab FROM fencing")) == [("second",)]
    with pytest.raises(EngineFailed, match="closed"):
        next(half_done)
    engine.close()
