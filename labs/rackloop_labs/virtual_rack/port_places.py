"""The places of a server's ports in its guest: PCIe slots, and ports of the SATA controller that the machine has."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rackloop.lab import Lab
from rackloop_labs.virtual_rack.guest_drives import PluggedDrive

SATA_PORTS = 6
"""The number of SATA drives that a guest takes."""

_AHCI = "pci-0000:00:1f.2"


@dataclass(frozen=True)
class PortPlace:
    """The place of a port: its slot, or the port of the SATA controller, each counted from 0."""

    slot: int
    sata: int | None = None

    def path(self, slot_buses: Sequence[int]) -> str:
        """The beginning of the by-path names of what is there; ``slot_buses`` are the PCI buses of the slots."""
        if self.sata is not None:
            # As Linux counts them.
            return f"{_AHCI}-ata-{self.sata + 1}"
        return f"pci-0000:{slot_buses[self.slot]:02x}:00.0"


def places_of(lab: Lab, server: str) -> dict[str, PortPlace]:
    """The place of each port of a server; that of a SATA drive, which is attached for good, has no slot's."""
    joined = lab.joined(server)
    found: dict[str, PortPlace] = {}
    attached = 0
    for slot, port in enumerate(lab.servers[server].ports):
        drive = lab.drives.get(joined.get(port, ""))
        is_sata = drive is not None and drive.traits.protocol == "sata"
        found[port] = PortPlace(slot, attached if is_sata else None)
        attached += is_sata
    return found


def sata_arguments(lab: Lab, server: str, nbd: Path) -> list[str]:
    """The arguments of QEMU for a server's SATA drives, by the exports of rackd at ``nbd``."""
    joined, argv = lab.joined(server), list[str]()
    for port, place in places_of(lab, server).items():
        if place.sata is None:
            continue
        drive = PluggedDrive.of(joined[port], lab.drives[joined[port]])
        node = f"sata{place.sata}"
        device = drive.properties() | {"id": f"ata{place.sata}", "bus": f"ide.{place.sata}", "drive": node}
        block = block_of(drive, f"{server}.{port}", nbd) | {"node-name": node}
        argv += ["-blockdev", json.dumps(block), "-device", json.dumps(device)]
    return argv


def block_of(drive: PluggedDrive, port: str, nbd: Path) -> dict[str, object]:
    """The block node of a drive at the export of a port, which answers for that drive alone."""
    server = {"type": "unix", "path": str(nbd)}
    export = {"driver": "nbd", "server": server, "export": f"{port}.by-id.{drive.serial}"}
    # A port's export is as large as the rack's largest drive.
    return {"driver": "raw", "size": drive.size, "file": export}
