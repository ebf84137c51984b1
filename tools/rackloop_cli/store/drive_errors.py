"""A drive's blocks with errors that name the drive, its port and what to do."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

from rackloop.abilities.blocks import BLOCK_BYTES, Blocks, IoFailed, PartwiseBlocks
from rackloop.clock import Clock
from rackloop.errors import DeadlineExceeded, LabError, NotConnected

# No retry of a drive takes so long: a later failure means that no drive was there to answer.
_HELD_NS = 20_000_000_000
_SILENT_NS = 3_000_000_000
_LOOK_S = 0.5


class DriveAtPort:
    """The ``blocks`` of the drive called ``name``; ``look`` tells the user how to find out its state.

    An error that says that sectors cannot be read stays one, unless the drive answers nothing but errors, or was not
    there to answer: these are LabError and NotConnected, which are no reason to decode anything. ``is_gone`` says
    whether the last request ended so.
    """

    def __init__(self, blocks: Blocks, clock: Clock, name: str, look: str) -> None:
        self._blocks = blocks
        self._clock = clock
        self._name = name
        self._look = look
        self._asked_ns: int | None = None
        self.is_gone = False

    @property
    def size_bytes(self) -> int:
        """The size in bytes."""
        return self._blocks.size_bytes

    def read(self, offset: int, length: int) -> bytes:
        """The bytes there."""
        with self._asking("read"):
            return self._blocks.read(offset, length)

    def write(self, offset: int, data: bytes) -> None:
        """Put bytes there."""
        with self._asking("write"):
            self._blocks.write(offset, data)

    def flush(self) -> None:
        """Return when what was written stays."""
        with self._asking("flush"):
            self._blocks.flush()

    @contextmanager
    def looked_after(self, tell: Callable[[str], None]) -> Iterator[None]:
        """Tell of a request that is not answered for long, for as long as the block runs; once until one is again."""
        is_over = Event()

        def look() -> None:
            is_told = False
            while not is_over.wait(_LOOK_S):
                asked_ns = self._asked_ns
                is_silent = asked_ns is not None and self._clock.now_ns() - asked_ns >= _SILENT_NS
                if is_silent and not is_told:
                    tell(f"{self._name} does not answer; {self._look}")
                is_told = is_silent or (is_told and self.is_gone)

        thread = Thread(target=look, name=f"looking after {self._name}", daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()

    @contextmanager
    def _asking(self, what: str, *, is_last_attempt: bool = True) -> Iterator[None]:
        self._asked_ns = began_ns = self._clock.now_ns()
        try:
            yield
            self.is_gone = False
        except IoFailed as failure:
            self._require_answered(what, began_ns)
            why = os.strerror(failure.errno)
            self.is_gone = is_last_attempt and failure.is_unreadable and self._answers_nothing()
            if self.is_gone:
                raise LabError(
                    f"{self._name} answers nothing but errors ({why}): it has failed. {self._look}; unless it comes "
                    "back, what it held has to be restored from another copy"
                ) from failure
            advice = "; copy what it holds elsewhere" if what == "write" and failure.is_unreadable else ""
            raise IoFailed(f"{self._name}: {what} failed: {why}{advice}", failure.errno) from failure
        except DeadlineExceeded as error:
            self.is_gone = True
            raise NotConnected(f"{self._name} did not answer a {what}; {self._look}") from error
        except NotConnected as error:
            self.is_gone = True
            raise NotConnected(f"{self._name} is out of reach; {self._look}") from error
        finally:
            self._asked_ns = None

    def _require_answered(self, what: str, since_ns: int) -> None:
        """Raise NotConnected where what failed was held for want of a drive, and given up in the end."""
        if (waited_ns := self._clock.now_ns() - since_ns) >= _HELD_NS:
            self.is_gone = True
            raise NotConnected(f"{self._name} did not answer a {what} in {waited_ns / 1e9:.0f} s; {self._look}")

    def _answers_nothing(self) -> bool:
        """True where sectors at the start, middle and end cannot be read."""
        blocks = self.size_bytes // BLOCK_BYTES
        for block in (0, blocks // 2, blocks - 1):
            try:
                self._blocks.read(block * BLOCK_BYTES, BLOCK_BYTES)
            except IoFailed as failure:
                if not failure.is_unreadable:
                    return False
            else:
                return False
        return True


class FailFastDriveAtPort(DriveAtPort):
    """A drive at a port whose reads can be told to fail fast."""

    def __init__(self, blocks: PartwiseBlocks, clock: Clock, name: str, look: str) -> None:
        super().__init__(blocks, clock, name, look)
        self._quick = blocks

    def read_failing_fast(self, offset: int, length: int) -> bytes:
        """The bytes there, read at the first attempt."""
        with self._asking("read", is_last_attempt=False):
            return self._quick.read_failing_fast(offset, length)

    def read_parts_failing_fast(self, offset: int, buffer: bytearray | memoryview, part_bytes: int) -> list[int]:
        """The parts of which a sector failed at the first attempt; the others are in ``buffer``."""
        began_ns = self._clock.now_ns()
        with self._asking("read", is_last_attempt=False):
            failed = self._quick.read_parts_failing_fast(offset, buffer, part_bytes)
        if failed:
            self._require_answered("read", began_ns)
        return failed


def named(blocks: Blocks, clock: Clock, name: str, look: str) -> DriveAtPort:
    """``blocks`` under the name of their drive, which fail fast where they do."""
    if isinstance(blocks, PartwiseBlocks):
        return FailFastDriveAtPort(blocks, clock, name, look)
    return DriveAtPort(blocks, clock, name, look)
