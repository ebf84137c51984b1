"""A queue of processes at a file: in the order of arrival, and left by ending.

Each has a number higher than those before, and the kernel's lock of the byte with that number: one of the open file
description, which ends with it (fcntl_locking(2)).
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from struct import Struct

from rackloop.clock import Clock, Deadline, RealClock
from rackloop.safety.store._engine import TURN_S, EngineFailed

_POLL_NS = 1_000_000
_LONGEST_POLL = 20
_DRAW_S = 30.0
_NUMBER = Struct("q")
# struct flock: type, whence, start, length, process.
_LOCK = Struct("hhqqi4x")
# Another process draws its number in real time, whatever the clock of a test says.
_REAL = RealClock()


class Place:
    """A place in the queue at ``path``, the last one there; closing it gives it up. Raises EngineFailed.

    A process that is seen at the head for :data:`TURN_S` is not waited for any longer.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self._clock = clock
        try:
            self._file = open(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+b", buffering=0)  # noqa: SIM115, PTH123 - closed by close()
        except OSError as error:
            raise EngineFailed(f"{path} cannot be opened: {error.strerror}") from error
        try:
            self._number = self._drawn()
        except OSError as error:
            self._file.close()
            raise EngineFailed(f"{path} cannot be queued at: {error.strerror}") from error
        self._head: int | None = None
        self._head_until = Deadline.after(clock, TURN_S)
        self._past = 0

    def wait(self, deadline: Deadline) -> bool:
        """Return True once no place before this one is waited for, False where the deadline is over first."""
        while (head := self._waited_for()) is not None:
            if deadline.is_over():
                return False
            # The more are before, the longer it takes until the last of them is gone.
            pause_ns = _POLL_NS * min(self._number - head, _LONGEST_POLL)
            self._clock.sleep_until_ns(min(deadline.at_ns, self._clock.now_ns() + pause_ns))
        return True

    def close(self) -> None:
        """Leave the queue."""
        self._file.close()

    def _waited_for(self) -> int | None:
        """The number at the head, None where there is none before this one."""
        while (head := self._first(self._past)) is not None:
            if head != self._head:
                self._head, self._head_until = head, Deadline.after(self._clock, TURN_S)
            if not self._head_until.is_over():
                break
            self._past = head + 1
        return head

    def _first(self, number: int) -> int | None:
        """The lowest number from this one on that a place before this one has."""
        first, below = None, self._number
        while number < below:
            asked = _LOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, number, below - number, 0)
            kind, _, start, _, _ = _LOCK.unpack(fcntl.fcntl(self._file, fcntl.F_OFD_GETLK, asked))
            if kind == fcntl.F_UNLCK:
                break
            first = below = start
        return first

    def _drawn(self) -> int:
        """A number higher than every one before, whose byte is locked before the next is drawn."""
        Deadline.after(_REAL, _DRAW_S).retry(
            lambda: fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB), BlockingIOError, every_s=_POLL_NS / 1e9
        )
        try:
            last = os.pread(self._file.fileno(), _NUMBER.size, 0)
            number = _NUMBER.unpack(last)[0] + 1 if len(last) == _NUMBER.size else 1
            fcntl.fcntl(self._file, fcntl.F_OFD_SETLK, _LOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, number, 1, 0))
            os.pwrite(self._file.fileno(), _NUMBER.pack(number), 0)
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)
        return number
