"""Tests that ask nothing of the rack: its health is read after them once, and what changed is told with all of them."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from rackloop.inspection.health import KernelLine
from rackloop.record import HealthCompared
from rackloop_fixtures._health import HealthWatch
from rackloop_labs import health
from rackloop_labs.in_service import BenchInService
from tests.unit.cabled_rack import SWITCHED, CabledRack, described
from tests.unit.test_health_watch import SimBench, SimRun

SERVERS = 3
LINK_LOST = (KernelLine(2_000_000, 3, "ata1: SATA link down (SStatus 0 SControl 300)"),)


class Session:
    """Tests on a simulated rack, one after another, as the fixtures have them."""

    def __init__(self, rack: Any, run: Any) -> None:
        self.rack = rack
        self.run = run
        self.watch = HealthWatch(run)
        self.bench = BenchInService(rack)
        self.watch.attend(self.bench)

    def test(
        self,
        name: str,
        *,
        asks: bool = False,
        expected: tuple[str, ...] = (),
        takes_s: float = 0.0,
        is_last: bool = False,
    ) -> str | None:
        """What is wrong with the rack after a test that ``asks`` a server something, or nothing of anybody."""
        with self.watch.aside():
            self.watch.begin(self.bench, name, expected)
            with self.watch.during_test():
                if asks:
                    self.bench.host("srv1")
                self.rack.clock.advance(takes_s)
            _, alarm = self.watch.end(self.bench, name, [], expected, may_wait=not is_last)
        return str(alarm) if alarm is not None else None

    @property
    def readings(self) -> int:
        """How often the whole rack was read."""
        count, odd = divmod(len(self.rack.since), SERVERS)
        assert not odd
        return count

    @property
    def compared(self) -> list[tuple[str, ...]]:
        """The tests that each comparison ranges over."""
        return [(*event.since, event.test) for event in self.run.of(HealthCompared)]


@pytest.fixture
def session(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Session:
    rack = SimBench(CabledRack.of(described(SWITCHED, tmp_path)))
    monkeypatch.setattr(health, "read_health", rack.read)
    return Session(rack, SimRun(tmp_path, rack.clock))


def test_after_a_test_that_asked_nothing_nothing_is_read(session: Session) -> None:
    for name in ("a", "b", "c"):
        assert session.test(name) is None
    assert (session.readings, session.compared) == (1, [])


def test_a_test_that_asks_has_its_own_readings_before_and_after(session: Session) -> None:
    session.test("a")
    session.test("b")
    assert session.test("c", asks=True) is None
    assert session.compared == [("a", "b"), ("c",)]
    before, own = session.run.of(HealthCompared)
    assert (before.before, before.after) == ("health/0001.json", "health/0002.json")
    assert (own.before, own.after) == ("health/0002.json", "health/0003.json")
    assert session.readings == 3


def test_the_rack_is_read_before_a_test_is_given_what_it_asks_for(session: Session) -> None:
    session.test("a")
    read_when_given: list[int] = []
    host = session.rack.host

    def give(server: str) -> Any:
        read_when_given.append(session.readings)
        return host(server)

    session.rack.host = give
    with session.watch.aside():
        session.watch.begin(session.bench, "b")
        with session.watch.during_test():
            session.bench.host("srv2")
    assert read_when_given[-1] == 2


def test_tests_that_ask_one_after_another_share_a_reading(session: Session) -> None:
    for name in ("a", "b"):
        session.test(name, asks=True)
    assert (session.readings, session.compared) == (3, [("a",), ("b",)])


def test_what_changes_while_nothing_is_asked_is_told_with_every_test_it_may_be_of(session: Session) -> None:
    session.test("a")
    session.rack.kernel = LINK_LOST
    session.test("b")
    session.test("c")
    before_d = session.test("d", asks=True)
    assert before_d is not None
    assert "changed during one of the 3 tests from a to c, which asked nothing of it: srv1" in before_d
    assert "kernel.link_lost" in before_d
    assert session.compared == [("a", "b", "c"), ("d",)]
    assert session.run.of(HealthCompared)[0].changes


def test_what_changed_before_a_test_and_in_it_is_told_as_both(session: Session) -> None:
    session.test("a")
    session.rack.kernel = LINK_LOST
    told = session.test("b", asks=True)
    assert told is not None
    assert "changed during the test a, which asked nothing of it: srv1" in told
    assert "; the rack's health changed: srv1" in told


def test_the_last_test_is_read_after_whatever_it_asked(session: Session) -> None:
    session.test("a")
    session.rack.kernel = LINK_LOST
    told = session.test("b", is_last=True)
    assert told is not None
    assert "changed during one of the 2 tests from a to b" in told
    assert session.compared == [("a", "b")]


def test_a_run_that_ends_early_is_read_at_its_end(session: Session) -> None:
    session.test("a")
    session.watch.finish()
    assert session.compared == [("a",)]
    session.test("b")
    session.rack.silent = {"srv2"}
    with pytest.raises(Exception, match="during the test b, which asked nothing of it: srv2: unreachable"):
        session.watch.finish()
    session.watch.finish()


def test_nothing_waits_longer_than_ten_seconds(session: Session) -> None:
    for name in ("a", "b", "c"):
        session.test(name, takes_s=4.0)
    assert session.compared == [("a", "b", "c")]
    session.test("d", takes_s=11.0)
    assert session.compared[-1] == ("d",)


def test_a_test_that_the_plan_expects_changes_of_is_read_around(session: Session) -> None:
    session.test("a")
    session.rack.kernel = LINK_LOST
    assert "kernel.link_lost" in str(session.test("b", expected=("kernel.link_lost",)))
    assert session.compared == [("a",), ("b",)]


def test_after_something_was_asked_between_tests_every_test_is_read_after(session: Session) -> None:
    session.test("a")
    session.bench.host("srv1")
    assert session.compared == [("a",)]
    for name in ("b", "c"):
        session.test(name)
    assert session.compared == [("a",), ("b",), ("c",)]


def test_what_the_harness_asks_is_no_tests_doing(session: Session) -> None:
    session.test("a")
    with session.watch.aside():
        session.bench.host("srv1")
        assert session.bench.whole is session.rack
    session.test("b")
    assert session.compared == []


@pytest.mark.parametrize(
    "ask",
    [
        lambda bench: bench.whole,
        lambda bench: bench.equipment,
        lambda bench: bench.device("srv1", "p0"),
        lambda bench: bench.drive("srv1", "p0"),
        lambda bench: bench.survey(),
        lambda bench: bench.event_logs,
        lambda bench: bench.attach_log(),
        lambda bench: bench.announce([1]),
        lambda bench: bench.recording_io("d01"),
        lambda bench: bench.rackd,
    ],
)
def test_whatever_hands_out_a_part_of_the_rack_counts_as_asking(ask: Any, session: Session) -> None:
    asked: list[bool] = []
    session.bench.on_use = lambda: asked.append(True)
    # The simulated rack has few of these parts; they were asked for all the same.
    with suppress(AttributeError):
        ask(session.bench)
    assert asked
