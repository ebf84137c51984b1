"""A drive behind a device node of this machine."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Mapping
from pathlib import Path

from rackloop.abilities import BlockUsage, DriveIdentity
from rackloop.errors import LabError, UnfitDrive
from rackloop_drivers.block.device_path._topology import BlockTopology
from rackloop_drivers.block.device_path._zfs import zfs_label_at


class DevicePath:
    """A BlockDevice that is a whole drive's node under /dev, or a regular file in its place.

    A node is looked up by its device number, so any of its names will do. Raises LabError where it cannot be opened.
    """

    def __init__(self, path: Path, topology: BlockTopology | None = None) -> None:
        self.path = path
        self._topology = topology or BlockTopology()

    @property
    def location(self) -> str:
        """The path as given."""
        return str(self.path)

    @property
    def size_bytes(self) -> int:
        """The size of the drive."""
        status = self._stat()
        number = _device_number(status)
        return status.st_size if number is None else self._topology.size_bytes(number)

    def drive_bytes(self) -> int:
        """The size of the drive, which is that of its node."""
        return self.size_bytes

    def identifiers(self) -> Mapping[str, str]:
        """The identifiers that the kernel read of the drive behind the node; none of a regular file."""
        number = _device_number(self._stat())
        return {} if number is None else self._topology.identifiers(number)

    def fio_options(self) -> dict[str, str]:
        """Options for fio's libaio engine, beside the page cache; fio takes a bare colon for a list of files."""
        return {"ioengine": "libaio", "direct": "1", "filename": str(self.path).replace(":", "\\:")}

    def probe_target(self) -> str:
        """The path."""
        return str(self.path)

    def usage(self) -> BlockUsage:
        """The other users of the drive: mounts, swap, holders and ZFS labels, on it and on its partitions."""
        number = _device_number(self._stat())
        if number is None:
            return BlockUsage(self._topology.loop_claims(self.path.resolve()))
        usage = self._topology.usage(number)
        starts = [(self._topology.name_of(number), 0), *self._topology.partitions(number)]
        return BlockUsage((*usage.claims, *self._zfs_claims(starts)), usage.is_boot_drive)

    def bound_to(self, _identity: DriveIdentity) -> DevicePath:
        """The path itself: its claim is an open descriptor, which every use is compared with."""
        return self

    def claim_exclusive(self) -> PathClaim:
        """Open the node O_EXCL, which the kernel refuses while a mount, a swap or a holder has it.

        A regular file has no such claim; it is locked (flock) instead.
        """
        try:
            is_file = stat.S_ISREG(self._stat().st_mode)
            # Reading is enough to claim it, and closing what was not open for writing sends udev no event.
            fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | (0 if is_file else os.O_EXCL))
        except OSError as error:
            raise LabError(f"{self.path} cannot be claimed: {error.strerror}; who holds it?") from error
        try:
            if is_file:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(fd)
            raise LabError(f"{self.path} cannot be claimed: another process holds its lock") from error
        return PathClaim(self.path, fd)

    def _zfs_claims(self, starts: list[tuple[str, int]]) -> tuple[str, ...]:
        try:
            with self.path.open("rb", buffering=0) as node:
                return tuple(
                    f"{name} carries a ZFS label; clear it with `zpool labelclear` if the pool is gone"
                    for name, start in starts
                    if zfs_label_at(node.fileno(), start)
                )
        except OSError as error:
            return (f"it is unknown whether it carries a ZFS label: it cannot be read ({error.strerror})",)

    def _stat(self) -> os.stat_result:
        try:
            status = self.path.stat()
        except OSError as error:
            raise LabError(f"no drive at {self.path}: {error.strerror}; is it plugged in and mapped?") from error
        if not (stat.S_ISBLK(status.st_mode) or stat.S_ISREG(status.st_mode)):
            raise LabError(f"{self.path} is neither a block device nor a regular file")
        return status


class PathClaim:
    """A node or file that an open descriptor holds: see :class:`~rackloop.abilities.Claim`."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor
        self._claimed = _which(os.fstat(descriptor))

    def require(self, drive_id: str, descriptor: int | None = None) -> None:
        """See :class:`~rackloop.abilities.Claim`."""
        try:
            there = self._path.stat() if descriptor is None else os.fstat(descriptor)
        except OSError as error:
            raise LabError(f"no drive at {self._path} any more: {error.strerror}; was it taken out?") from error
        if _which(there) != self._claimed:
            raise UnfitDrive(drive_id, [f"{self._path} leads to another device than the one that was claimed"])

    def close(self) -> None:
        """Let others claim it; closing twice does nothing."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def _which(status: os.stat_result) -> tuple[int, ...]:
    """The mark of a device that no other has: a node's number, a file's place."""
    return (status.st_rdev,) if stat.S_ISBLK(status.st_mode) else (status.st_dev, status.st_ino)


def _device_number(status: os.stat_result) -> str | None:
    """``major:minor`` of a block device, None of a regular file."""
    if not stat.S_ISBLK(status.st_mode):
        return None
    return f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
