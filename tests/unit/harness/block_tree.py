"""Folders laid out like sysfs, procfs and /dev of Linux 6.1."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rackloop_drivers.block import BlockTopology

ROOT_MOUNT = "22 1 254:1 / / rw,relatime - ext4 /dev/vda1 rw,discard"
PROC_MOUNT = "23 22 0:21 / /proc rw,relatime shared:5 - proc proc rw"


class BlockTree:
    """Grows devices; a device's directory lies below ``devices``, everything else links to it."""

    def __init__(self, root: Path) -> None:
        self.topology = BlockTopology(root / "sys", root / "proc", root / "dev")
        self._numbers: dict[str, str] = {}
        self._where: dict[str, Path] = {}
        for folder in ("sys/dev/block", "sys/block", "proc/self", "proc/1", "dev/disk/by-uuid", "dev/mapper"):
            (root / folder).mkdir(parents=True)
        self._root = root
        self.mounts(ROOT_MOUNT, PROC_MOUNT)
        self.write("proc/swaps", "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n")
        self.write("proc/cmdline", "quiet root=/dev/vda1 ro")
        self.disk("vda", "254:0", size=4096)
        self.partition("vda", "vda1", "254:1", start=2048)

    def write(self, path: str, text: str) -> None:
        file = self._root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def disk(
        self, name: str, number: str, attributes: Mapping[str, str] | None = None, *, size: int = 16777216
    ) -> None:
        """A whole device of ``size`` sectors; attributes are files by their paths below its directory."""
        self._grow(self._root / "sys" / "devices" / "block" / name, name, number, size, attributes or {})
        (self._root / "sys" / "block" / name).symlink_to(self._where[name])

    def partition(self, disk: str, name: str, number: str, *, start: int) -> None:
        self._grow(self._where[disk] / name, name, number, 2048, {"partition": "1", "start": str(start)})

    def held(self, name: str, by: str) -> None:
        """``by`` stands on ``name``."""
        (self._where[name] / "holders" / by).symlink_to(self._where[by])

    def mounts(self, *lines: str, process: str = "self") -> None:
        self.write(f"proc/{process}/mountinfo", "".join(line + "\n" for line in lines))

    def link(self, path: str, name: str) -> None:
        """A second name of a node under /dev."""
        (self._root / "dev" / path).symlink_to(self._root / "dev" / name)

    def _grow(self, directory: Path, name: str, number: str, size: int, attributes: Mapping[str, str]) -> None:
        (directory / "holders").mkdir(parents=True)
        self._where[name] = directory
        for attribute, text in {"size": str(size), "ro": "0", **attributes}.items():
            file = directory / attribute
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text + "\n")
        (self._root / "sys" / "dev" / "block" / number).symlink_to(directory)
        (self._root / "dev" / name).touch()
