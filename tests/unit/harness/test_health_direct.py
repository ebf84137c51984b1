"""What a test's own acts reach in a rack without a switch, where ports have no numbers of their own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rackloop.abilities import LinkReset
from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import NotSupported
from rackloop.inspection.health import Disturbed, disturbed
from rackloop.lab import Lab, load_lab
from rackloop.portmap import PortMap
from rackloop.record.acts import ResetLink, SettleSignal
from rackloop.safety.store import open_store
from rackloop.safety.undo import ActRecorder, Entry, Equipment, Journal, journalled
from tests.parts import parts
from tests.unit.harness.sim_rack import SimPart, SimSwitch

LAB = """
name: direct
kind: mock
fabric: {driver: static}
servers:
  node1: {ports: {p0, p1}}
  node2: {ports: {p0}}
expanders:
  shelf1: {attached: node2/p0, slots: 4}
drives:
  d01: {profile: sata-ssd, serial: S1, wwn: 5000c500a0000001, size: 8 GiB, attached: node1/p0, scratch: true}
  d02: {profile: nvme-ssd, serial: S2, eui64: 0025385b71c00002, size: 8 GiB, attached: node1/p1, scratch: true}
  d03: {profile: sas-hdd, serial: S3, wwn: 5000c500a0000003, size: 8 GiB, expander: shelf1, slot: 0, scratch: true}
  d04: {profile: sas-hdd, serial: S4, wwn: 5000c500a0000004, size: 8 GiB, expander: shelf1, slot: 1, scratch: true}
"""
CABLES = PortMap.of([(1, 4), (2, 5), (3, 6)])
KINDS = ("device_off", "disabled", "removed", "slot_power_off")
PARTS = ("slot:node1/p1", "slot:node2/p0/1", "phy:node2/p0")


class SimPhys(SimSwitch):
    """PHYs whose links can be reset."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock, CABLES)
        self.resets: list[tuple[tuple[int, ...], bool]] = []

    def reset_link(self, ports: Collection[int], deadline: Deadline, *, is_hard: bool = False) -> None:
        self.before()
        self.resets.append((tuple(ports), is_hard))


@dataclass
class World:
    lab: Lab
    phys: SimPhys
    equipment: Equipment
    journal: Journal
    deadline: Deadline
    made: list[Entry] = field(default_factory=list)

    @property
    def links(self) -> LinkReset:
        assert isinstance(self.equipment.phy, LinkReset)
        return self.equipment.phy


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    path = tmp_path / "direct.yaml"
    path.write_text(LAB)
    lab, clock = load_lab(path), VirtualClock()
    phys = SimPhys(clock)
    bare = Equipment(phys, phys, breakable={name: SimPart(*KINDS) for name in PARTS})
    journal = Journal(open_store(tmp_path / "store.sqlite", clock))
    made: list[Entry] = []
    recorder = ActRecorder(lab, journal, "run-1", keep=made.append)
    yield World(lab, phys, journalled(bare, recorder), journal, Deadline.after(clock, 10), made)
    journal.close()


def drop(world: World, port: int) -> None:
    assert world.equipment.phy
    world.equipment.phy.drop([port], 0.02, world.deadline, request_id=1)


def broken(part: str, kind: str) -> Callable[[World], None]:
    return lambda world: world.equipment.breakable[part].break_as("run-1/1", {"kind": kind}, world.deadline)


@pytest.mark.parametrize(
    ("act", "reached"),
    [
        (
            lambda world: drop(world, 1),
            Disturbed(linked=parts(server_ports={("node1", "p0")}, drives={"d01"})),
        ),
        (
            lambda world: drop(world, 3),
            Disturbed(linked=parts(server_ports={("node2", "p0")}, drives={"d03", "d04"})),
        ),
        (
            lambda world: world.links.reset_link([2], world.deadline),
            Disturbed(linked=parts(server_ports={("node1", "p1")}, drives={"d02"})),
        ),
        (
            broken("slot:node2/p0/1", "removed"),
            Disturbed(linked=parts(server_ports={("node2", "p0")}, drives={"d04"})),
        ),
        (
            broken("slot:node2/p0/1", "device_off"),
            Disturbed(linked=parts(server_ports={("node2", "p0")}, drives={"d04"}), powered=parts(drives={"d04"})),
        ),
        (
            broken("slot:node1/p1", "slot_power_off"),
            Disturbed(linked=parts(server_ports={("node1", "p1")}, drives={"d02"}), powered=parts(drives={"d02"})),
        ),
        (
            broken("phy:node2/p0", "disabled"),
            Disturbed(linked=parts(server_ports={("node2", "p0")}, drives={"d03", "d04"})),
        ),
    ],
)
def test_an_act_reaches_what_is_at_its_end_of_the_cable(
    world: World, act: Callable[[World], None], reached: Disturbed
) -> None:
    act(world)
    assert disturbed(world.lab, world.made) == reached


def test_a_reset_is_in_the_journal_before_it_is_made(world: World) -> None:
    def look() -> None:
        (entry,) = world.journal.standing("direct")
        assert entry.what == ResetLink(frozenset({2}), is_hard=True)
        assert entry.inverse == (SettleSignal(frozenset({2}), 0.0),)

    world.phys.before = look
    world.links.reset_link([2], world.deadline, is_hard=True)
    assert world.phys.resets == [((2,), True)]


def test_what_cannot_reset_says_so(world: World) -> None:
    switch = SimSwitch(VirtualClock(), CABLES)
    acting = journalled(Equipment(switch, switch), ActRecorder(world.lab, world.journal, "run-2"))
    assert isinstance(acting.phy, LinkReset)
    with pytest.raises(NotSupported, match="nothing in this rack resets links"):
        acting.phy.reset_link([1], world.deadline)
    assert world.journal.standing("direct") == []
