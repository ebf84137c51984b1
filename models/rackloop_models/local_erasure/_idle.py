"""What a mounted store does while nobody asks it for anything: redundancy first, then all that is only in memory."""

from __future__ import annotations

from rackloop_models.local_erasure._file_system import FileSystem

IDLE_S = 0.5
"""How long nobody must have asked, by default: longer than the pauses of a program that copies files."""

_AT_ONCE_GROUPS = 4


class IdleWork:
    """Redundancy that is to follow synchronous writes, and the rest of what was written, once ``files`` are idle.

    Files are idle when none was asked for in ``idle_s``, by the clock they have.
    """

    def __init__(self, files: FileSystem, idle_s: float = IDLE_S) -> None:
        self._files = files
        self._idle_ns = round(idle_s * 1e9)

    def step(self) -> bool:
        """Do a little, where it is time to; whether there is more to be done at once.

        A few groups at a time: whoever comes meanwhile waits for no more than those. Raises as the store does.
        """
        files = self._files
        if not files.is_changed or files.clock.now_ns() - files.asked_ns < self._idle_ns:
            return False
        if files.store.protect(at_most_groups=_AT_ONCE_GROUPS):
            return True
        # What is written while it is flushed sets it again.
        files.is_changed = False
        files.store.flush()
        return False
