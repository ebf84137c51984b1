"""Bytes that are read and written in whole blocks, on which stores lie, such as those of a file.

Systems under test that the harness plays itself are built on these. Sessions with drives are such blocks too
(``rackloop_drivers.block``).
"""

from __future__ import annotations

import errno
from typing import Protocol, runtime_checkable

from rackloop.errors import LabError

BLOCK_BYTES = 4096
# What a drive, an array or a file system says of sectors that cannot be read; any other error is not about the data.
UNREADABLE_ERRNOS = frozenset({errno.EIO, errno.EREMOTEIO, errno.ENODATA, errno.EILSEQ})


class IoFailed(LabError):
    """A request came back with an error. ``errno`` is what the other side, or the kernel, gave for it."""

    def __init__(self, message: str, errno: int) -> None:
        self.errno = errno
        super().__init__(message)

    @property
    def is_unreadable(self) -> bool:
        """Whether it says that sectors cannot be read, and nothing of the way to them."""
        return self.errno in UNREADABLE_ERRNOS


class Blocks(Protocol):
    """A drive, or a part of one. Reads and writes are whole or raise; ``flush`` returns when what was written stays.

    Offsets and lengths are multiples of :data:`BLOCK_BYTES`. What is written may be any contiguous buffer of bytes, a
    memoryview for instance, and belongs to the caller again when ``write`` returns.
    """

    @property
    def size_bytes(self) -> int: ...
    def read(self, offset: int, length: int) -> bytes: ...
    def write(self, offset: int, data: bytes) -> None: ...
    def flush(self) -> None: ...


@runtime_checkable
class FailFastBlocks(Blocks, Protocol):
    """Blocks that can be told, read by read, not to try again what cannot be read at the first attempt.

    ``read`` lets the drive retry. ``read_failing_fast`` raises IoFailed (EIO) at once when any sector of the range
    fails its first attempt; which one is not said.
    """

    def read_failing_fast(self, offset: int, length: int) -> bytes: ...


@runtime_checkable
class PartwiseBlocks(FailFastBlocks, Protocol):
    """Fail-fast blocks that can say which parts of a range fail, and give the others.

    ``read_parts_failing_fast`` fills ``buffer`` from ``offset`` on in parts of ``part_bytes``, many of them in flight
    together, and returns the numbers of those of which a sector failed at the first attempt, in order; what ``buffer``
    holds of these means nothing. Another error raises.
    """

    def read_parts_failing_fast(self, offset: int, buffer: bytearray | memoryview, part_bytes: int) -> list[int]: ...


class Part:
    """A stretch of other blocks, from ``offset`` on, as if it were a drive of its own."""

    def __init__(self, blocks: Blocks, offset: int, size_bytes: int) -> None:
        require_inside(offset, size_bytes, blocks.size_bytes)
        self._blocks = blocks
        self.offset = offset
        self.size_bytes = size_bytes

    def read(self, offset: int, length: int) -> bytes:
        """The bytes there. Raises ValueError beyond the end, and as the blocks beneath do."""
        require_inside(offset, length, self.size_bytes)
        return self._blocks.read(self.offset + offset, length)

    def write(self, offset: int, data: bytes) -> None:
        """Put bytes there. Raises ValueError beyond the end, and as the blocks beneath do."""
        require_inside(offset, len(data), self.size_bytes)
        self._blocks.write(self.offset + offset, data)

    def flush(self) -> None:
        """Flush the blocks beneath."""
        self._blocks.flush()


class FailFastPart(Part):
    """A stretch of blocks that can fail fast, which can do so too."""

    def __init__(self, blocks: FailFastBlocks, offset: int, size_bytes: int) -> None:
        super().__init__(blocks, offset, size_bytes)
        self._quick = blocks

    def read_failing_fast(self, offset: int, length: int) -> bytes:
        """The bytes there, without retries. Raises ValueError beyond the end, and as the blocks beneath do."""
        require_inside(offset, length, self.size_bytes)
        return self._quick.read_failing_fast(self.offset + offset, length)


class PartwisePart(FailFastPart):
    """A stretch of blocks that say which parts of a range fail, which does so too."""

    def __init__(self, blocks: PartwiseBlocks, offset: int, size_bytes: int) -> None:
        super().__init__(blocks, offset, size_bytes)
        self._partwise = blocks

    def read_parts_failing_fast(self, offset: int, buffer: bytearray | memoryview, part_bytes: int) -> list[int]:
        """The parts that fail. Raises ValueError beyond the end, and as the blocks beneath do."""
        require_inside(offset, memoryview(buffer).nbytes, self.size_bytes)
        return self._partwise.read_parts_failing_fast(self.offset + offset, buffer, part_bytes)


def part_of(blocks: Blocks, offset: int, size_bytes: int) -> Part:
    """A stretch of ``blocks``, which fails fast where they can. Raises ValueError where it is not within them."""
    if isinstance(blocks, PartwiseBlocks):
        return PartwisePart(blocks, offset, size_bytes)
    if isinstance(blocks, FailFastBlocks):
        return FailFastPart(blocks, offset, size_bytes)
    return Part(blocks, offset, size_bytes)


def require_inside(offset: int, length: int, size_bytes: int) -> None:
    """Return where bytes are within the ``size_bytes`` there are. Raises ValueError where not."""
    if offset < 0 or length < 0 or offset + length > size_bytes:
        raise ValueError(f"bytes {offset} to {offset + length} are not within the {size_bytes} there are")
