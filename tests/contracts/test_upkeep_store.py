"""The upkeep of a lab on a real PostgreSQL server, which several machines share; on SQLite it has unit tests."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from rackloop.clock import RealClock
from rackloop.errors import BadInput
from rackloop.lab import Part
from rackloop.measurement import Cause
from rackloop.safety.maintenance import OutOfServiceStore, QuarantineRule, State
from rackloop.safety.store import open_store
from tests.postgres_server import PostgresServer, running_postgres

D01 = Part.drive("d01")
TESTS = 20


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with running_postgres() as running:
        yield running


def test_what_one_machine_takes_out_of_service_another_sees(server: PostgresServer) -> None:
    url = server.database()
    with closing(open_store(url, RealClock())) as here, closing(open_store(url, RealClock())) as there:
        mine, others = OutOfServiceStore(here, "lab"), OutOfServiceStore(there, "lab")
        out = mine.maintain(D01, "new firmware", "ada@ctl1")
        assert others.standing() == {D01: out}
        with pytest.raises(BadInput, match="end that first"):
            others.maintain(D01, "a new cable", "bob@ctl2")
        assert others.lift(D01, State.MAINTENANCE, "bob@ctl2") == out
        assert mine.standing() == {}


def test_failures_that_machines_see_add_up(server: PostgresServer) -> None:
    url = server.database()
    rule = QuarantineRule(failures=2, tests=10)
    with closing(open_store(url, RealClock())) as here, closing(open_store(url, RealClock())) as there:
        outs = [
            OutOfServiceStore(store, "lab").failed(
                D01, Cause.LAB, "no answer", run="r", test="t", number=number, rule=rule
            )
            for number, store in enumerate((here, there), 1)
        ]
        assert outs[0] is None
        assert outs[1] is not None
        assert OutOfServiceStore(here, "lab").standing() == {D01: outs[1]}
        OutOfServiceStore(there, "lab").lift(D01, State.QUARANTINE, "ada@ctl1")
        assert OutOfServiceStore(here, "lab").failures(D01) == []


def test_machines_that_test_at_once_count_each_test_once(server: PostgresServer) -> None:
    url = server.database()
    with (
        closing(open_store(url, RealClock())) as here,
        closing(open_store(url, RealClock())) as there,
        ThreadPoolExecutor(2) as pool,
    ):
        counts = pool.map(lambda store: [OutOfServiceStore(store, "lab").tested() for _ in range(TESTS)], (here, there))
        assert sorted(number for count in counts for number in count) == list(range(1, 2 * TESTS + 1))
