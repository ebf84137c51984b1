"""A run whose lease is over stops by itself, however long what it does would go on."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from threading import Event

import pytest

from rackloop.clock import RealClock
from rackloop.errors import LabError
from rackloop.safety.leases import HeldLease, Holder, LeaseLost, Leases, Slice, _holding, holding
from rackloop.safety.store import Store, open_store
from rackloop.safety.store._engine import EngineFailed
from rackloop.safety.store._sqlite import SqliteEngine
from rackloop_fixtures._while_held import while_held

WHOLE = Slice(whole=True)
# Far longer than any heartbeat; nothing waits for so long unless it is never stopped.
_FOR_EVER_S = 60.0


class Rack:
    """A leased rack, and a thief who takes it when told."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        store = stack.enter_context(closing(open_store(folder / "store.sqlite", RealClock())))
        self.leases = Leases(store, "bench")
        self.held: HeldLease = stack.enter_context(holding(self.leases, WHOLE))

    def rob(self) -> None:
        self.leases.steal(self.leases.request(WHOLE, Holder("eve", "there")), "an outage")

    def rob_and_wait_until_it_is_found(self) -> None:
        found = Event()
        with self.held.on_loss(found.set):
            self.rob()
            assert found.wait(_FOR_EVER_S)


@pytest.fixture
def rack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rack]:
    monkeypatch.setattr(_holding, "HEARTBEAT_S", 0.06)
    with ExitStack() as stack:
        yield Rack(stack, tmp_path)


def test_a_lost_lease_is_told_while_the_block_runs_and_not_afterwards(rack: Rack) -> None:
    told: list[str] = []
    with rack.held.on_loss(lambda: told.append("too early")):
        pass
    rack.rob_and_wait_until_it_is_found()
    assert told == []
    with pytest.raises(LeaseLost, match="stolen by eve"), rack.held.on_loss(lambda: None):
        pytest.fail("the lease is over")


def test_what_waits_and_swallows_every_error_is_ended_once_the_lease_is_over(rack: Rack) -> None:
    cleaned_up = []
    with pytest.raises(LeaseLost, match="stolen by eve"), while_held(rack.held):  # noqa: PT012 - it ends in the middle
        rack.rob()
        try:
            assert not Event().wait(_FOR_EVER_S)
        except Exception:  # noqa: BLE001 - what a retry does
            pytest.fail("a retry swallowed it")
        finally:
            cleaned_up.append(True)
        pytest.fail("nothing stopped it")
    assert cleaned_up


def test_the_clean_up_of_what_was_ended_is_not_ended_as_well(rack: Rack) -> None:
    again = Event()
    with pytest.raises(LeaseLost), while_held(rack.held):  # noqa: PT012 - it ends in the middle
        rack.rob()
        try:
            Event().wait(_FOR_EVER_S)
        finally:
            rack.held._on_loss.append(again.set)
            assert again.wait(_FOR_EVER_S)
            rack.held._on_loss.remove(again.set)


def test_a_test_of_a_lease_that_was_lost_before_does_not_begin(rack: Rack) -> None:
    rack.rob_and_wait_until_it_is_found()
    with pytest.raises(LeaseLost), while_held(rack.held):
        pytest.fail("the lease is over")


def test_a_signal_that_comes_late_ends_nothing(rack: Rack) -> None:
    with while_held(rack.held), while_held(None):
        pass
    os.kill(os.getpid(), signal.SIGUSR2)


class SharedEngine(SqliteEngine):
    """A store that other machines see too, and that this one can be cut off from: it fails, or does not answer."""

    is_private = False

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "store.sqlite", RealClock())
        self.is_cut = False
        self.answers: Event | None = None

    def begin(self, lab: str | None, *, synced: bool) -> None:
        if self.is_cut:
            if self.answers is not None:
                self.answers.wait(_FOR_EVER_S)
            raise EngineFailed("the network is unreachable")
        super().begin(lab, synced=synced)


@pytest.mark.parametrize("is_silent", [False, True], ids=["refuses", "does not answer"])
def test_a_holder_cut_off_from_a_shared_store_stops_before_the_lease_can_be_anothers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_silent: bool
) -> None:
    monkeypatch.setattr(_holding, "HEARTBEAT_S", 0.3)
    engine = SharedEngine(tmp_path)
    with ExitStack() as stack:
        leases = Leases(stack.enter_context(closing(Store(engine, RealClock()))), "bench")
        held = stack.enter_context(holding(leases, WHOLE))
        found = Event()
        with pytest.raises(LeaseLost, match="its store does not answer"), while_held(held):  # noqa: PT012
            if is_silent:
                engine.answers = stack.enter_context(_set_in_the_end())
            engine.is_cut = True
            try:
                found.wait(_FOR_EVER_S)
            finally:
                if engine.answers is not None:
                    engine.answers.set()
        engine.is_cut = False
        # The term is longer than the patched heartbeat: nobody can have been granted it yet.
        assert [lease.id for lease in leases.held()] == [held.lease.id]
        with pytest.raises(LeaseLost):
            held.require()


def test_heartbeats_go_on_whatever_goes_wrong_in_a_call(rack: Rack) -> None:
    calls: list[int] = []
    again = Event()

    def fail() -> None:
        calls.append(1)
        if len(calls) > 1:
            again.set()
        raise ZeroDivisionError

    with rack.held.on_loss(fail):
        rack.rob()
        assert again.wait(_FOR_EVER_S)


def test_a_grant_whose_answer_is_lost_is_nobodys(tmp_path: Path) -> None:
    class LosesAnAnswer(SqliteEngine):
        is_lost = False

        def commit(self) -> None:
            super().commit()
            if self.is_lost:
                self.is_lost = False
                raise EngineFailed("the connection was lost")

    engine = LosesAnAnswer(tmp_path / "store.sqlite", RealClock())
    with closing(Store(engine, RealClock())) as store:
        engine.is_lost = True
        with pytest.raises(LabError, match="connection was lost"):
            Leases(store, "bench").request(WHOLE, Holder.here())
        assert Leases(store, "bench").held() == []


@contextmanager
def _set_in_the_end() -> Iterator[Event]:
    event = Event()
    try:
        yield event
    finally:
        event.set()
