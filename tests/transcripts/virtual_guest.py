"""The guest of ``virtual-direct`` as a mock server would see it: the same drives, at the same kernel names."""

from __future__ import annotations

from datetime import UTC, datetime

from rackloop.lab import load_lab
from rackloop_labs.mock_hosts._view import AttachedDrive, HbaPort, HostView
from tests.transcripts.record_guest import LAB, SERVER

_KERNEL_NAMES = {"fast1": "nvme0", "sas1": "sda", "hdd1": "sdb", "hdd2": "sdc"}
# As QEMU's NVMe controller reports it, which is its own version.
_NVME_FIRMWARE = "7.2.22"


def virtual_guest() -> HostView:
    """It, an hour after its drives had power."""
    lab = load_lab(LAB)
    joined = lab.joined(SERVER)
    ports = {
        name: HbaPort(name, number, number + 1, f"5000c5000000{number:04x}", is_linked=True, phy_resets=0)
        for number, name in enumerate(lab.servers[SERVER].ports)
    }
    drives = []
    for number, (port, name) in enumerate(joined.items()):
        drive = lab.drives[name]
        is_nvme = drive.traits.protocol == "nvme"
        drives.append(
            AttachedDrive(
                drive_id=name,
                kernel_name=_KERNEL_NAMES[name],
                number=0 if is_nvme else number,
                port=ports[port],
                model=drive.model,
                serial=drive.serial,
                firmware=_NVME_FIRMWARE if is_nvme else drive.firmware,
                protocol=drive.traits.protocol,
                wwn=drive.wwn,
                eui64=drive.eui64,
                nguid=drive.nguid,
                size_bytes=drive.size,
                sector_bytes=drive.traits.sector_bytes,
                is_rotational=drive.traits.is_rotational,
                counters={"power_cycles": 1, "power_on_ns": 3_600_000_000_000, "reads": 4, "bytes_read": 16384},
            )
        )
    return HostView(
        server=SERVER,
        boot_id="5ef59132-2744-48ee-affd-7249a6481136",
        up_s=20.0,
        ports=tuple(ports.values()),
        drives=tuple(drives),
        now=datetime(2026, 11, 20, 20, 59, 48, tzinfo=UTC),
    )
