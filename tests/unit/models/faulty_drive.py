"""Drives with unreadable sectors, and with a power cut after any write."""

from __future__ import annotations

import errno

from rackloop.abilities.blocks import BLOCK_BYTES, IoFailed
from rackloop.seed import Stream
from tests.memory_blocks import MemoryBlocks


class FaultyDrive:
    """A drive in memory. ``soft`` sectors fail until the drive may retry, ``hard`` ones always, until they are written.

    ``requests`` has the (kind, first sector, sectors) of all that was asked.
    """

    def __init__(self, size_bytes: int) -> None:
        self.memory = MemoryBlocks(size_bytes)
        self.soft: set[int] = set()
        self.hard: set[int] = set()
        self.requests: list[tuple[str, int, int]] = []
        self.errno = errno.EIO

    @property
    def size_bytes(self) -> int:
        return self.memory.size_bytes

    def read(self, offset: int, length: int) -> bytes:
        sectors = self._asked("retry", offset, length)
        self._refuse(self.hard, sectors)
        return self.memory.read(offset, length)

    def read_failing_fast(self, offset: int, length: int) -> bytes:
        sectors = self._asked("once", offset, length)
        self._refuse(self.hard | self.soft, sectors)
        return self.memory.read(offset, length)

    def write(self, offset: int, data: bytes) -> None:
        sectors = set(self._asked("write", offset, len(data)))
        self.soft -= sectors
        self.hard -= sectors
        self.memory.write(offset, data)

    def flush(self) -> None:
        self.requests.append(("flush", 0, 0))

    def asked(self, kind: str) -> list[int]:
        """The sectors that requests of a kind were for, in order."""
        return [first + row for found, first, count in self.requests if found == kind for row in range(count)]

    def corrupt(self, sector: int, bits: int = 0x55) -> None:
        """Change the bytes of a sector, as a drive does that says nothing of it."""
        for at in range(sector * BLOCK_BYTES, (sector + 1) * BLOCK_BYTES):
            self.memory.content[at] ^= bits

    def _asked(self, kind: str, offset: int, length: int) -> range:
        assert offset % BLOCK_BYTES == length % BLOCK_BYTES == 0 < length
        first, count = offset // BLOCK_BYTES, length // BLOCK_BYTES
        self.requests.append((kind, first, count))
        return range(first, first + count)

    def _refuse(self, failing: set[int], sectors: range) -> None:
        if failing and not failing.isdisjoint(sectors):
            raise IoFailed("a sector of the request cannot be read", self.errno)


class PartwiseDrive(FaultyDrive):
    """One that also says which parts of a range fail, and leaves rubbish in the place of these."""

    def read_parts_failing_fast(self, offset: int, buffer: bytearray | memoryview, part_bytes: int) -> list[int]:
        view = memoryview(buffer).cast("B")
        failed = []
        for number, at in enumerate(range(0, len(view), part_bytes)):
            length = min(part_bytes, len(view) - at)
            sectors = self._asked("part", offset + at, length)
            if (self.hard | self.soft).isdisjoint(sectors):
                view[at : at + length] = self.memory.read(offset + at, length)
            else:
                view[at : at + length] = b"\xee" * length
                failed.append(number)
        return failed


class PowerCut(Exception):
    """The drive has lost power."""


class VolatileDrive:
    """A drive that keeps what was flushed, and of what was written since any sectors, the newest or an older write.

    Power is cut at the request that ``cut_at`` names, counted from 0; writes and flushes count, or flushes alone where
    ``in_flushes``. Everything raises PowerCut afterwards.
    """

    def __init__(self, memory: MemoryBlocks, cut_at: int, *, in_flushes: bool = False) -> None:
        self._kept = memory
        self._now = MemoryBlocks(memory.size_bytes)
        self._now.content[:] = memory.content
        self._unflushed: list[tuple[int, bytes]] = []
        self._cut_at = cut_at
        self._in_flushes = in_flushes
        self.requests = 0
        self.is_off = False

    @property
    def size_bytes(self) -> int:
        return self._kept.size_bytes

    def read(self, offset: int, length: int) -> bytes:
        if self.is_off:
            raise PowerCut
        return self._now.read(offset, length)

    def write(self, offset: int, data: bytes) -> None:
        for at in range(0, len(data), BLOCK_BYTES):
            self._unflushed.append((offset + at, bytes(data[at : at + BLOCK_BYTES])))
        if not self._in_flushes:
            self._count()
        self._now.write(offset, data)

    def flush(self) -> None:
        self._count()
        for offset, content in self._unflushed:
            self._kept.write(offset, content)
        self._unflushed.clear()

    def after_cut(self, chance: Stream) -> MemoryBlocks:
        """What the drive carries when power is back: one of the states that it may have been left in."""
        left = MemoryBlocks(self.size_bytes)
        left.content[:] = self._kept.content
        share = chance.choice((0.0, 0.1, 0.5, 0.9, 1.0))
        written = [write for write in self._unflushed if chance.random() < share]
        chance.shuffle(written)
        for offset, content in written:
            left.write(offset, content)
        return left

    def _count(self) -> None:
        if self.is_off:
            raise PowerCut
        if self.requests == self._cut_at:
            self.is_off = True
            raise PowerCut
        self.requests += 1
