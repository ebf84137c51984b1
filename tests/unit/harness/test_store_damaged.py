"""A store whose leases cannot be read says what to do, and doing it helps."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from rackloop.clock import VirtualClock
from rackloop.safety.leases import Holder, Leases
from rackloop.safety.store import StoreDamaged, open_store
from tests.parts import parts

WHOLE = parts(whole=True)


def break_the_leases(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        [(page,)] = database.execute("SELECT rootpage FROM sqlite_master WHERE name = 'lease'")
        [(size,)] = database.execute("PRAGMA page_size")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray(path.read_bytes())
    content[(page - 1) * size : page * size] = b"\xff" * size
    path.write_bytes(content)


def test_leases_that_cannot_be_read_say_what_to_do_and_that_helps(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    with closing(open_store(path, VirtualClock())) as store:
        assert Leases(store, "lab").request(WHOLE, Holder.here()).lease
    break_the_leases(path)
    with closing(open_store(path, VirtualClock())) as store:
        for ask in (Leases(store, "lab").held, lambda: Leases(store, "lab").request(WHOLE, Holder.here())):
            with pytest.raises(StoreDamaged, match=r"see that none does, move the store away first, and heal again"):
                ask()
    for part in tmp_path.glob("store.sqlite*"):
        part.rename(tmp_path / f"damaged.{part.name}")
    with closing(open_store(path, VirtualClock())) as store:
        assert Leases(store, "lab").request(WHOLE, Holder.here()).lease
