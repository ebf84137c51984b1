"""The ports behind the names that a kernel has for devices: an act at one excuses no fault at another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from rackloop.clock import Deadline, VirtualClock
from rackloop.inspection.health import Disturbed, HealthSnapshot, compare, snapshot_of
from rackloop.lab import Lab
from rackloop.record import HealthChange, Judgement
from rackloop_drivers.host_tools import read_health
from tests.parts import parts
from tests.unit.harness.recorded_server import RecordedServer
from tests.unit.harness.sim_rack import described
from tests.unit.harness.test_host_health import HealthyServer

SOON = Deadline.after(VirtualClock(), 60)
BRIDGE = "../../devices/pci0000:00/0000:00:02.0"
AHCI = "../../devices/pci0000:00/0000:00:1f.2"
VMD_ROOT = "../../devices/pci0000:00/0000:00:0e.0/pci10000:00"
HBA = f"{BRIDGE}/0000:07:00.0/host6"
HERE, ELSE = Judgement.EXPECTED, Judgement.UNEXPECTED


@dataclass(frozen=True)
class Machine:
    """A server: the links of its disks and of its other devices, the by-path names of its disks, its ports' paths."""

    disks: str
    places: str
    by_paths: Mapping[str, str]
    paths: tuple[str, str] | tuple[str]

    def look(self, lab: Lab, message: str = "", errors: int = 0) -> HealthSnapshot:
        """Its health, after a message of its kernel and with so many errors counted by each of its PHYs."""
        named = "".join(f"{path} ../../{disk}\n" for path, disk in self.by_paths.items())
        phys = [line.split(" ")[0] for line in self.places.splitlines() if line.startswith("phy-")]
        counted = "".join(f"/sys/class/sas_phy/{phy}/invalid_dword_count:{errors}\n" for phy in phys)
        listings = {**RecordedServer().listings, "by-path": named, "block": self.disks, "values": counted}
        server = HealthyServer(listings=listings)
        log = f"<3>[   12.500000] {message}\n" if message else ""
        server.kernel = {**server.kernel, "places": self.places, "kernel": log}
        paths = dict(zip(("p0", "p1"), self.paths, strict=False))
        described = lab.servers["srv1"].model_copy(update={"ports": {"p0": 1, "p1": 2}, "paths": paths})
        rack = lab.model_copy(update={"servers": {**lab.servers, "srv1": described}})
        return snapshot_of(rack, {"srv1": read_health(server, None, SOON)}, {}, started_ns=0, ended_ns=1)


AHCI_DISKS = Machine(
    disks=f"""\
sda {AHCI}/ata1/host0/target0:0:0/0:0:0:0/block/sda
sdb {AHCI}/ata2/host1/target1:0:0/1:0:0:0/block/sdb
sdc {AHCI}/ata6/host5/target5:0:0/5:0:0:0/block/sdc
""",
    places=f"""\
ata1 {AHCI}/ata1/ata_port/ata1
ata2 {AHCI}/ata2/ata_port/ata2
ata3 {AHCI}/ata3/ata_port/ata3
ata6 {AHCI}/ata6/ata_port/ata6
host0 {AHCI}/ata1/host0/scsi_host/host0
host1 {AHCI}/ata2/host1/scsi_host/host1
host2 {AHCI}/ata3/host2/scsi_host/host2
host5 {AHCI}/ata6/host5/scsi_host/host5
""",
    by_paths={f"pci-0000:00:1f.2-ata-{port}": disk for port, disk in ((1, "sda"), (2, "sdb"), (6, "sdc"))},
    paths=("pci-0000:00:1f.2-ata-1", "pci-0000:00:1f.2-ata-2"),
)
SAS_DISKS = Machine(
    disks=f"""\
sda {HBA}/port-6:0/end_device-6:0/target6:0:0/6:0:0:0/block/sda
sdb {HBA}/port-6:1/end_device-6:1/target6:0:1/6:0:1:0/block/sdb
""",
    places=f"""\
host6 {HBA}/scsi_host/host6
phy-6:0 {HBA}/phy-6:0/sas_phy/phy-6:0
phy-6:1 {HBA}/phy-6:1/sas_phy/phy-6:1
phy-6:2 {HBA}/phy-6:2/sas_phy/phy-6:2
/sys/class/sas_phy/phy-6:0/device/port ../port-6:0
/sys/class/sas_phy/phy-6:1/device/port ../port-6:1
""",
    by_paths={"pci-0000:07:00.0-sas-phy0-lun-0": "sda", "pci-0000:07:00.0-sas-phy1-lun-0": "sdb"},
    paths=("pci-0000:07:00.0-sas-phy0", "pci-0000:07:00.0-sas-phy1"),
)
EXPANDERS = Machine(
    disks=f"""\
sda {HBA}/port-6:0/expander-6:0/port-6:0:3/end_device-6:0:3/target6:0:0/6:0:0:0/block/sda
sdb {HBA}/port-6:1/expander-6:1/port-6:1:3/end_device-6:1:3/target6:0:1/6:0:1:0/block/sdb
sdc {HBA}/port-6:1/expander-6:1/port-6:1:4/end_device-6:1:4/target6:0:2/6:0:2:0/block/sdc
""",
    places=f"""\
phy-6:0 {HBA}/phy-6:0/sas_phy/phy-6:0
phy-6:4 {HBA}/phy-6:4/sas_phy/phy-6:4
phy-6:5 {HBA}/phy-6:5/sas_phy/phy-6:5
phy-6:0:3 {HBA}/port-6:0/expander-6:0/phy-6:0:3/sas_phy/phy-6:0:3
phy-6:1:3 {HBA}/port-6:1/expander-6:1/phy-6:1:3/sas_phy/phy-6:1:3
phy-6:1:9 {HBA}/port-6:1/expander-6:1/phy-6:1:9/sas_phy/phy-6:1:9
/sys/class/sas_phy/phy-6:0/device/port ../port-6:0
/sys/class/sas_phy/phy-6:4/device/port ../port-6:1
/sys/class/sas_phy/phy-6:5/device/port ../port-6:1
/sys/class/sas_phy/phy-6:0:3/device/port ../port-6:0:3
/sys/class/sas_phy/phy-6:1:3/device/port ../port-6:1:3
""",
    by_paths={
        "pci-0000:07:00.0-sas-exp0x5000c500a00000aa-phy3-lun-0": "sda",
        "pci-0000:07:00.0-sas-exp0x5000c500a00000bb-phy3-lun-0": "sdb",
        "pci-0000:07:00.0-sas-exp0x5000c500a00000bb-phy4-lun-0": "sdc",
    },
    paths=("pci-0000:07:00.0-sas-exp0x5000c500a00000aa", "pci-0000:07:00.0-sas-exp0x5000c500a00000bb"),
)
RAID = Machine(
    disks=f"""\
sda {HBA}/target6:0:0/6:0:0:0/block/sda
sdb {HBA}/target6:0:1/6:0:1:0/block/sdb
""",
    places=f"host6 {HBA}/scsi_host/host6\n",
    by_paths={"pci-0000:07:00.0-scsi-0:0:0:0": "sda", "pci-0000:07:00.0-scsi-0:0:1:0": "sdb"},
    paths=("pci-0000:07:00.0-scsi-0:0:0:0", "pci-0000:07:00.0-scsi-0:0:1:0"),
)
NVME = Machine(
    disks=f"""\
nvme0n1 {BRIDGE}/0000:3b:00.0/nvme/nvme0/nvme0n1
nvme1n1 {BRIDGE}/0000:3c:00.0/nvme/nvme1/nvme1n1
nvme2n1 ../../devices/virtual/nvme-subsystem/nvme-subsys2/nvme2n1
nvme2c2n1 {AHCI}/0000:3d:00.0/nvme/nvme2/nvme2c2n1
""",
    places=f"""\
nvme0 {BRIDGE}/0000:3b:00.0/nvme/nvme0
nvme1 {BRIDGE}/0000:3c:00.0/nvme/nvme1
nvme2 {AHCI}/0000:3d:00.0/nvme/nvme2
nvme-fabrics ../../devices/virtual/nvme-fabrics/ctl
""",
    by_paths={"pci-0000:3b:00.0-nvme-1": "nvme0n1", "pci-0000:3c:00.0-nvme-1": "nvme1n1"},
    paths=("pci-0000:3b:00.0-nvme-1", "pci-0000:3c:00.0-nvme-1"),
)
# The address of each drive ends as that of another does.
VMD = Machine(
    disks=f"""\
nvme0n1 {VMD_ROOT}/10000:00:06.0/10000:01:00.0/nvme/nvme0/nvme0n1
nvme1n1 {BRIDGE}/0000:01:00.0/nvme/nvme1/nvme1n1
""",
    places=f"""\
nvme0 {VMD_ROOT}/10000:00:06.0/10000:01:00.0/nvme/nvme0
nvme1 {BRIDGE}/0000:01:00.0/nvme/nvme1
nvme2 {VMD_ROOT}/10000:00:07.0/10000:02:00.0/nvme/nvme2
""",
    by_paths={"pci-0000:00:0e.0-pci-10000:01:00.0-nvme-1": "nvme0n1", "pci-0000:01:00.0-nvme-1": "nvme1n1"},
    paths=("pci-0000:00:0e.0-pci-10000:01:00.0", "pci-0000:01:00.0"),
)
# One function for each port, as QEMU's and the mock's are.
FUNCTIONS = Machine(
    disks=f"""\
sda {BRIDGE}/0000:10:00.0/virtio2/host6/target6:0:0/6:0:0:0/block/sda
sdb {AHCI}/0000:11:00.0/ata1/host7/target7:0:0/7:0:0:0/block/sdb
""",
    places=f"""\
host6 {BRIDGE}/0000:10:00.0/virtio2/host6/scsi_host/host6
host7 {AHCI}/0000:11:00.0/ata1/host7/scsi_host/host7
ata1 {AHCI}/0000:11:00.0/ata1/ata_port/ata1
phy-7:0 {AHCI}/0000:11:00.0/ata1/host7/phy-7:0/sas_phy/phy-7:0
""",
    by_paths={"pci-0000:10:00.0-scsi-0:0:0:0": "sda", "pci-0000:11:00.0-ata-1": "sdb"},
    paths=("pci-0000:10:00.0", "pci-0000:11:00.0"),
)

IO_ERROR = "I/O error, dev {}, sector 2048 op 0x0:(READ)"
TIMED_OUT = "sd {}: [{}] tag#1 FAILED Result: hostbyte=DID_TIME_OUT driverbyte=DRIVER_OK"
LINK_DOWN = "{}: SATA link down (SStatus 0 SControl 300)"
RESET = "nvme {}: controller is down; will reset: CSTS=0xffffffff"
AER = "pcieport {}: AER: Corrected error received"


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return described(tmp_path)


def changed(before: HealthSnapshot, after: HealthSnapshot) -> list[HealthChange]:
    """What changed in a test that took the link of port p0 away, and of that port alone."""
    return compare(before, after, Disturbed(linked=parts(server_ports={("srv1", "p0")})))


@pytest.mark.parametrize(
    ("machine", "message", "subject", "judgement"),
    [
        (AHCI_DISKS, LINK_DOWN.format("ata1"), "srv1 p0", HERE),
        (AHCI_DISKS, LINK_DOWN.format("ata2"), "srv1 p1", ELSE),
        (AHCI_DISKS, IO_ERROR.format("sda"), "srv1 p0", HERE),
        (AHCI_DISKS, IO_ERROR.format("sdb"), "srv1 p1", ELSE),
        (AHCI_DISKS, TIMED_OUT.format("1:0:0:0", "sdb"), "srv1 p1", ELSE),
        # Its boot disk is at no port of the rack; which of those an empty port of the controller is, nothing tells.
        (AHCI_DISKS, IO_ERROR.format("sdc"), "srv1", ELSE),
        (AHCI_DISKS, LINK_DOWN.format("ata3"), "srv1 p0 p1", HERE),
        (AHCI_DISKS, AER.format("0000:00:1f.2"), "srv1 p0 p1", HERE),
        (SAS_DISKS, TIMED_OUT.format("6:0:0:0", "sda"), "srv1 p0", HERE),
        (SAS_DISKS, TIMED_OUT.format("6:0:1:0", "sdb"), "srv1 p1", ELSE),
        # A disk that was there during the test alone.
        (SAS_DISKS, TIMED_OUT.format("6:0:9:0", "sdx"), "srv1 p0 p1", HERE),
        (SAS_DISKS, IO_ERROR.format("sdb"), "srv1 p1", ELSE),
        (EXPANDERS, IO_ERROR.format("sda"), "srv1 p0", HERE),
        (EXPANDERS, IO_ERROR.format("sdc"), "srv1 p1", ELSE),
        (EXPANDERS, AER.format("0000:00:02.0"), "srv1 p0 p1", HERE),
        (RAID, TIMED_OUT.format("6:0:0:0", "sda"), "srv1 p0", HERE),
        (RAID, TIMED_OUT.format("6:0:1:0", "sdb"), "srv1 p1", ELSE),
        (NVME, RESET.format("nvme0"), "srv1 p0", HERE),
        (NVME, RESET.format("nvme1"), "srv1 p1", ELSE),
        (NVME, IO_ERROR.format("nvme1n1"), "srv1 p1", ELSE),
        (NVME, AER.format("0000:3c:00.0"), "srv1 p1", ELSE),
        (NVME, IO_ERROR.format("nvme2n1"), "srv1", ELSE),
        (NVME, RESET.format("nvme2"), "srv1", ELSE),
        (VMD, RESET.format("nvme0"), "srv1 p0", HERE),
        (VMD, AER.format("10000:01:00.0"), "srv1 p0", HERE),
        (VMD, AER.format("10000:00:06.0"), "srv1 p0", HERE),
        (VMD, AER.format("0000:00:0e.0"), "srv1 p0", HERE),
        (VMD, AER.format("0000:01:00.0"), "srv1 p1", ELSE),
        (VMD, RESET.format("nvme2"), "srv1", ELSE),
        (FUNCTIONS, IO_ERROR.format("sda"), "srv1 p0", HERE),
        (FUNCTIONS, TIMED_OUT.format("6:0:7:0", "sdx"), "srv1 p0", HERE),
        (FUNCTIONS, AER.format("0000:00:02.0"), "srv1 p0", HERE),
        (FUNCTIONS, LINK_DOWN.format("ata1"), "srv1 p1", ELSE),
    ],
)
def test_a_message_is_about_the_port_of_the_device_it_names(
    lab: Lab, machine: Machine, message: str, subject: str, judgement: Judgement
) -> None:
    (change,) = changed(machine.look(lab), machine.look(lab, message))
    assert (change.subject, change.judgement) == (subject, judgement)


@pytest.mark.parametrize(
    ("machine", "judged"),
    [
        # Which port an empty PHY of an adapter is, nothing tells.
        (SAS_DISKS, {"srv1 p0 phy-6:0": HERE, "srv1 p1 phy-6:1": ELSE, "srv1 p0 p1 phy-6:2": HERE}),
        (
            EXPANDERS,
            {
                "srv1 p0 phy-6:0": HERE,
                "srv1 p1 phy-6:4": ELSE,
                "srv1 p1 phy-6:5": ELSE,
                "srv1 p0 phy-6:0:3": HERE,
                "srv1 p1 phy-6:1:3": ELSE,
                "srv1 p1 phy-6:1:9": ELSE,
            },
        ),
        (FUNCTIONS, {"srv1 p1 phy-7:0": ELSE}),
    ],
)
def test_a_phy_is_of_the_port_whose_drives_are_behind_it(
    lab: Lab, machine: Machine, judged: Mapping[str, Judgement]
) -> None:
    changes = changed(machine.look(lab), machine.look(lab, errors=5))
    assert {change.subject: change.judgement for change in changes} == judged


@pytest.mark.parametrize(("disk", "subject"), [("sda", "srv1 p1"), ("sdb", "srv1 p0")])
def test_what_is_at_no_described_path_may_be_at_a_port_without_one(lab: Lab, disk: str, subject: str) -> None:
    machine = replace(AHCI_DISKS, paths=("pci-0000:00:1f.2-ata-2",))
    (change,) = changed(machine.look(lab), machine.look(lab, IO_ERROR.format(disk)))
    assert change.subject == subject
