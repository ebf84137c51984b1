"""The owner of an open store: a mark in its superblock that tells one opening from every other."""

from __future__ import annotations

import os
import platform
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_MACHINE_ID = Path("/etc/machine-id")
_NUMBERING = Path("/proc/self/ns/pid")
_STARTED_FIELD = 19  # of what follows the name in /proc/PID/stat: clock ticks from the start of the machine


@dataclass(frozen=True)
class Owner:
    """One opening of a store. ``token`` is its own; the rest is where to look whether it is still there."""

    token: str
    name: str
    host: str
    boot: str
    process: int
    started: int
    machine: str = ""
    numbering: str = ""

    @classmethod
    def here(cls, name: str) -> Self:
        """A new owner in this process."""
        process = os.getpid()
        began = started(process) or 0
        return cls(
            uuid.uuid4().hex, name, platform.node(), _text(_BOOT_ID), process, began, _text(_MACHINE_ID), _numbering()
        )

    @classmethod
    def parsed(cls, fields: dict[str, Any]) -> Self:
        """An owner as ``fields`` wrote it."""
        return cls(**fields)

    def fields(self) -> dict[str, Any]:
        """The fields that the superblock keeps."""
        return asdict(self)

    def is_gone(self) -> bool:
        """Whether it is certain that the owner is dead: it was on this host, and its process is not there any more.

        Containers can have the name of their host, or of each other, and yet number processes of their own.
        """
        if (self.host, self.machine) != (platform.node(), _text(_MACHINE_ID)):
            return False
        if self.boot != _text(_BOOT_ID):
            return True
        return self.numbering == _numbering() and started(self.process) != self.started

    def __str__(self) -> str:
        named = f"{self.name!r}, " if self.name else ""
        return f"{named}process {self.process} on {self.host}"


def started(process: int) -> int | None:
    """The start of a process of this host, None where there is none of that number."""
    try:
        text = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return None
    state, *rest = text.rpartition(")")[2].split()
    return None if state in "ZX" else int(rest[_STARTED_FIELD - 1])


def _text(path: Path) -> str:
    return path.read_text().strip() if path.exists() else ""


def _numbering() -> str:
    """In which namespace the numbers of this host's processes mean something."""
    return str(_NUMBERING.readlink()) if _NUMBERING.is_symlink() else ""
