"""The columns of ``lsblk`` for a drive."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from rackloop_labs.mock_hosts._kernel_log import scsi_names
from rackloop_labs.mock_hosts._sysfs_drives import block_number, namespace_id, queue_attributes
from rackloop_labs.mock_hosts._view import AttachedDrive

Value: TypeAlias = str | int | bool | list[None] | None


@dataclass(frozen=True)
class Column:
    """A column: what it says, whether text is right-aligned, and whether a number is a size in bytes.

    One whose text is wider than its heading is at least ``at_least`` wide.
    """

    value: Callable[[AttachedDrive], Value]
    is_right: bool = False
    is_size: bool = False
    at_least: int = 0


def _nothing(_: AttachedDrive) -> Value:
    return None


def _queue(name: str) -> Callable[[AttachedDrive], Value]:
    return lambda drive: int(str(queue_attributes(drive)[name]))


def _flag(name: str) -> Callable[[AttachedDrive], Value]:
    return lambda drive: bool(queue_attributes(drive)[name])


def _scheduler(drive: AttachedDrive) -> Value:
    return str(queue_attributes(drive)["scheduler"]).partition("[")[2].partition("]")[0]


def _wwn(drive: AttachedDrive) -> Value:
    if drive.protocol == "nvme":
        return namespace_id(drive)
    return None if drive.wwn is None else f"0x{drive.wwn}"


def _vendor(drive: AttachedDrive) -> Value:
    return None if drive.protocol == "nvme" else f"{scsi_names(drive)[0]:<8.8}"


def _model(drive: AttachedDrive) -> Value:
    return drive.model if drive.protocol != "sas" else scsi_names(drive)[1]


def _number(value: Callable[[AttachedDrive], Value]) -> Column:
    return Column(value, is_right=True)


def _size(value: Callable[[AttachedDrive], Value]) -> Column:
    return Column(value, is_right=True, is_size=True)


def _text(value: str) -> Column:
    return Column(lambda _: value)


_NONE = Column(_nothing)
_NONE_RIGHT = Column(_nothing, is_right=True)
_MOUNTS = Column(lambda _: [None])
_FALSE = _number(lambda _: False)
_ZERO = _number(lambda _: 0)
_SIZE_ZERO = _size(lambda _: 0)

COLUMNS: Mapping[str, Column] = {
    "ALIGNMENT": _ZERO,
    "DISC-ALN": _ZERO,
    "DAX": _FALSE,
    "DISC-GRAN": _size(_queue("discard_granularity")),
    "DISC-MAX": _size(_queue("discard_max_bytes")),
    "DISC-ZERO": _FALSE,
    "FSAVAIL": _NONE_RIGHT,
    "FSROOTS": _MOUNTS,
    "FSSIZE": _NONE_RIGHT,
    "FSTYPE": _NONE,
    "FSUSED": _NONE_RIGHT,
    "FSUSE%": _NONE_RIGHT,
    "FSVER": _NONE,
    "GROUP": _text("disk"),
    "HCTL": Column(lambda drive: drive.hctl, at_least=10),
    "HOTPLUG": _FALSE,
    "KNAME": Column(lambda drive: drive.block_name),
    "LABEL": _NONE,
    "LOG-SEC": _number(_queue("logical_block_size")),
    "MAJ:MIN": Column(block_number),
    "MIN-IO": _number(_queue("minimum_io_size")),
    "MODE": _text("brw-rw----"),
    "MODEL": Column(_model),
    "NAME": Column(lambda drive: drive.block_name),
    "OPT-IO": _number(_queue("optimal_io_size")),
    "OWNER": _text("root"),
    "PARTFLAGS": _NONE,
    "PARTLABEL": _NONE,
    "PARTTYPE": _NONE,
    "PARTTYPENAME": _NONE,
    "PARTUUID": _NONE,
    "PATH": Column(lambda drive: f"/dev/{drive.block_name}"),
    "PHY-SEC": _number(_queue("physical_block_size")),
    "PKNAME": _NONE,
    "PTTYPE": _NONE,
    "PTUUID": _NONE,
    "RA": _number(_queue("read_ahead_kb")),
    "RAND": _number(_flag("add_random")),
    "REV": _number(lambda drive: None if drive.protocol == "nvme" else f"{drive.firmware:.4}"),
    "RM": _FALSE,
    "RO": _FALSE,
    "ROTA": _number(_flag("rotational")),
    "RQ-SIZE": _number(_queue("nr_requests")),
    "SCHED": Column(_scheduler),
    "SERIAL": Column(lambda drive: drive.serial),
    "SIZE": _size(lambda drive: drive.size_bytes),
    "START": _NONE_RIGHT,
    "STATE": Column(lambda drive: "live" if drive.protocol == "nvme" else "running"),
    "SUBSYSTEMS": Column(lambda drive: "block:nvme:pci" if drive.protocol == "nvme" else "block:scsi:pci"),
    "MOUNTPOINT": _NONE,
    "MOUNTPOINTS": _MOUNTS,
    "TRAN": Column(lambda drive: drive.transport),
    "TYPE": _text("disk"),
    "UUID": _NONE,
    "VENDOR": Column(_vendor),
    "WSAME": _SIZE_ZERO,
    "WWN": Column(_wwn, at_least=18),
    "ZONED": _text("none"),
    "ZONE-SZ": _SIZE_ZERO,
    "ZONE-WGRAN": _SIZE_ZERO,
    "ZONE-APP": _SIZE_ZERO,
    "ZONE-NR": _ZERO,
    "ZONE-OMAX": _ZERO,
    "ZONE-AMAX": _ZERO,
}
"""Every column of util-linux 2.38, in the order of ``lsblk -O``."""
