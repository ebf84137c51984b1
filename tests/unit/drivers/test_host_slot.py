"""A drive that is in use, or is not the one that is meant, is not taken away from its server."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from rackloop.abilities import Completed
from rackloop.clock import Deadline
from rackloop.errors import BadInput, GuardRefused, LabError, NotSupported
from rackloop_drivers import host_tools
from rackloop_drivers.slot import HostSlot
from tests.deadlines import soon
from tests.unit.harness.recorded_server import RECORDED, RecordedServer

SERIAL = "SATA0001"
REMOVED = {"kind": "removed"}
SATA = "/sys/devices/pci0000:00/0000:00:1f.2/ata2/host1/target1:0:0/1:0:0:0"


def server(**fields: Any) -> RecordedServer:
    """The recorded server, with these fields of its SATA SSD as lsblk lists it."""
    recording = RECORDED["lsblk -"]
    listed = json.loads(recording.stdout)
    for disk in listed["blockdevices"]:
        if disk["name"] == "sdb":
            disk.update(fields)
    answers = {**RECORDED, "lsblk -": replace(recording, stdout=json.dumps(listed))}
    return RecordedServer(answers=answers)


def part(**fields: Any) -> dict[str, Any]:
    return {"name": "sdb1", "kname": "sdb1", "type": "part", "size": 1, "rota": False, "mountpoints": [None], **fields}


def serial_of(host: RecordedServer) -> str:
    return str(json.loads(host.answers["smartctl sdb"].stdout)["serial_number"])


@pytest.mark.parametrize(
    ("child", "reason"),
    [
        (part(mountpoints=["/srv"]), "it is in use: sdb1 is mounted at /srv"),
        (part(mountpoints=["/"]), "it is the boot drive"),
        (part(children=[{**part(), "name": "md0", "kname": "md0", "type": "raid1"}]), "it is in use"),
    ],
)
def test_a_drive_that_somebody_uses_stays(child: dict[str, Any], reason: str) -> None:
    host = server(children=[child])
    slot = HostSlot(host, "/dev/sdb", drive_id="d01", serial=serial_of(host))
    with pytest.raises(GuardRefused, match=f"drive d01.*{reason}"):
        slot.prepare(REMOVED, soon())
    assert len(host.ran) == 1, "it was looked at, and nothing else was done"


def told_of(config: Path) -> str:
    """The survey's listing of what the kernel whose configfs that is offers to other machines."""
    survey = files(host_tools).joinpath("survey.sh").read_text(encoding="utf-8")
    script = survey.partition("begin exports -\n")[2].partition("begin loops -\n")[0]
    argv = ["sh", "-c", script.replace("/sys/kernel/config/", f"{config}/")]
    return subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True).stdout


@pytest.mark.parametrize(
    ("offer", "file", "reason"),
    [
        ("target/core/iblock_0/d01", "udev_path", "sdb is the backstore iblock_0/d01 of LIO"),
        ("nvmet/subsystems/nqn:x/namespaces/2", "device_path", "sdb is namespace 2 of nqn:x, for NVMe over Fabrics"),
    ],
)
def test_a_drive_that_is_offered_to_other_machines_stays(tmp_path: Path, offer: str, file: str, reason: str) -> None:
    by_id = tmp_path / "wwn-0x5000c50000000def"
    by_id.symlink_to("/dev/sdb")
    offered = tmp_path / "config" / offer
    offered.mkdir(parents=True)
    (tmp_path / "config/target/core/alua/lu_gps").mkdir(parents=True)
    (offered / file).write_text(f"{by_id}\n")
    host = LocatingServer(located=f"name sdb\ndevice {SATA}\n")
    slot = HostSlot(host, "/dev/sdb", drive_id="d01", serial=serial_of(host))
    (offered / "enable").write_text("0\n")
    host.listings["exports"] = told_of(tmp_path / "config")
    assert slot.prepare(REMOVED, soon())
    (offered / "enable").write_text("1\n")
    host.listings["exports"] = told_of(tmp_path / "config")
    with pytest.raises(GuardRefused, match=f"drive d01.*it is in use: {reason}"):
        slot.prepare(REMOVED, soon())


def test_another_drive_than_the_described_one_stays() -> None:
    host = server()
    slot = HostSlot(host, "/dev/sdb", drive_id="d01", serial="OTHER")
    with pytest.raises(GuardRefused, match=f"described as OTHER, the drive at srv9:/dev/sdb has {serial_of(host)}"):
        slot.prepare(REMOVED, soon())


def test_a_parameter_that_it_does_not_have_is_named() -> None:
    slot = HostSlot(server(), "/dev/sdb", drive_id="d01", serial=SERIAL)
    with pytest.raises(BadInput, match="removed of srv9:/dev/sdb takes no colour"):
        slot.prepare({**REMOVED, "colour": "red"}, soon())


@dataclass
class LocatingServer(RecordedServer):
    """The recorded server, which also says where its drives are."""

    located: str = ""
    not_above: str = ""
    slot_capabilities: str = "00080060"
    status: int = 0

    def run(self, argv: Sequence[str], deadline: Deadline, *, stdin: str = "") -> Completed:
        if argv[0] == "setpci" and argv[-1] == "CAP_EXP+14.l":
            assert argv[2] in {"0000:00:04.0", "10000:00:02.0"}
            return Completed(tuple(argv), 0, f"{self.slot_capabilities}\n", "")
        if argv[0] == "setpci":
            # As of a port that ignores what is written to it.
            return Completed(tuple(argv), 0, "" if "=" in argv[-1] else "0000\n", "")
        if argv[3:5] == ["slot", "write"]:
            return Completed(tuple(argv), 5 if self.not_above else 0, "", self.not_above)
        if argv[3] == "slot":
            return Completed(tuple(argv), self.status, self.located, "")
        return super().run(argv, deadline, stdin=stdin)


PORT = "/sys/devices/pci0000:00/0000:00:04.0"


def nvme_server(second: str, folder: str, **used: Any) -> LocatingServer:
    """Its NVMe drive, and another block device ``second`` at ``folder``, which lsblk lists with ``used``."""
    recording = RECORDED["lsblk -"]
    listed = json.loads(recording.stdout)
    (own,) = (disk for disk in listed["blockdevices"] if disk["name"] == "nvme0n1")
    listed["blockdevices"].append({**own, "name": second, "kname": second, **used})
    answers = {**RECORDED, "lsblk -": replace(recording, stdout=json.dumps(listed))}
    answers |= {f"{kind} {second}": RECORDED[f"{kind} nvme0n1"] for kind in ("id-ctrl", "id-ns", "smart-log")}
    located = (
        f"name nvme0n1\ndevice {PORT}/0000:01:00.0/nvme/nvme0\nblock nvme0n1 {PORT}/0000:01:00.0/nvme/nvme0/nvme0n1\n"
        f"block {second} {folder}/{second}\nslot 0000:01:00 /sys/bus/pci/slots/0\n"
    )
    return LocatingServer(answers=answers, located=located)


NAMESPACE = f"{PORT}/0000:01:00.0/nvme/nvme0"
BESIDE = f"{PORT}/0000:02:00.0/nvme/nvme1"


@pytest.mark.parametrize(
    ("kind", "second", "folder", "refused"),
    [
        ("removed", "nvme0n2", NAMESPACE, True),
        ("removed", "nvme0c0n2", NAMESPACE, True),
        ("slot_power_off", "nvme0n2", NAMESPACE, True),
        ("link_disabled", "nvme1n1", BESIDE, True),
        ("removed", "nvme1n1", BESIDE, False),
        ("slot_power_off", "nvme1n1", BESIDE, False),
    ],
)
def test_what_goes_with_a_drive_is_looked_at_too(kind: str, second: str, folder: str, *, refused: bool) -> None:
    node = second.replace("c0", "")
    host = nvme_server(node, folder, mountpoints=["/srv"])
    host.located = host.located.replace(f"block {node} {folder}/{node}", f"block {second} {folder}/{second}")
    serial = str(json.loads(RECORDED["id-ctrl nvme0n1"].stdout)["sn"])
    slot = HostSlot(host, "/dev/nvme0n1", drive_id="d01", serial=serial)
    if not refused:
        assert slot.prepare({"kind": kind}, soon())
        return
    with pytest.raises(GuardRefused, match=f"/dev/{node} goes with it and is in use: {node} is mounted at /srv"):
        slot.prepare({"kind": kind}, soon())


def alone() -> tuple[LocatingServer, HostSlot]:
    """The server with its NVMe drive, and the drive's slot."""
    host = nvme_server("nvme1n1", BESIDE)
    serial = str(json.loads(RECORDED["id-ctrl nvme0n1"].stdout)["sn"])
    return host, HostSlot(host, "/dev/nvme0n1", drive_id="d01", serial=serial)


def test_a_slot_that_ejects_its_drive_is_not_told_to() -> None:
    host, slot = alone()
    host.located = host.located.replace("slot 0000:01:00 /sys/bus/pci/slots/0", "ejects 0000:01:00")
    with pytest.raises(NotSupported, match=r"is in a slot of the firmware's \(ACPI\), which ejects a drive"):
        slot.prepare({"kind": "slot_power_off"}, soon())


@pytest.mark.parametrize("kind", ["removed", "slot_power_off", "link_disabled"])
def test_a_drive_with_another_controller_cannot_be_taken_away_by_one(kind: str) -> None:
    host, slot = alone()
    host.located += f"also {BESIDE}\n"
    with pytest.raises(NotSupported, match=f"has several controllers, and stays until all are gone: .*, {BESIDE}$"):
        slot.prepare({"kind": kind}, soon())


def test_a_link_that_its_slot_would_bring_back_is_not_disabled() -> None:
    host, slot = alone()
    assert slot.prepare({"kind": "link_disabled"}, soon()) == {"bridge": "0000:00:04.0"}
    host.slot_capabilities = "00080062"
    with pytest.raises(NotSupported, match=r"0000:00:04\.0 has a power controller, .*; take .* by slot_power_off"):
        slot.prepare({"kind": "link_disabled"}, soon())


def test_a_port_that_ignores_the_bit_is_said_to() -> None:
    _, slot = alone()
    note = {"fault": {"kind": "link_disabled"}, "bridge": "0000:00:10.0"}
    with pytest.raises(NotSupported, match=r"the PCIe port 0000:00:10\.0 above it does not let its link be disabled"):
        slot.start(note, soon())
    assert not slot.stands(note, soon())


def test_a_port_that_is_not_there_any_more_is_said_to_be_gone() -> None:
    host, slot = alone()
    host.slot_capabilities = ""
    with pytest.raises(LabError, match=r"setpci printed '' for CAP_EXP\+14\.l of 0000:00:04\.0; is that port there"):
        slot.prepare({"kind": "link_disabled"}, soon())


def test_a_drive_that_cannot_be_looked_for_is_not_said_to_be_back() -> None:
    host, slot = alone()
    note = slot.prepare({"kind": "removed"}, soon()) | {"fault": {"kind": "removed"}}
    host.status = 2
    for ask in (slot.stands, slot.end):
        with pytest.raises(LabError, match="it cannot be told whether the drive is there: exit status 2"):
            ask(note, soon())
    host.status = 4
    assert slot.stands(note, soon())


VMD = "/sys/devices/pci0000:00/0000:00:0e.0/pci10000:00/10000:00:02.0"


@pytest.mark.parametrize(
    ("kind", "noted"),
    [
        (
            "removed",
            {
                "break_file": "/sys/bus/pci/devices/10000:01:00.0/remove",
                "mend_file": "/sys/class/pci_bus/10000:01/rescan",
            },
        ),
        ("slot_power_off", {"break_file": "/sys/bus/pci/slots/7/power"}),
        ("link_disabled", {"bridge": "10000:00:02.0"}),
    ],
)
def test_a_drive_behind_vmd_is_not_taken_for_one_at_the_end_of_its_address(kind: str, noted: dict[str, str]) -> None:
    """Another drive, which is mounted, is at 0000:01:00.0."""
    bystander = f"{PORT}/0000:01:00.0/nvme/nvme1"
    host = nvme_server("nvme1n1", bystander, mountpoints=["/srv"])
    host.located = (
        f"name nvme0n1\ndevice {VMD}/10000:01:00.0/nvme/nvme0\nblock nvme0n1 {VMD}/10000:01:00.0/nvme/nvme0/nvme0n1\n"
        f"block nvme1n1 {bystander}/nvme1n1\n"
        "slot 0000:01:00 /sys/bus/pci/slots/0\nslot 10000:01:00 /sys/bus/pci/slots/7\n"
    )
    serial = str(json.loads(RECORDED["id-ctrl nvme0n1"].stdout)["sn"])
    slot = HostSlot(host, "/dev/nvme0n1", drive_id="d01", serial=serial)
    note = slot.prepare({"kind": kind}, soon())
    assert note.items() >= noted.items()


def test_the_other_unit_of_a_drive_that_is_switched_off_goes_with_it() -> None:
    """As of a hard disk with two actuators. The drive in the next slot stays."""
    host = server(mountpoints=["/srv"])
    end_device = "/sys/devices/pci0000:00/0000:3b:00.0/host6/port-6:0/end_device-6:0/target6:0"
    located = (
        f"name sda\ndevice {end_device}:1/6:0:1:0\nenclosure 0x500304801234567f 7\n"
        f"block sda {end_device}:1/6:0:1:0/block/sda\nblock sdb {end_device}:1/6:0:1:1/block/sdb\n"
    )
    locating = LocatingServer(answers=host.answers, located=located)
    serial = str(json.loads(RECORDED["smartctl sda"].stdout)["serial_number"])
    slot = HostSlot(locating, "/dev/sda", drive_id="d01", serial=serial)
    with pytest.raises(GuardRefused, match=r"drive d01.*/dev/sdb goes with it and is in use: sdb is mounted at /srv"):
        slot.prepare({"kind": "device_off"}, soon())
    assert slot.prepare(REMOVED, soon())

    locating.located = located.replace(":1/6:0:1:1/", ":12/6:0:12:0/")
    assert slot.prepare({"kind": "device_off"}, soon()) == {"enclosure": "0x500304801234567f", "slot": "7"}


def test_of_a_scsi_host_the_target_that_was_removed_is_scanned_and_no_other() -> None:
    host = LocatingServer(located="name sdb\ndevice /sys/devices/pci0000:00/0000:3b:00.0/host6/target6:1:14/6:1:14:2\n")
    slot = HostSlot(host, "/dev/sdb", drive_id="d01", serial=serial_of(host))
    note = slot.prepare(REMOVED, soon())
    assert (note["mend_file"], note["mend_value"]) == ("/sys/class/scsi_host/host6/scan", "1 14 2")


@pytest.mark.parametrize("joined", [SERIAL, "OTHER"], ids=["the drive itself", "another drive"])
def test_a_removed_drive_stays_away_where_another_one_is_in_its_place(joined: str) -> None:
    """A switch may join the place of the drive to another one, which does not end what took the first one away."""
    host = LocatingServer(located=f"name sdb\ndevice {SATA}\n")
    note = HostSlot(host, "/dev/sdb", drive_id="d01", serial=serial_of(host)).prepare(REMOVED, soon())
    if joined == "OTHER":
        note["serial"] = "OTHER"
    assert HostSlot(host, "/dev/sdb", drive_id="d01", serial="").stands({"fault": REMOVED, **note}, soon()) is (
        joined == "OTHER"
    )


def test_what_is_not_above_the_drive_is_refused() -> None:
    host, slot = alone()
    host.not_above = "/sys/bus/pci/devices/0000:02:00.0 is not above nvme0n1 in sysfs\n"
    note = {"fault": REMOVED, "break_file": "/sys/bus/pci/devices/0000:02:00.0/remove", "break_value": "1"}
    with pytest.raises(GuardRefused, match=r"drive d01.*0000:02:00\.0 is not above nvme0n1 in sysfs"):
        slot.start(note, soon())


@pytest.mark.parametrize(("others", "is_alone"), [("0 7", False), ("0 1 12", True)])
def test_a_slot_whose_number_another_drive_has_too_is_not_switched_off(
    tmp_path: Path, others: str, *, is_alone: bool
) -> None:
    """Two drawers of one enclosure may number their slots alike, and sg_ses takes the first that it finds."""
    for name in ("sda", *(f"sd{letter}" for letter, _ in zip("bcd", others.split(), strict=False))):
        (tmp_path / "sys/devices" / name).mkdir(parents=True)
    (tmp_path / "sys/block/sda").mkdir(parents=True)
    (tmp_path / "sys/block/sda/device").symlink_to(tmp_path / "sys/devices/sda")
    enclosure = tmp_path / "sys/class/enclosure/0:0:9:0"
    for place, number in enumerate(["7", *others.split(), "7"]):
        (enclosure / f"Slot {place}").mkdir(parents=True)
        (enclosure / f"Slot {place}" / "slot").write_text(f"{number}\n")
        # In the last there is no drive.
        if place <= len(others.split()):
            (enclosure / f"Slot {place}" / "device").symlink_to(tmp_path / "sys/devices" / f"sd{'abcd'[place]}")
    (enclosure / "id").write_text("0x500304801234567f\n")
    script = files("rackloop_drivers.slot").joinpath("slot.sh").read_text(encoding="utf-8")
    script = script.replace("/sys/", f"{tmp_path}/sys/")
    argv = ["sh", "-c", script, "slot", "locate", "/dev/sda", "1"]
    located = subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True).stdout
    host = LocatingServer(located=located)
    serial = str(json.loads(RECORDED["smartctl sda"].stdout)["serial_number"])
    slot = HostSlot(host, "/dev/sda", drive_id="d01", serial=serial)
    if is_alone:
        assert slot.prepare({"kind": "device_off"}, soon()) == {"enclosure": "0x500304801234567f", "slot": "7"}
        return
    with pytest.raises(NotSupported, match="its enclosure gives several drives the number of its slot"):
        slot.prepare({"kind": "device_off"}, soon())
