"""Which start of this machine it is."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from rackloop.errors import LabError

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@cache
def boot_id() -> str:
    """The kernel's own name for the time since it started. Raises LabError where there is no /proc."""
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError as error:
        raise LabError(f"cannot read {_BOOT_ID}: {error.strerror}; the undo journal needs Linux's /proc") from error
