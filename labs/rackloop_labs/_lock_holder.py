"""The process that is a lab, as it says itself in the lab's lock file from the moment it has the lock."""

from __future__ import annotations

import json
import os

from rackloop.lab import LabState
from rackloop.safety.leases import Process


def say_holder(lock: int) -> None:
    """Write into the lock file, open as ``lock``, that this process holds it."""
    said = json.dumps(vars(Process.this())).encode()
    os.ftruncate(lock, 0)
    os.pwrite(lock, said, 0)


def holder_of(state: LabState) -> int | None:
    """The number of the process that holds the lab; None where none does, or it has not said so yet.

    What one that ended has left in the file is told apart by when the process began.
    """
    try:
        said = (state.directory / "labd.lock").read_bytes()
        process = Process(**json.loads(said))
    except (FileNotFoundError, ValueError, TypeError):
        return None
    return process.pid if process.is_living(private=True) and state.is_held() else None
