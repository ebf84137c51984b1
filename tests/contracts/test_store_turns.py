"""The lab's turn, on a file and on a real PostgreSQL server: one at a time, in order, and nobody keeps it for ever."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from threading import Event

import pytest

from rackloop.safety.store import _postgres, open_store
from tests.deadlines import CLOCK
from tests.postgres_server import PostgresServer, running_postgres


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


@pytest.mark.parametrize("arm", ["sqlite", "postgresql"])
def test_only_one_has_the_turn(arm: str, tmp_path: Path, postgres: PostgresServer) -> None:
    where = str(tmp_path / "store.sqlite") if arm == "sqlite" else postgres.database()
    with closing(open_store(where, CLOCK)) as store, closing(open_store(where, CLOCK)) as other:
        with store.turn("lab", 0.0) as mine:
            assert mine
            with other.turn("lab", 0.0) as theirs:
                assert not theirs
        with other.turn("lab", 0.0) as theirs:
            assert theirs


def test_a_turn_is_given_back_once_the_server_has_said_so(postgres: PostgresServer) -> None:
    url, holder = postgres.database(), "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted"
    with (
        closing(open_store(url, CLOCK)) as store,
        closing(open_store(url, CLOCK)) as other,
        ThreadPoolExecutor(1) as pool,
    ):
        with ExitStack() as turn:
            assert turn.enter_context(store.turn("lab", 0.0))
            [(session,)] = store.read(holder)
            os.kill(session, signal.SIGSTOP)
            try:
                given_back = pool.submit(turn.pop_all().close)
                with other.turn("lab", 0.0) as theirs:
                    assert not theirs
                    assert not given_back.done()
            finally:
                os.kill(session, signal.SIGCONT)
            given_back.result()
        with other.turn("lab", 0.0) as theirs:
            assert theirs


def test_who_gives_the_turn_back_has_it_again_after_those_who_wait(postgres: PostgresServer) -> None:
    url, mine, theirs = postgres.database(), Event(), Event()

    def wait() -> None:
        with closing(open_store(url, CLOCK)) as other, other.turn("lab", 20.0) as is_theirs:
            assert is_theirs
            theirs.set()
            assert mine.wait(20)

    waiting = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    with closing(open_store(url, CLOCK)) as store, ThreadPoolExecutor(1) as pool:
        with store.turn("lab", 0.0) as is_mine:
            assert is_mine
            waiter = pool.submit(wait)
            while not list(store.read(waiting)):
                assert not waiter.done()
        with store.turn("lab", 0.0) as is_mine:
            assert not is_mine
        assert theirs.wait(20)
        mine.set()
        waiter.result()


def test_who_stops_in_its_turn_loses_it(postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_postgres, "TURN_S", 0.01)
    url = postgres.database()
    with (
        closing(open_store(url, CLOCK)) as store,
        closing(open_store(url, CLOCK)) as other,
        store.turn("lab", 0.0) as mine,
        other.turn("lab", 20.0) as theirs,
    ):
        assert mine
        assert theirs
