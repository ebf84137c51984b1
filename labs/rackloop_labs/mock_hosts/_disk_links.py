"""``/dev/disk`` of a mock server: the links that udev makes to its drives, and files in the place of their nodes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rackloop_drivers.block import NbdExport
from rackloop_labs.mock_hosts._sysfs_drives import namespace_id
from rackloop_labs.mock_hosts._tree import Entry, Link
from rackloop_labs.mock_hosts._view import AttachedDrive, HostView


def disk_links(view: HostView) -> Mapping[str, Link]:
    """Links below ``/dev/disk`` by their path, ``by-id`` and ``by-path``, which lead to :func:`node_files`."""
    links = {}
    for drive in view.drives:
        for name in (f"by-path/{drive.by_path}", *(f"by-id/{name}" for name in _ids(drive))):
            links[name] = Link(f"../nodes/{drive.block_name}")
    return links


def node_files(view: HostView, nbd: Path) -> Mapping[str, Entry]:
    """Files below ``/dev/disk``, one for each drive, which stand for the nodes that a kernel would make.

    There is no block device behind them: they can be looked up and locked, which is what holding a drive takes, and
    rackprobe serves the export of rackd's that they name: that of the drive alone, at the socket ``nbd``.
    """
    return {f"nodes/{drive.block_name}": f"{_export(view.server, drive, nbd).uri}\n" for drive in view.drives}


def _export(server: str, drive: AttachedDrive, nbd: Path) -> NbdExport:
    port = NbdExport(nbd, f"{server}.{drive.port.name}", drive.size_bytes, knows_drives=True, serial=drive.serial)
    return port if drive.slot is None else port.in_slot(drive.slot)


def _ids(drive: AttachedDrive) -> list[str]:
    named = f"{drive.model}_{drive.serial}".replace(" ", "_")
    if drive.protocol == "nvme":
        return [f"nvme-{named}", f"nvme-{namespace_id(drive)}"]
    ids = [f"ata-{named}"] if drive.protocol == "sata" else [f"scsi-S{named}"]
    return ids if drive.wwn is None else [*ids, f"wwn-0x{drive.wwn}", f"scsi-3{drive.wwn}"]
