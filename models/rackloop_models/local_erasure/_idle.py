"""The idle work of a mounted store: redundancy first, then everything that is only in memory."""

from __future__ import annotations

from rackloop_models.local_erasure._file_system import FileSystem

IDLE_S = 0.5
"""The default time without a request before idle work: longer than the pauses of a program that copies files."""

_AT_ONCE_GROUPS = 4
# Redundancy does not wait for longer than this for those who never stop asking.
_PATIENCE_NS = 10 * 10**9


class IdleWork:
    """Redundancy that is to follow synchronous writes, and the rest of what was written, once ``files`` are idle.

    Files are idle when none was asked for in ``idle_s``, by the clock they have. Where they are not in ten seconds, a
    little redundancy is done with each ``step`` all the same.
    """

    def __init__(self, files: FileSystem, idle_s: float = IDLE_S) -> None:
        self._files = files
        self._idle_ns = round(idle_s * 1e9)
        self._rested_ns = files.clock.now_ns()

    def step(self) -> bool:
        """Do a little, where it is time to; whether there is more to be done at once.

        A few groups at a time: a request that comes meanwhile waits for no more than those. Raises as the store does.
        """
        files, now_ns = self._files, self._files.clock.now_ns()
        is_idle = now_ns - files.asked_ns >= self._idle_ns
        if is_idle or not files.is_changed:
            self._rested_ns = now_ns
        elif now_ns - self._rested_ns >= _PATIENCE_NS:
            files.store.protect(at_most_groups=_AT_ONCE_GROUPS)
        if not is_idle or not files.is_changed:
            return False
        if files.store.protect(at_most_groups=_AT_ONCE_GROUPS):
            return True
        # What is written while it is flushed sets it again.
        files.is_changed = False
        try:
            files.store.flush()
        except BaseException:
            files.is_changed = True
            raise
        return False
