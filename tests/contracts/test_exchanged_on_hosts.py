"""Drives that are exchanged between the guard's check and a write through their server, judged at the drives."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from rackloop.errors import RackloopError
from rackloop.lab import Lab, LabState, load_lab, once_online
from rackloop.safety import Guard
from rackloop.safety.leases import HeldLease, LeaseTerms, leased
from rackloop.safety.store import open_store
from rackloop.seed import Stream
from rackloop_drivers.open_blocks import open_blocks
from rackloop_drivers.rackd import RackdControl
from rackloop_labs import Bench, open_leased
from tests.deadlines import CLOCK, soon
from tests.discovered_rack import discovered_rack
from tests.exchanges import NEVER, Exchanges, Round, play

pytestmark = pytest.mark.usefixtures("own_machine")

# Two drives of one model, and what the simulated rack calls them.
SERIALS = {"RL000001": "d01", "RL000003": "d03"}
MOMENTS = (NEVER, "before it is opened", "when it is open")
ROUNDS, NIGHTLY_ROUNDS = 8, 300


@dataclass
class ExchangedRack:
    """A physical rack's server port with one of two drives behind it, and a hand that asks nobody's leave."""

    lab: Lab
    held: HeldLease
    bench: Bench
    hand: RackdControl
    exchanges: Exchanges

    def exchange(self, serial: str) -> None:
        """Have this drive behind the port, and its server find it there."""
        port = next(drive.port for drive in self.lab.drives.values() if drive.serial == serial)
        self.hand.request("map", soon(), pairs=[[self.lab.switch_port("srv1", "p0"), port]])
        once_online(self.bench.drive("srv1", "p0"), soon())

    def round(self, number: int, chance: Stream) -> None:
        """A permission, a write under it, and at some moment of that, or never, an exchange."""
        meant, other = chance.sample(sorted(SERIALS), 2)
        moment = chance.choice(MOMENTS)
        one = Round(number, SERIALS[meant], SERIALS[other], moment)
        self.exchange(meant)
        name = next(name for name, drive in self.lab.drives.items() if drive.serial == meant)
        drive, device = self.bench.drive("srv1", "p0"), self.bench.device("srv1", "p0")
        with Guard(self.lab, self.held).writable(name, drive, device, soon()) as permit:
            try:
                if moment == "before it is opened":
                    self.exchange(other)
                with open_blocks(permit, CLOCK) as blocks:
                    if moment == "when it is open":
                        self.exchange(other)
                    blocks.write(one.at, one.stamp)
                    is_done = True
            except RackloopError:
                is_done = False
        self.exchanges.judge(one, is_done=is_done, may_be_done={moment == NEVER})


@pytest.fixture
def rack(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Iterator[ExchangedRack]:
    with ExitStack() as stack:
        found = load_lab(stack.enter_context(discovered_rack(tmp_path_factory, "found")))
        drives = {
            name: drive.model_copy(update={"scratch": drive.serial in SERIALS}) for name, drive in found.drives.items()
        }
        lab = found.model_copy(update={"drives": drives, "controllers": (socket.gethostname(),)})
        store = open_store(tmp_path / "store.sqlite", CLOCK)
        stack.callback(store.close)
        held = stack.enter_context(leased(lab, store, LeaseTerms()))
        bench = stack.enter_context(open_leased(lab, CLOCK, LabState.of(lab.name), held))
        endpoints = LabState.of("mock").endpoints()
        hand = RackdControl(Path(endpoints["control"]), CLOCK)
        stack.callback(hand.close)
        yield ExchangedRack(lab, held, bench, hand, Exchanges(Path(endpoints["nbd"])))


@pytest.mark.parametrize("rounds", [ROUNDS, pytest.param(NIGHTLY_ROUNDS, marks=pytest.mark.nightly)])
def test_no_write_through_a_server_reaches_a_drive_that_was_exchanged_for_the_one_that_was_checked(
    rack: ExchangedRack, rounds: int
) -> None:
    play(rack, rounds)
    assert rack.exchanges.wrong == []
    assert 0 < rack.exchanges.written < rounds
