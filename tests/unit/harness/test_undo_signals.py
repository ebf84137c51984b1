"""Signals that several servers give back: what one does not do is left of its own entries alone."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pytest

from rackloop.abilities import PortState
from rackloop.clock import Deadline
from rackloop.errors import DeadlineExceeded, LabError
from rackloop.safety.undo import Outcome, journalled, undo
from tests.deadlines import soon
from tests.unit.harness.journalled_bench import Bench
from tests.unit.harness.sim_rack import RestoringPhy, SimSwitch


class Phys(RestoringPhy):
    """PHYs by their servers: a question about the ports ``silent`` takes all the time that it is given."""

    def __init__(self, switch: SimSwitch) -> None:
        super().__init__(switch)
        self.switch = switch
        self.silent: set[int] = set()
        self.gone: set[int] = set()

    def require(self, ports: Collection[int], deadline: Deadline) -> None:
        if self.silent.intersection(ports):
            deadline.clock.sleep_until_ns(deadline.at_ns)
        if deadline.is_over():
            raise DeadlineExceeded("srv1: nothing answered in time")

    def restore(self, ports: Collection[int], deadline: Deadline) -> None:
        self.require(ports, deadline)
        if self.gone.intersection(ports):
            raise LabError("no PHY leads there now")
        self.restored.append(tuple(sorted(ports)))
        self.switch.drops = [drop for drop in self.switch.drops if not set(drop[0]) & set(ports)]


class Rack(SimSwitch):
    """A map whose ports' states the PHYs tell."""

    phys: Phys

    def port_states(self, ports: Collection[int], deadline: Deadline) -> dict[int, PortState]:
        self.phys.require(ports, deadline)
        return super().port_states(ports, deadline)


@pytest.fixture
def rack(bench: Bench) -> Rack:
    rack = Rack(bench.clock, bench.switch.live)
    rack.phys = Phys(rack)
    bench.rack.equipment = replace(bench.rack.equipment, fabric=rack, phy=rack.phys)
    return rack


def drop(bench: Bench, *ports: int, down_s: float = 3600.0) -> None:
    """Drop each of the ports by itself."""
    phy = journalled(bench.rack.equipment, bench.recorder).phy
    assert phy
    for port in ports:
        phy.drop([port], down_s, bench.deadline, request_id=port)


def undone(bench: Bench) -> Outcome:
    return undo(bench.journal.standing("bench"), bench.rack.equipment, bench.journal, soon(60, bench.clock))


def dropped(bench: Bench) -> set[int]:
    return {port for entry in bench.journal.standing("bench") for port in entry.ports}


def test_a_server_that_is_silent_keeps_the_ports_of_no_other_dark(bench: Bench, rack: Rack) -> None:
    drop(bench, 5, 2, 1)
    rack.phys.silent = {1, 2}
    assert undone(bench).problems == (
        "signal of ports 1: srv1: nothing answered in time",
        "signal of ports 2: srv1: nothing answered in time",
    )
    assert rack.phys.restored == [(5,)]
    assert dropped(bench) == {1, 2}


def test_a_signal_that_cannot_be_asked_for_is_named_and_the_others_are_seen(bench: Bench, rack: Rack) -> None:
    """Of drops that are over."""
    drop(bench, 6, 5, 1, down_s=1.0)
    bench.clock.advance(2)
    rack.dark = {6}
    rack.phys.silent = {1}
    assert undone(bench).problems == (
        "ports 1 may have no signal: srv1: nothing answered in time",
        "ports 6 have no signal; look at the cables and at what they lead to",
    )
    assert dropped(bench) == {1, 6}


def test_a_drop_that_its_server_did_not_end_is_ended(bench: Bench, rack: Rack) -> None:
    """What was to give the signal back was killed; nothing is told to ports that have theirs."""
    drop(bench, 5, 1, down_s=1.0)
    bench.clock.advance(2)
    rack.drops = [((1,), bench.clock.now_ns() + 3_600_000_000_000)]
    assert undone(bench).problems == ()
    assert rack.phys.restored == [(1,)]
    assert dropped(bench) == set()


def test_a_port_that_stays_dark_is_told_once(bench: Bench, rack: Rack) -> None:
    drop(bench, 1, down_s=1.0)
    bench.clock.advance(2)
    rack.dark = {1}
    (problem,) = undone(bench).problems
    assert problem == "ports 1 have no signal; look at the cables and at what they lead to"
    assert rack.phys.restored == [(1,)]
    assert bench.clock.now_ns() < 13_000_000_000


def test_a_port_that_is_not_found_keeps_no_other_of_its_drop_dark(bench: Bench, rack: Rack) -> None:
    phy = journalled(bench.rack.equipment, bench.recorder).phy
    assert phy
    phy.drop([1, 2], 3600.0, bench.deadline, request_id=1)
    rack.phys.gone = {2}
    assert undone(bench).problems == ("signal of ports 1, 2: no PHY leads there now",)
    assert rack.phys.restored == [(1,)]
    assert dropped(bench) == {1, 2}
