"""``/dev/disk`` of a mock server: the links that udev makes to its drives."""

from __future__ import annotations

from collections.abc import Mapping

from rackloop_labs.mock_hosts._sysfs_drives import namespace_id
from rackloop_labs.mock_hosts._tree import Link
from rackloop_labs.mock_hosts._view import AttachedDrive, HostView


def disk_links(view: HostView) -> Mapping[str, Link]:
    """Links below ``/dev/disk`` by their path, ``by-id`` and ``by-path``. There are no nodes that they lead to."""
    links = {}
    for drive in view.drives:
        for name in (f"by-path/{drive.by_path}", *(f"by-id/{name}" for name in _ids(drive))):
            links[name] = Link(f"../../{drive.block_name}")
    return links


def _ids(drive: AttachedDrive) -> list[str]:
    named = f"{drive.model}_{drive.serial}".replace(" ", "_")
    if drive.protocol == "nvme":
        return [f"nvme-{named}", f"nvme-{namespace_id(drive)}"]
    ids = [f"ata-{named}"] if drive.protocol == "sata" else [f"scsi-S{named}"]
    return ids if drive.wwn is None else [*ids, f"wwn-0x{drive.wwn}", f"scsi-3{drive.wwn}"]
