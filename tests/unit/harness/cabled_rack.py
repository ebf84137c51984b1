"""A rack whose servers see what its cables connect, whatever the description says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from rackloop.abilities import DriveIdentity
from rackloop.abilities.inventory import HostInventory, SeenDrive
from rackloop.inspection.cabling import Disagreement, check_ports
from rackloop.lab import Lab, load_lab
from rackloop.portmap import PortMap

SWITCHED = """
name: cabled
kind: mock
fabric: {driver: flexfabric, ports: 40}
servers:
  srv1: {ports: {p0: 1, p1: 2}, paths: {p0: 'pci-0000:10:00.0', p1: 'pci-0000:11:00.0'}}
  srv2: {ports: {p0: 5, p1: 6}, paths: {p0: 'pci-0000:10:00.0', p1: 'pci-0000:11:00.0'}}
  srv3: {ports: {p0: 9, p1: 10}, paths: {p0: 'pci-0000:10:00.0', p1: 'pci-0000:11:00.0'}}
expanders:
  exp1: {port: 30, slots: 8}
drives:
  d01: {profile: sata-ssd, serial: S1, wwn: 5000c500a0000001, size: 8 GiB, port: 21, scratch: true}
  d02: {profile: nvme-ssd, serial: '002', eui64: 0025385b71b00002, size: 8 GiB, port: 22, scratch: true}
  d03: {profile: sas-hdd, serial: S3, wwn: 5000c500a0000003, size: 8 GiB, port: 23, scratch: true}
  d04: {profile: sata-ssd, serial: S4, wwn: 5000c500a0000004, size: 8 GiB, port: 24, scratch: true}
  d05: {profile: sata-ssd, serial: S5, wwn: 5000c500a0000005, size: 8 GiB, port: 25, scratch: true}
  d06: {profile: sas-hdd, serial: S6, wwn: 5000c500a0000006, size: 8 GiB, expander: exp1, slot: 0, scratch: true}
  d07: {profile: sas-hdd, serial: S7, wwn: 5000c500a0000007, size: 8 GiB, expander: exp1, slot: 1, scratch: true}
  d08: {profile: sas-hdd, serial: S8, wwn: 5000c500a0000008, size: 8 GiB, expander: exp1, slot: 5, scratch: true}
baseline: {srv1: {p0: d01, p1: d02}, srv2: {p0: d03, p1: exp1}, srv3: {p0: d04}}
"""
STATIC = """
name: fixed
kind: mock
fabric: {driver: static}
servers:
  srv1: {ports: {p0, p1}, paths: {p0: 'pci-0000:10:00.0', p1: 'pci-0000:11:00.0'}}
  srv2: {ports: {p0, p1}, paths: {p0: 'pci-0000:10:00.0', p1: 'pci-0000:11:00.0'}}
drives:
  d01: {profile: sata-ssd, serial: S1, wwn: 5000c500a0000001, size: 8 GiB, attached: srv1/p0, scratch: true}
  d02: {profile: sata-ssd, serial: S2, wwn: 5000c500a0000002, size: 8 GiB, attached: srv1/p1, scratch: true}
  d03: {profile: sata-ssd, serial: S3, wwn: 5000c500a0000003, size: 8 GiB, attached: srv2/p0, scratch: true}
"""


def described(text: str, folder: Path) -> Lab:
    """The lab of a description, read as users' files are."""
    path = folder / "cabled.yaml"
    path.write_text(text, encoding="utf-8")
    return load_lab(path)


def seen(lab: Lab, drive_id: str, path: str, *, slot: int | None = None, device: str = "/dev/sda") -> SeenDrive:
    """The drive as a server sees it at ``path``, directly or in a slot of an expander."""
    drive = lab.drives[drive_id]
    by_path = f"{path}-ata-1" if slot is None else f"{path}-sas-exp0x5000c500a00000ff-phy{slot}-lun-0"
    place = {"by_path": by_path} if slot is None else {"by_path": by_path, "slot": str(slot)}
    identifiers = {**drive.identifiers, **place}
    identity = DriveIdentity(drive.model, drive.serial, drive.firmware, drive.traits.protocol, drive.size, identifiers)
    return SeenDrive(device, identity, (by_path,))


@dataclass
class CabledRack:
    """The plugs of a described rack: server ports, drives and expanders by the socket each is in."""

    lab: Lab
    live: PortMap
    sockets: dict[int, str] = field(default_factory=dict)
    slots: dict[str, dict[int, str]] = field(default_factory=dict)

    @classmethod
    def of(cls, lab: Lab, live: PortMap | None = None) -> CabledRack:
        """The rack cabled as it is described."""
        sockets = {
            number: f"{name}.{port}"
            for name, server in lab.servers.items()
            for port, number in server.ports.items()
            if number is not None
        }
        sockets |= {drive.port: name for name, drive in lab.drives.items() if drive.port is not None}
        sockets |= {expander.port: name for name, expander in lab.expanders.items() if expander.port is not None}
        slots: dict[str, dict[int, str]] = {name: {} for name in lab.expanders}
        for name, drive in lab.drives.items():
            if drive.expander is not None and drive.slot is not None:
                slots[drive.expander][int(drive.slot)] = name
        return cls(lab, lab.baseline_map() if live is None else live, sockets, slots)

    def swap(self, one: int, other: int) -> None:
        """Put the plugs of two sockets into each other's."""
        self.sockets[one], self.sockets[other] = self.sockets[other], self.sockets[one]

    def reached(self) -> dict[str, str]:
        """The drive or expander at the other end of each server port's circuit, of those that have one."""
        ends: dict[str, str] = {}
        for pair in self.live:
            plugs = [self.sockets.get(socket, "") for socket in pair]
            ends |= {near: far for near, far in (plugs, plugs[::-1]) if "." in near and far and "." not in far}
        return ends

    def inventories(self) -> dict[str, HostInventory]:
        """What each server sees."""
        reached = self.reached()
        return {name: HostInventory(name, tuple(self._drives(name, reached))) for name in self.lab.servers}

    def _drives(self, server: str, reached: dict[str, str]) -> list[SeenDrive]:
        drives: list[SeenDrive] = []
        for port, path in self.lab.servers[server].paths.items():
            far = reached.get(f"{server}.{port}")
            if far in self.slots:
                drives += [seen(self.lab, name, path, slot=slot) for slot, name in self.slots[far].items()]
            elif far is not None:
                drives.append(seen(self.lab, far, path))
        return [replace(drive, device=f"/dev/sd{chr(ord('a') + index)}") for index, drive in enumerate(drives)]


def disagreements(lab: Lab, live: PortMap, inventories: Mapping[str, HostInventory]) -> list[Disagreement]:
    """What the check finds wrong; empty where the rack is as it is described."""
    return [found for port in check_ports(lab, live, inventories) for found in port.disagreements]
