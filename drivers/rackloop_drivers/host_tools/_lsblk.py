"""What ``lsblk -J -O -b`` prints: which block devices there are, and who uses them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rackloop.abilities import BlockUsage
from rackloop_drivers.host_tools._fields import Fields

_BOOT_MOUNTS = frozenset({"/", "/boot", "/boot/efi", "/efi", "/usr"})
# Signatures of what takes a whole device for itself, whether it is assembled now or not.
_MEMBERS = {
    "LVM2_member": "an LVM physical volume",
    "crypto_LUKS": "an encrypted volume",
    "ddf_raid_member": "a RAID member",
    "isw_raid_member": "a RAID member",
    "linux_raid_member": "an md array's member",
    "mpath_member": "a path of a multipath map",
    "zfs_member": "a ZFS pool's member",
}


@dataclass(frozen=True)
class ListedDisk:
    """A whole disk by its kernel name: its size, whether it turns, and who uses it or anything on it."""

    size_bytes: int
    is_rotational: bool
    usage: BlockUsage


def parse_lsblk(raw: str, where: str) -> dict[str, ListedDisk]:
    """Every disk by its kernel name. Raises UnknownFormat where the JSON lacks what is needed."""
    fields = Fields("lsblk", where, raw)
    listed = fields.at("blockdevices")
    if not isinstance(listed, list):
        raise fields.unknown("JSON without blockdevices")
    disks: dict[str, ListedDisk] = {}
    for entry in listed:
        try:
            if entry["type"] == "disk":
                disks[str(entry["kname"])] = _disk(entry)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise fields.unknown(f"a block device in another form ({type(error).__name__}: {error})") from error
    return disks


def _disk(entry: Mapping[str, Any]) -> ListedDisk:
    parts = list(_with_children(entry))
    mounts = [(str(part["name"]), str(where)) for part in parts for where in part.get("mountpoints") or () if where]
    claims = [f"{name} is swap" if where == "[SWAP]" else f"{name} is mounted at {where}" for name, where in mounts]
    for part in parts:
        if (kind := part.get("fstype")) in _MEMBERS:
            claims.append(f"{part['name']} is {_MEMBERS[kind]}")
        if part["type"] not in {"disk", "part"}:
            claims.append(f"{part['name']} ({part['type']}) is built on it")
    is_boot_drive = any(where in _BOOT_MOUNTS for _, where in mounts)
    # With -b newer versions print a number, older ones its digits.
    usage = BlockUsage(tuple(dict.fromkeys(claims)), is_boot_drive)
    return ListedDisk(int(entry["size"]), _flag(entry["rota"]), usage)


def _with_children(entry: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield entry
    for child in entry.get("children") or ():
        yield from _with_children(child)


def _flag(value: object) -> bool:
    """Newer versions print true and false, older ones "1" and "0"."""
    return value in {True, "1", "true"}
