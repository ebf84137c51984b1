"""What servers can break of themselves keeps the contract: on mock servers, and on those of a lab that nobody uses."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from rackloop.abilities import Host
from rackloop.contracts import breakable
from rackloop.errors import GuardRefused, LabError, NotSupported, ToolError
from rackloop.lab import LabState, load_lab
from rackloop_drivers.host_tools import HostFaults
from rackloop_drivers.slot import HostSlot
from rackloop_labs import Bench, open_lab
from rackloop_labs.mock import MockBench
from tests.deadlines import CLOCK, soon
from tests.mock_rack import running_mock_bench

REAL = "RACKLOOP_REAL_DIRECT_LAB"


@dataclass(frozen=True)
class Arm:
    """A part of a lab, its server, and the drive that goes when it is broken."""

    part: str
    server: str
    drive: str

    def is_seen(self, bench: Bench) -> bool:
        """Whether lsblk on the server lists the drive."""
        seen = bench.host(self.server).run(["lsblk", "-dno", "SERIAL"], soon())
        return bench.lab.drives[self.drive].serial in seen.stdout.split()


MOCK = {
    "slot:node1/p0": Arm("slot:node1/p0", "node1", "ssd1"),
    "slot:node1/p1": Arm("slot:node1/p1", "node1", "fast1"),
    "slot:node1/p2": Arm("slot:node1/p2", "node1", "sas1"),
    "slot:node2/p0/1": Arm("slot:node2/p0/1", "node2", "shelf1-1"),
    "phy:node1/p0": Arm("phy:node1/p0", "node1", "ssd1"),
    "phy:node2/p0": Arm("phy:node2/p0", "node2", "shelf1-0"),
}
# Each is another way into the server; what ways have in common is tried on one of them.
WHOLE = [("slot:node1/p0", "removed"), ("slot:node1/p1", "slot_power_off"), ("phy:node1/p0", "disabled")]
IN_SHORT = [
    ("slot:node1/p1", "removed"),
    ("slot:node1/p1", "link_disabled"),
    ("slot:node1/p2", "removed"),
    ("slot:node2/p0/1", "removed"),
    ("slot:node2/p0/1", "device_off"),
    ("phy:node2/p0", "disabled"),
]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MockBench]:
    with running_mock_bench(tmp_path_factory.mktemp("rack"), "mock-direct") as bench:
        yield bench


def arm_of(bench: Bench, arm: Arm, kind: str) -> breakable.BreakableArm:
    part = bench.equipment.breakable[arm.part]
    assert isinstance(part, HostFaults)
    return breakable.BreakableArm(lambda: part, {"kind": kind}, lambda: not arm.is_seen(bench))


@pytest.mark.parametrize("way", WHOLE, ids="-".join)
@pytest.mark.parametrize("clause", breakable.CONTRACT, ids=lambda clause: clause.__name__)
def test_a_mock_server(
    clause: Callable[[breakable.BreakableArm], None], way: tuple[str, str], bench: MockBench
) -> None:
    part, kind = way
    clause(arm_of(bench, MOCK[part], kind))


@pytest.mark.parametrize("way", IN_SHORT, ids="-".join)
def test_a_mock_server_in_short(way: tuple[str, str], bench: MockBench) -> None:
    part, kind = way
    breakable.is_broken_and_mended(arm_of(bench, MOCK[part], kind))


@pytest.mark.parametrize("clause", breakable.CONTRACT, ids=lambda clause: clause.__name__)
def test_a_real_server(clause: Callable[[breakable.BreakableArm], None], tmp_path: Path) -> None:
    if (name := os.environ.get(REAL)) is None:
        pytest.skip(f"no servers to try: set {REAL} to the description of a lab without a switch that nobody uses")
    lab = load_lab(name)
    with open_lab(lab, CLOCK, LabState.of(lab.name, root=tmp_path), None) as bench:
        for server in lab.servers:
            for port, drive in lab.joined(server).items():
                part = bench.equipment.breakable.get(f"slot:{server}/{port}")
                for kind in part.kinds if part is not None else ():
                    clause(arm_of(bench, Arm(f"slot:{server}/{port}", server, drive), kind))


@pytest.mark.parametrize(("part", "kind"), [("slot:node1/p1", "slot_power_off"), ("slot:node2/p0/1", "device_off")])
def test_a_drive_that_is_switched_off_has_no_power(bench: MockBench, part: str, kind: str) -> None:
    drive = f"drive:{MOCK[part].drive}"
    slot = bench.equipment.breakable[part]
    slot.break_as("test/1", {"kind": kind}, soon())
    assert bench.rackd.request("power", soon(), target=drive)["on"] is False
    slot.mend("test/1", soon())
    assert bench.rackd.request("power", soon(), target=drive)["on"] is True


def test_what_stands_twice_is_mended_when_neither_key_stands(bench: MockBench) -> None:
    arm = MOCK["slot:node1/p0"]
    slot = bench.equipment.breakable[arm.part]
    for key in ("one", "two"):
        slot.break_as(key, {"kind": "removed"}, soon())
    slot.mend("one", soon())
    assert (list(slot.standing(soon())), arm.is_seen(bench)) == (["two"], False)
    slot.mend("two", soon())
    assert (slot.standing(soon()), arm.is_seen(bench)) == ({}, True)


def test_a_fault_that_a_reboot_ended_does_not_stand(bench: MockBench) -> None:
    """The kernel that forgot the drive is gone; the note of it stays until it is mended."""
    arm = MOCK["slot:node1/p0"]
    slot = bench.equipment.breakable[arm.part]
    slot.break_as("test/2", {"kind": "removed"}, soon())
    bench.power.ports["server:node1"].turn_off(soon())
    bench.power.ports["server:node1"].turn_on(soon())
    bench.host("node1").reconnect(soon())
    deadline = soon()
    while slot.standing(deadline):
        assert not deadline.is_over()
    slot.mend("test/2", soon())
    assert arm.is_seen(bench)


def test_another_drive_than_the_one_described_stays(bench: MockBench) -> None:
    slot = HostSlot(bench.host("node1"), "pci-0000:10:00.0", drive_id="ssd1", serial="RL999999")
    part = HostFaults(bench.host("node1"), "slot:node1/p0", slot)
    with pytest.raises(GuardRefused, match="the serial is described as RL999999"):
        part.break_as("test/3", {"kind": "removed"}, soon())
    assert MOCK["slot:node1/p0"].is_seen(bench)
    assert part.standing(soon()) == {}


def test_a_note_that_cannot_be_read_is_named_and_keeps_nobody_from_the_others(bench: MockBench) -> None:
    """What it was about may stand: somebody has to look."""
    host, slot = bench.host("node1"), bench.equipment.breakable["slot:node1/p0"]
    note = "/var/lib/rackloop/faults/slot%3Anode1%2Fp0/half.json"
    host.run(["mkdir", "-p", note.rpartition("/")[0]], soon())
    host.write_file(note, b'{"key": "run/1", "fa', soon())
    assert [(fault["kind"], fault["note"]) for fault in slot.standing(soon()).values()] == [("unreadable", note)]
    said = f'node1: the note {note} cannot be read: .{{"key": "run/1"'
    with pytest.raises(LabError, match=said):
        slot.break_as("half", {"kind": "removed"}, soon())
    with pytest.raises(LabError, match=said):
        slot.mend("half", soon())
    slot.break_as("whole", {"kind": "removed"}, soon())
    assert set(slot.standing(soon())) == {"half", "whole"}
    slot.mend("whole", soon())
    assert set(slot.standing(soon())) == {"half"}
    assert MOCK["slot:node1/p0"].is_seen(bench)
    host.run(["rm", note], soon())
    assert slot.standing(soon()) == {}


class Toolless:
    """A server that has no tools of storage."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def find(self, program: str) -> str | None:
        return None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._host, name)


@pytest.mark.parametrize(
    ("server", "device", "drive", "kind", "package"),
    [
        ("node2", "/dev/disk/by-id/wwn-0x5000c500b0000006", "shelf1-1", "device_off", "sg_ses .* sg3-utils"),
        ("node1", "pci-0000:11:00.0", "fast1", "link_disabled", "setpci .* pciutils"),
    ],
)
def test_a_missing_tool_is_named_with_its_package(
    bench: MockBench, server: str, device: str, drive: str, kind: str, package: str
) -> None:
    host = cast("Host", Toolless(bench.host(server)))
    part = HostFaults(host, "slot:test", HostSlot(host, device, drive_id=drive, serial=bench.lab.drives[drive].serial))
    with pytest.raises(ToolError, match=package):
        part.break_as("test/4", {"kind": kind}, soon())
    assert part.standing(soon()) == {}


def test_a_place_that_cannot_do_it_says_why(bench: MockBench) -> None:
    host = bench.host("node1")
    part = HostFaults(host, "slot:test", HostSlot(host, "pci-0000:12:00.0", drive_id="sas1", serial="RL100003"))
    for kind, reason in (
        ("device_off", "is in no enclosure"),
        ("slot_power_off", "which is no PCIe drive"),
        ("link_disabled", "which is no PCIe drive"),
    ):
        with pytest.raises(NotSupported, match=f"node1:pci-0000:12:00.0 .*{reason}"):
            part.break_as("test/5", {"kind": kind}, soon())
    assert part.standing(soon()) == {}
