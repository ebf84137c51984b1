"""The users of a block device of this machine, by sysfs, configfs and procfs.

Sources: Linux ``Documentation/ABI/stable/sysfs-block``, ``drivers/nvme/target/configfs.c``,
``drivers/target/target_core_configfs.c``, ``drivers/block/loop.c``, ``proc(5)`` for mountinfo and swaps, and the
prefixes that LVM, multipath-tools, mdadm and cryptsetup give to device-mapper UUIDs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rackloop.abilities import BlockUsage
from rackloop.errors import LabError
from rackloop_drivers.host_tools import BOOT_MOUNTS

SECTOR_BYTES = 512
_DM_KINDS = {"LVM-": "LVM volume", "mpath-": "multipath map", "CRYPT-": "encrypted volume", "DMRAID-": "RAID volume"}
_OCTAL = re.compile(r"\\([0-7]{3})")
_ROOT = re.compile(r"(?:^|\s)root=(\S+)")
_PREFIXES = {"UUID": "by-uuid", "LABEL": "by-label", "PARTUUID": "by-partuuid", "PARTLABEL": "by-partlabel"}


@dataclass(frozen=True)
class BlockTopology:
    """The block devices of this machine. The roots are where sysfs, procfs and devtmpfs are mounted."""

    sysfs_root: Path = Path("/sys")
    proc_root: Path = Path("/proc")
    dev_root: Path = Path("/dev")

    def name_of(self, number: str) -> str:
        """The kernel's name of the block device ``major:minor``. Raises LabError where there is none."""
        link = self.sysfs_root / "dev" / "block" / number
        if not link.exists():
            raise LabError(f"the kernel knows no block device {number}; was it unplugged?")
        return link.resolve().name

    def size_bytes(self, number: str) -> int:
        """The size of a block device."""
        text = self._text(self._directory(number) / "size")
        if not text.isdigit():
            raise LabError(f"{self._directory(number) / 'size'} holds {text!r}, not a number of sectors")
        return int(text) * SECTOR_BYTES

    def identifiers(self, number: str) -> dict[str, str]:
        """The identifiers that the kernel read of the drive itself: ``serial``, and ``wwn``, ``eui64`` or ``nguid``."""
        directory = self._directory(number)
        found: dict[str, str] = {}
        serial = (
            self._text(directory / "device" / "serial")
            or self._unit_serial(directory)
            or self._text(directory / "serial")  # virtio
        )
        if serial:
            found["serial"] = serial
        wwid = self._text(directory / "wwid") or self._text(directory / "device" / "wwid")
        kind, _, value = wwid.partition(".")
        if kind == "naa":
            found["wwn"] = value
        elif kind == "eui":
            found["eui64" if len(value) == 16 else "nguid"] = value
        return found

    def partitions(self, number: str) -> list[tuple[str, int]]:
        """The names of its partitions, each with the byte at which it starts."""
        return [
            (part.name, int(self._text(part / "start")) * SECTOR_BYTES)
            for part in sorted(self._directory(number).iterdir())
            if (part / "partition").exists()
        ]

    def usage(self, number: str) -> BlockUsage:
        """The users of the device, of its partitions, and of anything that is built upon them."""
        directory = self._directory(number)
        above = dict(self._above(directory))
        claims = list(self._own_claims(directory))
        claims += [claim for claim in above.values() if claim]
        mounts = list(self._mounts(set(above)))
        claims += [f"{name} is mounted at {where}" for name, where in mounts]
        claims += [f"{name} is swap" for name in self._swaps() if name in above]
        claims += [f"{name} belongs to a Btrfs file system" for name in above if self._is_btrfs(name)]
        claims += [claim for name, claim in self._exports() if name in above]
        is_boot = any(where in BOOT_MOUNTS for _, where in mounts) or self._root_name() in above
        return BlockUsage(tuple(dict.fromkeys(claims)), is_boot)

    def loop_claims(self, path: Path) -> tuple[str, ...]:
        """The loop devices that a regular file backs."""
        return tuple(f"backs {loop.name}" for loop, backing in self._loops() if backing == str(path))

    def _directory(self, number: str) -> Path:
        self.name_of(number)
        return (self.sysfs_root / "dev" / "block" / number).resolve()

    def _own_claims(self, directory: Path) -> Iterator[str]:
        if (directory / "partition").exists():
            yield f"it is a partition of {directory.parent.name}; give the whole drive"
        kind = self._kind(directory)
        if kind:
            yield f"it is itself a {kind}; give the drive beneath"
        if self._text(directory / "ro") == "1":
            yield "it is read-only"

    def _above(self, directory: Path) -> Iterator[tuple[str, str]]:
        """The device and all that stands on it, by name, each holder with a sentence part."""
        yield directory.name, ""
        for part in sorted(directory.iterdir()):
            if (part / "partition").exists():
                yield from self._above(part)
        holders = directory / "holders"
        for link in sorted(holders.iterdir()) if holders.is_dir() else ():
            holder = link.resolve()
            yield holder.name, f"{directory.name} is held by {self._kind(holder) or 'the device'} {self._label(holder)}"
            yield from ((name, claim) for name, claim in self._above(holder) if name != holder.name)
        # The kernel opens what a loop device stands on without a claim, and names no holder.
        for loop, backing in self._loops():
            if self._node_name(backing.removesuffix(" (deleted)")) != directory.name:
                continue
            yield loop.name, f"{directory.name} backs {loop.name}; detach it with `losetup --detach /dev/{loop.name}`"
            yield from ((name, claim) for name, claim in self._above(loop) if name != loop.name)

    def _loops(self) -> Iterator[tuple[Path, str]]:
        """The loop devices, each with the path of the file or node that it stands on."""
        for file in sorted(self.sysfs_root.glob("block/loop*/loop/backing_file")):
            yield file.parent.parent.resolve(), self._text(file)

    def _kind(self, directory: Path) -> str:
        if (directory / "md").is_dir():
            return "md array"
        uuid = self._text(directory / "dm" / "uuid")
        for prefix, kind in _DM_KINDS.items():
            if uuid.startswith(prefix):
                return kind
        return "device-mapper volume" if (directory / "dm").is_dir() else ""

    def _label(self, directory: Path) -> str:
        name = self._text(directory / "dm" / "name")
        return f"{directory.name} ({name})" if name else directory.name

    def _mounts(self, names: set[str]) -> Iterator[tuple[str, str]]:
        """The mounts of ``names``, in this mount namespace or in that of the first process."""
        seen: set[tuple[str, str]] = set()
        tables = (
            self._required_text(self.proc_root / "self" / "mountinfo"),
            self._text(self.proc_root / "1" / "mountinfo"),
        )
        for table in tables:
            for line in table.splitlines():
                fields = line.split(" ")
                source = fields[fields.index("-") + 2]
                for name in (self._mounted_name(fields[2]), self._node_name(_unescaped(source))):
                    mount = (name, _unescaped(fields[4]))
                    if name in names and mount not in seen:
                        seen.add(mount)
                        yield mount

    def _mounted_name(self, number: str) -> str:
        link = self.sysfs_root / "dev" / "block" / number
        return link.resolve().name if link.exists() else ""

    def _node_name(self, source: str) -> str:
        """The kernel's name of a device node; device-mapper and by-id nodes are links to it."""
        if not source.startswith("/dev/"):
            return ""
        return (self.dev_root / source.removeprefix("/dev/")).resolve().name

    def _swaps(self) -> list[str]:
        lines = self._text(self.proc_root / "swaps").splitlines()[1:]
        return [self._node_name(_unescaped(line.split()[0])) for line in lines if line.split()]

    def _is_btrfs(self, name: str) -> bool:
        return any(self.sysfs_root.glob(f"fs/btrfs/*/devices/{name}"))

    def _exports(self) -> Iterator[tuple[str, str]]:
        """The offers of NVMe over Fabrics and LIO, which name no holder: the kernel's name, and a sentence part."""
        for enable in sorted(self.sysfs_root.glob("kernel/config/nvmet/subsystems/*/namespaces/*/enable")):
            if self._text(enable) == "1":
                name = self._node_name(self._text(enable.with_name("device_path")))
                number, nqn = enable.parent.name, enable.parents[2].name
                yield name, f"{name} is namespace {number} of {nqn}, for NVMe over Fabrics"
        for enable in sorted(self.sysfs_root.glob("kernel/config/target/core/*/*/enable")):
            if self._text(enable) == "1":
                name = self._node_name(self._text(enable.with_name("udev_path")))
                backstore = f"{enable.parents[1].name}/{enable.parent.name}"
                yield name, f"{name} is the backstore {backstore} of LIO, for SCSI initiators"

    def _root_name(self) -> str:
        """The device the kernel was told to boot from, even where its mount is out of sight."""
        found = _ROOT.search(self._text(self.proc_root / "cmdline"))
        if found is None:
            return ""
        kind, _, value = found[1].partition("=")
        if kind in _PREFIXES:
            return (self.dev_root / "disk" / _PREFIXES[kind] / value).resolve().name
        return self._node_name(found[1])

    def _unit_serial(self, directory: Path) -> str:
        """The unit serial number page of a SCSI device (SPC, page 80h): its length in bytes 2 and 3, then the text."""
        try:
            page = (directory / "device" / "vpd_pg80").read_bytes()
        except OSError:
            return ""
        return page[4 : 4 + int.from_bytes(page[2:4], "big")].decode("ascii", "replace").strip("\0 ")

    @staticmethod
    def _required_text(path: Path) -> str:
        try:
            return path.read_text(encoding="utf-8", errors="surrogateescape")
        except OSError as error:
            raise LabError(f"cannot read {path}: {error.strerror}; what is mounted is unknown") from error

    @staticmethod
    def _text(path: Path) -> str:
        """The content of a file of sysfs or procfs; empty where this device, or this kernel, has none."""
        try:
            return path.read_text(encoding="utf-8", errors="surrogateescape").strip()
        except OSError:
            return ""


def _unescaped(text: str) -> str:
    return _OCTAL.sub(lambda found: chr(int(found[1], 8)), text)
