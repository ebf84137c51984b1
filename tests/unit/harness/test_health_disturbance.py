"""What a test's own acts reach, from the journal that they are written to before they are made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from rackloop.clock import Deadline, VirtualClock
from rackloop.inspection.health import Disturbed, disturbed
from rackloop.lab import Lab, Part, Parts, load_lab
from rackloop.portmap import Full, Open, Partial, PortMap
from rackloop.safety.store import open_store
from rackloop.safety.undo import ActRecorder, Entry, Equipment, Journal, journalled
from tests.parts import parts
from tests.unit.harness.sim_rack import SimOutlet, SimPart, SimSwitch

LAB = """
name: reach
kind: mock
fabric: {driver: flexfabric, ports: 40}
servers:
  srv1: {ports: {p0: 1, p1: 2}, outlet: pdu1/1}
  srv2: {ports: {p0: 5, p1: 6}}
pdus:
  pdu1: {driver: redfish, outlets: 8}
expanders:
  exp1: {port: 30, slots: 8}
drives:
  d01: {profile: sata-ssd, serial: S1, wwn: 5000c500a0000001, size: 8 GiB, port: 21, scratch: true}
  d02: {profile: sata-ssd, serial: S2, wwn: 5000c500a0000002, size: 8 GiB, port: 22, scratch: true}
  d03: {profile: sata-ssd, serial: S3, wwn: 5000c500a0000003, size: 8 GiB, port: 23, scratch: true}
  d06: {profile: sas-hdd, serial: S6, wwn: 5000c500a0000006, size: 8 GiB, expander: exp1, slot: 0, scratch: true}
  d07: {profile: sas-hdd, serial: S7, wwn: 5000c500a0000007, size: 8 GiB, expander: exp1, slot: 1, scratch: true}
baseline: {srv1: {p0: d01, p1: d02}, srv2: {p0: d03, p1: exp1}}
"""
PARTS = {
    "drive:d01": ("media_error", "dead", "hang", "slow", "corrupt", "crash_on_remap"),
    "drive:d06": ("hang",),
    "server:srv1": ("crash", "hang", "md_array"),
    "network:srv1": ("partition",),
    "bmc:srv1": ("unreachable",),
    "control": ("lost",),
    "switch_port:21": ("stuck",),
    "cabling": ("miswire",),
    "slot:srv1/p0": ("removed", "slot_power_off"),
}
D01 = Part.drive("d01")
POWER = ("switch", "server:srv1", "server:srv2", "drive:d01", "outlet:pdu1/1")


@dataclass
class World:
    """A rack in memory, and the entries of the acts that were made on it."""

    lab: Lab
    equipment: Equipment
    deadline: Deadline
    made: list[Entry] = field(default_factory=list)

    @property
    def reached(self) -> Disturbed:
        return disturbed(self.lab, self.made)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    path = tmp_path / "reach.yaml"
    path.write_text(LAB)
    lab, clock = load_lab(path), VirtualClock()
    switch = SimSwitch(clock, lab.baseline_map())
    parts = {name: SimPart(*kinds) for name, kinds in PARTS.items()}
    bare = Equipment(switch, switch, {name: SimOutlet() for name in POWER}, switch_power="switch", breakable=parts)
    journal = Journal(open_store(tmp_path / "store.sqlite", clock))
    made: list[Entry] = []
    recorder = ActRecorder(lab, journal, "run-1", keep=made.append)
    yield World(lab, journalled(bare, recorder), Deadline.after(clock, 10), made)
    journal.close()


def swap(world: World) -> None:
    world.equipment.fabric.apply(Partial(PortMap.of([(1, 22), (2, 21)])), world.deadline)


def drop(world: World, *ports: int) -> None:
    assert world.equipment.phy
    world.equipment.phy.drop(ports, 0.02, world.deadline, request_id=1)


def cut(world: World, name: str) -> None:
    world.equipment.power[name].turn_off(world.deadline)


def emulate(world: World, model: str) -> None:
    """Have d01 be a drive of this model."""
    emulated = world.lab.drives["d01"].model_copy(update={"model": model})
    world.lab = world.lab.model_copy(update={"drives": {**world.lab.drives, "d01": emulated}})


@pytest.mark.parametrize(
    ("model", "said"),
    [("QEMU NVMe Ctrl", "kernel.medium_error"), ("QEMU QEMU HARDDISK", "kernel.target_error")],
)
def test_a_drive_of_qemu_that_loses_its_circuit_says_so_in_its_own_way(world: World, model: str, said: str) -> None:
    swap(world)
    assert world.reached.broken == {}
    emulate(world, model)
    reached = world.reached
    assert reached.broken == dict.fromkeys(reached.linked, frozenset({said}))
    assert Part.port("srv1", "p0") in reached.broken
    assert Part.port("srv2", "p0") not in reached.broken


def test_a_test_that_does_nothing_reaches_nothing(world: World) -> None:
    assert world.reached == Disturbed()


@pytest.mark.parametrize(
    ("act", "ports", "drives"),
    [
        (swap, {("srv1", "p0"), ("srv1", "p1")}, {"d01", "d02"}),
        (lambda world: drop(world, 1), {("srv1", "p0")}, {"d01"}),
        (lambda world: drop(world, 23), {("srv2", "p0")}, {"d03"}),
        (lambda world: drop(world, 6), {("srv2", "p1")}, {"d06", "d07"}),
        (lambda world: drop(world, 9), set(), set()),
    ],
    ids=["swap", "server port", "drive port", "expander", "nothing there"],
)
def test_links_are_reached_at_both_ends(
    world: World, act: Callable[[World], None], ports: set[tuple[str, str]], drives: set[str]
) -> None:
    act(world)
    assert world.reached == Disturbed(parts(server_ports=ports, drives=drives))


def test_a_dropped_phy_reaches_what_the_test_joined_it_to(world: World) -> None:
    swap(world)
    world.made.clear()
    world.equipment.fabric.apply(Open(frozenset({5})), world.deadline)
    world.equipment.fabric.apply(Partial(PortMap.of([(5, 22)])), world.deadline)
    drop(world, 5)
    assert {"d02", "d03"} <= world.reached.linked.drives
    assert "d06" not in world.reached.linked.drives


def test_of_a_whole_map_only_what_differs_is_reached(world: World) -> None:
    whole = PortMap.of([(1, 21), (2, 22), (5, 23)])
    world.equipment.fabric.apply(Full(whole), world.deadline)
    assert world.reached == Disturbed(parts(server_ports={("srv2", "p1")}, drives={"d06", "d07"}))


def test_keeping_a_map_for_the_next_power_on_reaches_nothing(world: World) -> None:
    world.equipment.fabric.save_boot_map(world.deadline)
    assert world.reached == Disturbed()


@pytest.mark.parametrize("name", ["server:srv1", "outlet:pdu1/1"])
def test_the_power_of_a_server_reaches_its_links_but_no_drives_power(world: World, name: str) -> None:
    cut(world, name)
    ports = {("srv1", "p0"), ("srv1", "p1")}
    assert world.reached == Disturbed(parts(server_ports=ports, drives={"d01", "d02"}), parts(servers={"srv1"}))


def test_the_power_of_a_drive_reaches_its_link_too(world: World) -> None:
    cut(world, "drive:d01")
    assert world.reached == Disturbed(parts(server_ports={("srv1", "p0")}, drives={"d01"}), parts(drives={"d01"}))


@pytest.mark.parametrize("kind", ["dead", "hang", "media_error"])
def test_an_nvme_drive_of_qemu_calls_what_a_fault_fails_an_unreadable_sector(world: World, kind: str) -> None:
    emulate(world, "QEMU NVMe Ctrl")
    break_as(world, "drive:d01", kind)
    assert "kernel.medium_error" in world.reached.broken[D01]


def test_an_array_that_a_server_makes_takes_no_link(world: World) -> None:
    break_as(world, "server:srv1", "md_array")
    assert world.reached == Disturbed()


def test_the_power_of_the_switch_reaches_every_link(world: World) -> None:
    cut(world, "switch")
    assert world.reached.linked.drives == set(world.lab.drives)
    assert not world.reached.powered.drives


def test_power_that_is_as_it_was_reaches_nothing(world: World) -> None:
    world.equipment.power["server:srv1"].turn_on(world.deadline)
    assert world.reached == Disturbed()


def break_as(world: World, part: str, kind: str, **details: object) -> None:
    world.equipment.breakable[part].break_as("k", {"kind": kind, **details}, world.deadline)


def test_a_broken_drive_explains_what_its_fault_breaks_there_and_where_it_is_reached(world: World) -> None:
    break_as(world, "drive:d01", "media_error")
    reached = world.reached
    assert Parts(reached.broken) == parts(drives={"d01"}, server_ports={("srv1", "p0")})
    assert {"uncorrectable_errors", "kernel.medium_error"} <= reached.broken[D01]
    assert "kernel.command_timeout" not in reached.broken[D01]
    assert reached == replace(Disturbed(), broken=reached.broken)


@pytest.mark.parametrize("kind", ["hang", "slow", "crash_on_remap"])
def test_a_drive_that_is_silent_has_its_commands_aborted(world: World, kind: str) -> None:
    break_as(world, "drive:d01", kind)
    assert {"kernel.command_timeout", "kernel.target_error"} <= world.reached.broken[D01]


def test_a_sas_drive_of_qemu_aborts_what_a_bad_sector_fails_and_no_other_drive_may(world: World) -> None:
    break_as(world, "drive:d01", "media_error")
    assert "kernel.target_error" not in world.reached.broken[D01]
    emulate(world, "QEMU QEMU HARDDISK")
    assert "kernel.target_error" in world.reached.broken[D01]
    assert "kernel.target_error" in world.reached.broken[Part.port("srv1", "p0")]


def test_a_broken_drive_that_was_moved_explains_the_port_it_was_moved_to(world: World) -> None:
    break_as(world, "drive:d01", "hang")
    swap(world)
    assert Parts(world.reached.broken).server_ports == {("srv1", "p0"), ("srv1", "p1")}


def test_a_broken_drive_in_an_expander_explains_its_port_and_none_of_its_siblings(world: World) -> None:
    break_as(world, "drive:d06", "hang")
    assert Parts(world.reached.broken) == parts(drives={"d06"}, server_ports={("srv2", "p1")})


def test_several_faults_of_a_drive_explain_together(world: World) -> None:
    break_as(world, "drive:d01", "media_error")
    break_as(world, "drive:d01", "hang")
    assert {"uncorrectable_errors", "kernel.command_timeout"} <= world.reached.broken[D01]


def test_silent_corruption_explains_nothing(world: World) -> None:
    break_as(world, "drive:d01", "corrupt")
    assert set(world.reached.broken.values()) == {frozenset()}


def test_a_server_that_crashes_is_one_whose_power_was_cut(world: World) -> None:
    break_as(world, "server:srv1", "crash")
    reached = world.reached
    assert reached.powered.servers == {"srv1"}
    assert reached.linked.server_ports == {("srv1", "p0"), ("srv1", "p1")}
    assert reached.powered.drives == frozenset()
    assert reached.broken == {Part.server("srv1"): {"kernel.panic", "kernel.oops"}}


def test_a_server_that_hangs_explains_its_ports_alone(world: World) -> None:
    break_as(world, "server:srv1", "hang")
    assert world.reached == Disturbed(parts(server_ports={("srv1", "p0"), ("srv1", "p1")}))


@pytest.mark.parametrize(
    ("part", "kind"), [("network:srv1", "partition"), ("bmc:srv1", "unreachable"), ("control", "lost")]
)
def test_a_way_in_that_is_broken_explains_nothing(world: World, part: str, kind: str) -> None:
    break_as(world, part, kind)
    assert world.reached == Disturbed()


def test_a_stuck_port_explains_the_links_of_its_circuit(world: World) -> None:
    break_as(world, "switch_port:21", "stuck")
    assert world.reached == Disturbed(parts(server_ports={("srv1", "p0")}, drives={"d01"}))


def test_swapped_cables_explain_the_links_of_both_circuits(world: World) -> None:
    break_as(world, "cabling", "miswire", ports=[1, 23])
    assert world.reached == Disturbed(parts(server_ports={("srv1", "p0"), ("srv2", "p0")}, drives={"d01", "d03"}))


def test_a_drive_taken_out_of_its_slot_explains_its_link_and_with_the_slots_power_its_power(world: World) -> None:
    break_as(world, "slot:srv1/p0", "removed")
    assert world.reached == Disturbed(parts(server_ports={("srv1", "p0")}, drives={"d01"}))
    break_as(world, "slot:srv1/p0", "slot_power_off")
    assert world.reached.powered.drives == {"d01"}
