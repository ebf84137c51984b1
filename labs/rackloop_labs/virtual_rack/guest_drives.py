"""The drives that QEMU emulates: what a description may say of them, and what a guest's slot is told of one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rackloop.lab import Drive, Lab
from rackloop.lab.yaml import KeyPath

MODELS = {"nvme": "QEMU NVMe Ctrl", "sas": "QEMU QEMU HARDDISK", "sata": "QEMU HARDDISK"}
"""The model that every drive of QEMU reports, by protocol; of SAS, as tools print it, vendor and product."""

_PROFILES = {protocol: f"qemu-{protocol}" for protocol in MODELS}
_LONGEST_SERIAL = {"nvme": 20, "sas": 36, "sata": 20}
# What SATA and NVMe drives of QEMU report besides their serial.
_REPORTED = {"nvme": frozenset[str](), "sas": frozenset({"wwn"}), "sata": frozenset({"wwn"})}
_WWN_DIGITS = 16
_NO_PLATTERS, _RPM = 1, 7200
_NOT_MOVED = (
    "is sata, which QEMU cannot move while guests run: take qemu-sas, or, without a switch, fabric: {driver: static}"
)


@dataclass(frozen=True)
class PluggedDrive:
    """A drive as a slot is told of it."""

    name: str
    serial: str
    size: int
    sector_bytes: int
    protocol: str = "nvme"
    wwn: str | None = None
    is_rotational: bool = False

    @classmethod
    def of(cls, name: str, drive: Drive) -> PluggedDrive:
        """The drive as it is described."""
        traits = drive.traits
        return cls(
            name, drive.serial, drive.size, traits.sector_bytes, traits.protocol, drive.wwn, traits.is_rotational
        )

    def properties(self) -> dict[str, object]:
        """The properties of QEMU's device for it: its driver, its names, its sectors and its platters."""
        found: dict[str, object] = {"serial": self.serial, "logical_block_size": self.sector_bytes}
        if self.protocol == "nvme":
            return {"driver": "nvme", **found}
        found["rotation_rate"] = _RPM if self.is_rotational else _NO_PLATTERS
        if self.wwn is not None:
            found["wwn"] = int(self.wwn, 16)
        if self.protocol == "sata":
            return {"driver": "ide-hd", **found}
        if self.wwn is not None:
            # The name of its port is the next one, as on a drive that has two.
            found |= {"port_wwn": int(self.wwn, 16) + 1, "port_index": 1}
        return {"driver": "scsi-hd", **found}


def not_emulated(lab: Lab) -> Iterator[tuple[KeyPath, str]]:
    """The drives of a description that QEMU cannot be, each with its place in the file."""
    for name, drive in lab.drives.items():
        path, protocol = ("drives", name), drive.traits.protocol
        if protocol == "sata" and lab.has_switch:
            yield (*path, "profile"), _NOT_MOVED
        if drive.model != MODELS[protocol]:
            yield (
                (*path, "model"),
                f"is {drive.model}: QEMU's drives report {MODELS[protocol]}; write profile: {_PROFILES[protocol]}",
            )
        if len(drive.serial) > (longest := _LONGEST_SERIAL[protocol]):
            yield (*path, "serial"), f"is longer than the {longest} characters that QEMU's {protocol} drives take"
        if drive.wwn is not None and len(drive.wwn) != _WWN_DIGITS:
            yield (*path, "wwn"), f"has {len(drive.wwn)} digits: QEMU's drives take {_WWN_DIGITS}"
        if protocol == "sata" and drive.traits.sector_bytes != 512:
            yield (*path, "profile"), f"has sectors of {drive.traits.sector_bytes} B: QEMU's SATA drives take 512 B"
        for key in ("wwn", "eui64", "nguid", "by_path", "slot"):
            if getattr(drive, key) is not None and key not in _REPORTED[protocol]:
                yield (*path, key), f"QEMU's {protocol} drives report none; delete the key"
