"""The drives of virtual racks without their guests: what QEMU is asked for which drive, and what it cannot be."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from rackloop.errors import LabError
from rackloop.lab import Lab, load_lab
from rackloop_labs.virtual_rack.described_rack import not_virtual
from rackloop_labs.virtual_rack.guest_drives import PluggedDrive, not_emulated
from rackloop_labs.virtual_rack.machine import Machine, MachineFiles, machine_arguments
from rackloop_labs.virtual_rack.plugs import Plugs, Socket
from rackloop_labs.virtual_rack.port_places import places_of, sata_arguments
from rackloop_labs.virtual_rack.recipe import GuestRecipe

NVME = PluggedDrive("d1", "S1", 1 << 30, 512)
SAS = PluggedDrive("s1", "S2", 1 << 30, 4096, "sas", "5000c500c0000007", is_rotational=True)


@dataclass
class RecordedMachine:
    """A QEMU that writes down what it is asked, and knows which devices it has; it refuses drivers that are named.

    To what ``late`` names it gives no answer in time, once, and does it all the same.
    """

    devices: set[str] = field(default_factory=set)
    nodes: set[str] = field(default_factory=set)
    added: list[dict[str, Any]] = field(default_factory=list)
    refused: frozenset[str] = frozenset()
    late: set[str] = field(default_factory=set)
    name: str = "srv"

    async def ask(self, command: str, arguments: dict[str, Any]) -> Any:
        said = await self._do(command, arguments)
        if command in self.late:
            self.late.remove(command)
            raise LabError(f"QEMU of srv did not {command} within 20 s")
        return said

    async def _do(self, command: str, arguments: dict[str, Any]) -> Any:
        node = arguments.get("node-name", "")
        match command:
            case "qom-list":
                return [{"name": name} for name in ("type", *sorted(self.devices))]
            case "device_add" if arguments["driver"] in self.refused:
                raise LabError("QEMU does not device_add")
            case "device_add":
                self.devices.add(arguments["id"])
                self.added.append(arguments)
            case "blockdev-add" if node in self.nodes:
                raise LabError(f"QEMU does not blockdev-add: duplicate nodes with node-name='{node}'")
            case "blockdev-add":
                self.nodes.add(node)
            case "blockdev-del" if node not in self.nodes:
                raise LabError(f"QEMU does not blockdev-del: Failed to find node with node-name='{node}'")
            case "blockdev-del" if self.devices & {node.replace("disk", "drive")}:
                raise LabError(f"QEMU does not blockdev-del: Node {node} is in use")
            case "blockdev-del":
                self.nodes.remove(node)
        return None

    async def unplug(self, device: str, _within_s: float) -> None:
        self.devices.discard(device)


class EjectingMachine(RecordedMachine):
    """A guest as Linux with ACPI is: told of another slot before it has let go of one, it ejects that one twice."""

    def __init__(self) -> None:
        super().__init__()
        self.in_slots: set[str] = set()
        self.letting_go: set[str] = set()
        self.twice: set[str] = set()

    async def _do(self, command: str, arguments: dict[str, Any]) -> Any:
        said = await super()._do(command, arguments)
        if command == "device_add" and str(arguments["bus"]).startswith("slot"):
            self.in_slots.add(arguments["id"])
            self._tell(arguments["id"])
            self.devices -= {arguments["id"]} & self.twice
        return said

    def _tell(self, device: str) -> None:
        self.twice |= self.letting_go - {device}

    async def unplug(self, device: str, _within_s: float) -> None:
        if device not in self.in_slots:
            self.devices.remove(device)
            return
        self._tell(device)
        self.letting_go.add(device)
        for _ in range(5):
            await asyncio.sleep(0)
        self.letting_go.remove(device)
        self.in_slots.remove(device)
        self.devices.remove(device)


def socket_of(machine: RecordedMachine, slot: int = 3) -> Socket:
    return Socket(cast(Machine, machine), slot, f"srv.p{slot}")


def acts(machine: RecordedMachine, *drives: PluggedDrive) -> None:
    """Plug each drive in and pull it, but for the last, which stays."""

    async def run() -> None:
        plugs, socket = Plugs(Path("nbd.sock")), socket_of(machine)
        for drive in drives[:-1]:
            await plugs.plug(socket, drive)
            await plugs.pull(socket)
        await plugs.plug(socket, drives[-1])

    asyncio.run(run())


def test_a_sas_drive_brings_an_adapter_that_stays() -> None:
    machine = RecordedMachine()
    acts(machine, SAS, SAS)
    assert [each["driver"] for each in machine.added] == ["virtio-scsi-pci", "scsi-hd", "scsi-hd"]
    assert machine.added[0]["bus"] == "slot3"
    drive = machine.added[-1]
    assert (drive["bus"], drive["serial"], drive["wwn"]) == ("sas3.0", "S2", 0x5000C500C0000007)
    assert (drive["logical_block_size"], drive["rotation_rate"]) == (4096, 7200)
    assert machine.nodes == {"disk3"}


def test_a_slot_takes_either_kind_of_drive() -> None:
    machine = RecordedMachine()
    acts(machine, SAS, NVME)
    assert machine.devices == {"drive3"}
    assert machine.added[-1] == {
        "driver": "nvme",
        "serial": "S1",
        "logical_block_size": 512,
        "id": "drive3",
        "bus": "slot3",
        "drive": "disk3",
    }
    acts(machine := RecordedMachine(), NVME, SAS)
    assert machine.devices == {"sas3", "drive3"}


@pytest.mark.parametrize("drive", [NVME, SAS])
def test_a_guest_is_told_of_one_slot_at_a_time(drive: PluggedDrive) -> None:
    machine = EjectingMachine()

    async def run() -> None:
        plugs, sockets = Plugs(Path("nbd.sock")), [socket_of(machine, slot) for slot in (1, 2, 3)]

        async def move(socket: Socket) -> None:
            await plugs.plug(socket, NVME)
            for comes in (drive, NVME):
                await plugs.pull(socket)
                await plugs.plug(socket, comes)

        await asyncio.gather(*(move(socket) for socket in sockets))
        assert [await plugs.holds(socket) for socket in sockets] == [True] * 3

    asyncio.run(run())
    assert machine.twice == set()


def test_a_drive_that_its_guest_ejected_is_not_held() -> None:
    machine = RecordedMachine()

    async def run() -> None:
        plugs, socket = Plugs(Path("nbd.sock")), socket_of(machine)
        await plugs.plug(socket, NVME)
        machine.devices.clear()
        assert not await plugs.holds(socket)
        await plugs.pull(socket)
        await plugs.plug(socket, NVME)

    asyncio.run(run())
    assert machine.nodes == {"disk3"}


def test_of_a_drive_that_qemu_refuses_nothing_is_left() -> None:
    machine = RecordedMachine(refused=frozenset({"scsi-hd"}))
    with pytest.raises(LabError):
        acts(machine, SAS)
    assert machine.nodes == set()


@pytest.mark.parametrize("command", ["blockdev-add", "device_add"])
def test_what_qemu_did_too_late_is_pulled_before_the_next_drive(command: str) -> None:
    machine = RecordedMachine(late={command})

    async def run() -> None:
        plugs, socket = Plugs(Path("nbd.sock")), socket_of(machine)
        with pytest.raises(LabError):
            await plugs.plug(socket, NVME)
        await plugs.plug(socket, SAS)

    asyncio.run(run())
    assert machine.added[-1]["serial"] == "S2"
    assert (machine.devices, machine.nodes) == ({"sas3", "drive3"}, {"disk3"})


def test_a_drive_that_was_pulled_too_late_is_out() -> None:
    machine = RecordedMachine()

    async def run() -> None:
        plugs, socket = Plugs(Path("nbd.sock")), socket_of(machine)
        await plugs.plug(socket, NVME)
        machine.late = {"blockdev-del"}
        with pytest.raises(LabError):
            await plugs.pull(socket)
        await plugs.pull(socket)
        await plugs.plug(socket, NVME)

    asyncio.run(run())
    assert (machine.devices, machine.nodes) == ({"drive3"}, {"disk3"})


def direct() -> Lab:
    """The virtual lab without a switch: an NVMe and a SAS drive at the first two ports, SATA drives at the others."""
    return load_lab("virtual-direct")


def test_a_port_with_a_sata_drive_is_one_of_the_machines_controller() -> None:
    places = places_of(direct(), "node1")
    assert {port: place.path((1, 2, 3, 4)) for port, place in places.items()} == {
        "p0": "pci-0000:01:00.0",
        "p1": "pci-0000:02:00.0",
        "p2": "pci-0000:00:1f.2-ata-1",
        "p3": "pci-0000:00:1f.2-ata-2",
    }


def test_sata_drives_are_there_when_the_machine_starts(tmp_path: Path) -> None:
    drives = sata_arguments(direct(), "node1", Path("nbd.sock"))
    assert drives[::2] == ["-blockdev", "-device"] * 2
    blocks, devices = ([json.loads(text) for text in drives[first::4]] for first in (1, 3))
    assert [each["file"]["export"] for each in blocks] == ["node1.p2.by-id.RLV10003", "node1.p3.by-id.RLV10004"]
    assert [each["size"] for each in blocks] == [2 << 30, 1536 << 20]
    assert [(each["driver"], each["bus"], each["drive"]) for each in devices] == [
        ("ide-hd", "ide.0", "sata0"),
        ("ide-hd", "ide.1", "sata1"),
    ]
    files = MachineFiles(tmp_path, tmp_path / "console")
    assert machine_arguments(GuestRecipe(), files, is_resumed=True, drives=drives)[-8:] == drives
    assert sata_arguments(load_lab("virtual"), "srv1", Path("nbd.sock")) == []


def test_a_guest_takes_as_many_sata_drives_as_its_controller_has_ports() -> None:
    lab = direct()
    ports = {f"p{number}": None for number in range(7)}
    drives = {
        f"h{number}": lab.drives["hdd1"].model_copy(update={"attached": ("node1", f"p{number}")}) for number in range(7)
    }
    server = lab.servers["node1"].model_copy(update={"ports": ports})
    full = lab.model_copy(update={"servers": {"node1": server}, "drives": drives})
    assert list(not_virtual(full)) == [
        (("servers", "node1", "ports"), "have 7 SATA drives: a guest takes 6; attach fewer")
    ]


def of_drives(**update: Any) -> Lab:
    """The virtual lab, its first SAS drive changed."""
    lab = load_lab("virtual")
    return lab.model_copy(update={"drives": {**lab.drives, "s01": lab.drives["s01"].model_copy(update=update)}})


@pytest.mark.parametrize(
    ("update", "place", "message"),
    [
        ({"profile": "sas-hdd", "model": "RL SAS HDD"}, "model", "QEMU's drives report QEMU QEMU HARDDISK; write"),
        (
            {"profile": "qemu-sata", "model": "QEMU HARDDISK"},
            "profile",
            "is sata, which QEMU cannot move while guests run: take",
        ),
        ({"serial": "S" * 37}, "serial", "is longer than the 36 characters that QEMU's sas drives take"),
        ({"wwn": "6" * 32}, "wwn", "has 32 digits: QEMU's drives take 16"),
        ({"nguid": "6" * 32}, "nguid", "QEMU's sas drives report none; delete the key"),
    ],
)
def test_what_qemu_cannot_be_is_named_with_its_place(update: dict[str, Any], place: str, message: str) -> None:
    found = list(not_emulated(of_drives(**update)))
    assert [path for path, _ in found] == [("drives", "s01", place)]
    assert message in found[0][1]


def test_a_drive_is_plugged_as_it_is_described() -> None:
    drive = PluggedDrive.of("s01", load_lab("virtual").drives["s01"])
    assert (drive.protocol, drive.serial, drive.wwn) == ("sas", "RLV00007", "5000c500c0000007")
