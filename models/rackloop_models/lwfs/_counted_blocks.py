"""The count of requests to a drive, such as those that taking it over costs."""

from __future__ import annotations

from rackloop.abilities.blocks import Blocks


class CountedBlocks:
    """Other blocks, and how many reads, writes and flushes they were asked for."""

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks
        self.size_bytes = blocks.size_bytes
        self.reads = 0
        self.writes = 0
        self.flushes = 0

    @property
    def ios(self) -> int:
        """Reads, writes and flushes together."""
        return self.reads + self.writes + self.flushes

    def read(self, offset: int, length: int) -> bytes:
        """Count and pass on."""
        self.reads += 1
        return self._blocks.read(offset, length)

    def write(self, offset: int, data: bytes) -> None:
        """Count and pass on."""
        self.writes += 1
        self._blocks.write(offset, data)

    def flush(self) -> None:
        """Count and pass on."""
        self.flushes += 1
        self._blocks.flush()
