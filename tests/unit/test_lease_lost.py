"""A run whose lease is over stops by itself, however long what it does would go on."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from threading import Event

import pytest

from rackloop.clock import RealClock
from rackloop.leases import HeldLease, Holder, LeaseLost, Leases, Slice, _holding, holding
from rackloop.store import open_store
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
