"""The machine the recordings were made on, as a mock server would see it: the same drives, counters at their start."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from rackloop_labs.mock_hosts._view import Answer, AttachedDrive, AttachedExpander, HbaPort, HostView
from rackloop_labs.mock_hosts.tools import TOOLS
from tests.transcripts.drift import Recording, answer_drift

KERNEL_RELEASE = "6.1.0-56-amd64"
SIZE = 256 << 20
PORTS = tuple(HbaPort(f"p{i}", i, i + 1, f"5000c5000000{i:04x}", is_linked=True, phy_resets=0) for i in range(4))


def _drive(name: str, port: int, serial: str, protocol: str, wwn: str | None, *, is_rotational: bool) -> AttachedDrive:
    model = {"nvme": "QEMU NVMe Ctrl", "sas": "QEMU SAS-HDD", "sata": "QEMU HARDDISK"}[protocol]
    firmware = "7.2.22" if protocol == "nvme" else "2.5+"
    return AttachedDrive(
        drive_id=serial.lower(),
        kernel_name=name,
        number=0 if protocol == "nvme" else port,
        port=PORTS[port],
        model=model,
        serial=serial,
        firmware=firmware,
        protocol=protocol,
        wwn=wwn,
        eui64=None,
        nguid=None,
        size_bytes=SIZE,
        sector_bytes=512,
        is_rotational=is_rotational,
        counters={"power_cycles": 1, "power_on_ns": 3_600_000_000_000, "reads": 4, "bytes_read": 16384},
    )


NVME = _drive("nvme0", 3, "NVMEDRIVE01", "nvme", None, is_rotational=False)
SAS = _drive("sda", 0, "SASDRIVE01", "sas", "5000c50000000abc", is_rotational=True)
SATA_SSD = _drive("sdb", 1, "SATADRIVE01", "sata", "5000c50000000def", is_rotational=False)
SATA_HDD = _drive("sdc", 2, "SATAHDD01", "sata", "5000c50000000dee", is_rotational=True)
GUEST = HostView(
    server="virt1",
    boot_id="5ef59132-2744-48ee-affd-7249a6481136",
    up_s=20.0,
    ports=PORTS,
    drives=(SAS, SATA_SSD, SATA_HDD, NVME),
    now=datetime(2026, 11, 20, 20, 59, 48, tzinfo=UTC),
)


def with_counters(drive: AttachedDrive, *, failed_lbas: tuple[int, ...] = (), **counters: int) -> HostView:
    """The guest with other counters of one drive."""
    changed = replace(drive, counters={**drive.counters, **counters}, failed_lbas=failed_lbas)
    return replace(GUEST, drives=tuple(changed if other is drive else other for other in GUEST.drives))


@dataclass
class RecordedActs:
    """What a server may do to its links and drives, done to nothing: it remembers what was asked."""

    asked: list[tuple[str, str]] = field(default_factory=list)

    def reset_link(self, port: HbaPort) -> None:
        self.asked.append(("reset_link", port.name))

    def reset_controller(self, drive: AttachedDrive) -> None:
        self.asked.append(("reset_controller", drive.kernel_name))

    def disable_link(self, port: HbaPort) -> None:
        self.asked.append(("disable_link", port.name))

    def enable_link(self, port: HbaPort) -> None:
        self.asked.append(("enable_link", port.name))

    def power_slot(self, expander: AttachedExpander, slot: int, *, on: bool) -> None:
        self.asked.append(("power_slot", f"{expander.name}/{slot}/{on}"))

    def sanitize(self, drive: AttachedDrive, method: str, *, at_once: bool = False) -> None:
        self.asked.append(("sanitize", f"{drive.kernel_name}/{method}/{at_once}"))

    def set_password(self, drive: AttachedDrive, password: str | None) -> None:
        self.asked.append(("set_password", f"{drive.kernel_name}/{password}"))

    def limit_recovery(self, drive: AttachedDrive, reads: int, writes: int) -> None:
        self.asked.append(("limit_recovery", f"{drive.kernel_name}/{reads}/{writes}"))

    def mark(self, drive: AttachedDrive, first: int, many: int) -> None:
        self.asked.append(("mark", f"{drive.kernel_name}/{first}/{many}"))

    def remove(self, drive: AttachedDrive) -> None:
        self.asked.append(("remove", drive.kernel_name))

    def rescan(self, port: HbaPort, target: int | None = None) -> None:
        self.asked.append(("rescan", port.name if target is None else f"{port.name}/{target}"))

    def remove_function(self, port: HbaPort) -> None:
        self.asked.append(("remove_function", port.name))

    def rescan_bus(self, port: HbaPort | None = None) -> None:
        self.asked.append(("rescan_bus", "" if port is None else port.name))

    def power_pci_slot(self, port: HbaPort, *, on: bool) -> None:
        self.asked.append(("power_pci_slot", f"{port.name}/{on}"))


def run(*argv: str, view: HostView = GUEST, acts: RecordedActs | None = None) -> Answer:
    """What an emulated tool answers on the guest, which has a kernel of its own."""
    answer = TOOLS[argv[0]](argv[1:], view, acts or RecordedActs())
    return replace(answer, stdout=answer.stdout.replace(os.uname().release, KERNEL_RELEASE))


def drift(real: Recording, view: HostView = GUEST) -> list[str]:
    """How the emulated tool's answer to a recorded command differs from the recording."""
    answer = run(*real.argv, view=view)
    return answer_drift(real, answer.stdout, answer.stderr, answer.status)
