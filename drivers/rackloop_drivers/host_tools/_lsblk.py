"""Parser for ``lsblk -J -O -b``: the block devices of a server and their users."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rackloop.abilities import BlockUsage
from rackloop_drivers.host_tools._fields import Fields

BOOT_MOUNTS = frozenset({"/", "/boot", "/boot/efi", "/efi", "/usr"})
"""Mounts without which a machine does not come back: the drive that has one is never written."""

# Signatures of what takes a whole device for itself, whether it is assembled now or not. Of a bcachefs of several
# devices, and of the journal of a file system elsewhere, lsblk knows no mount; of a disk of ASM no holder.
_MEMBERS = {
    "DM_integrity": "a device of dm-integrity",
    "LVM1_member": "an LVM physical volume",
    "LVM2_member": "an LVM physical volume",
    "bcache": "a backing or cache device of bcache",
    "bcachefs": "a device of a bcachefs file system",
    "btrfs": "a device of a Btrfs file system",
    "ceph_bluestore": "a Ceph OSD's device",
    "crypto_LUKS": "an encrypted volume",
    "drbd": "a DRBD backing device",
    "ddf_raid_member": "a RAID member",
    "isw_raid_member": "a RAID member",
    "jbd": "the journal of an ext4 file system",
    "linux_raid_member": "an md array's member",
    "mpath_member": "a path of a multipath map",
    "oracleasm": "a disk of Oracle ASM",
    "stratis": "a device of a Stratis pool",
    "vdo": "a VDO volume's device",
    "xfs_external_log": "the log of an XFS file system",
    "zfs_member": "a ZFS pool's member",
}


@dataclass(frozen=True)
class ListedDisk:
    """A whole disk: its size, whether it turns, who uses it or anything on it, and its serial where udev knows that."""

    size_bytes: int
    is_rotational: bool
    usage: BlockUsage
    serial: str | None = None


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
    mounts = [(str(part["name"]), where) for part in parts for where in _mount_points(part)]
    claims = [f"{name} is swap" if where == "[SWAP]" else f"{name} is mounted at {where}" for name, where in mounts]
    for part in parts:
        if member := _membership(part.get("fstype") or ""):
            claims.append(f"{part['name']} is {member}")
        # bcache0 and drbd0 are disks to lsblk, whatever they stand on.
        if part is not entry and part["type"] != "part":
            claims.append(f"{part['name']} ({part['type']}) is built on it")
    is_boot_drive = any(where in BOOT_MOUNTS for _, where in mounts)
    # With -b newer versions print a number, older ones its digits.
    usage = BlockUsage(tuple(dict.fromkeys(claims)), is_boot_drive)
    serial = entry.get("serial")
    return ListedDisk(int(entry["size"]), _flag(entry["rota"]), usage, None if serial is None else str(serial))


def _mount_points(part: Mapping[str, Any]) -> list[str]:
    """Its mount points. Versions before 2.37 print one place of several, as ``mountpoint``."""
    places = part["mountpoints"] if "mountpoints" in part else [part["mountpoint"]]
    return [str(place) for place in places or () if place]


def _membership(signature: str) -> str:
    """The group that a signature makes the device a part of; empty where it is a part of nothing."""
    return _MEMBERS.get(signature) or (f"a member of something ({signature})" if signature.endswith("_member") else "")


def _with_children(entry: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield entry
    for child in entry.get("children") or ():
        yield from _with_children(child)


def _flag(value: object) -> bool:
    """Newer versions print true and false, older ones "1" and "0"."""
    return value in {True, "1", "true"}
