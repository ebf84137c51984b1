"""Who has a store open: a mark in its superblock that tells one opening from every other."""

from __future__ import annotations

import os
import platform
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
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

    @classmethod
    def here(cls, name: str) -> Self:
        """A new owner in this process."""
        process = os.getpid()
        return cls(uuid.uuid4().hex, name, platform.node(), _boot_id(), process, started(process) or 0)

    @classmethod
    def parsed(cls, fields: dict[str, Any]) -> Self:
        """An owner as ``fields`` wrote it."""
        return cls(**fields)

    def fields(self) -> dict[str, Any]:
        """What the superblock keeps."""
        return asdict(self)

    def is_gone(self) -> bool:
        """Whether it is certain that the owner is dead: it was on this host, and its process is not there any more."""
        if self.host != platform.node():
            return False
        return self.boot != _boot_id() or started(self.process) != self.started

    def __str__(self) -> str:
        named = f"{self.name!r}, " if self.name else ""
        return f"{named}process {self.process} on {self.host}"


def started(process: int) -> int | None:
    """When a process of this host began, None where there is none of that number."""
    try:
        text = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return None
    state, *rest = text.rpartition(")")[2].split()
    return None if state in "ZX" else int(rest[_STARTED_FIELD - 1])


def _boot_id() -> str:
    return _BOOT_ID.read_text().strip() if _BOOT_ID.exists() else ""
