"""Blocks in memory, on which the systems under test of tests lie."""

from __future__ import annotations


class MemoryBlocks:
    """Blocks in memory, all zero at first. ``content`` may be looked at and damaged by tests."""

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self.content = bytearray(size_bytes)

    def read(self, offset: int, length: int) -> bytes:
        """The bytes there. Raises ValueError beyond the end."""
        self._require_inside(offset, length)
        return bytes(self.content[offset : offset + length])

    def write(self, offset: int, data: bytes) -> None:
        """Put bytes there. Raises ValueError beyond the end."""
        self._require_inside(offset, len(data))
        self.content[offset : offset + len(data)] = data

    def flush(self) -> None:
        """Nothing to do: memory keeps nothing back."""

    def _require_inside(self, offset: int, length: int) -> None:
        if offset < 0 or length < 0 or offset + length > self.size_bytes:
            raise ValueError(f"bytes {offset} to {offset + length} are not within the {self.size_bytes} there are")
