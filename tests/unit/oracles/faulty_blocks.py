"""Blocks with unreadable or corrupt ranges, and the eraser that makes them."""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence

from rackloop.abilities.blocks import Blocks, IoFailed
from rackloop.errors import NotSupported
from rackloop_oracles.recovery import Place
from tests.memory_blocks import MemoryBlocks

SECTOR = 4096


class FaultyBlocks:
    """Other blocks, with damage over them, sector by sector; writing a sector makes it well."""

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks
        self.erased: set[int] = set()
        self.corrupted: set[int] = set()
        self.is_dead = False

    @property
    def size_bytes(self) -> int:
        return self._blocks.size_bytes

    def read(self, offset: int, length: int) -> bytes:
        sectors = range(offset // SECTOR, -(-(offset + length) // SECTOR))
        if self.is_dead or not self.erased.isdisjoint(sectors):
            raise IoFailed(f"read of {length} bytes at {offset}: media error", errno.EIO)
        data = bytearray(self._blocks.read(offset, length))
        for sector in self.corrupted.intersection(sectors):
            at = max(sector * SECTOR, offset) - offset
            data[at + 100] ^= 0x40
        return bytes(data)

    def read_failing_fast(self, offset: int, length: int) -> bytes:
        return self.read(offset, length)

    def write(self, offset: int, data: bytes) -> None:
        if self.is_dead:
            raise IoFailed(f"write at {offset}: no answer", errno.EIO)
        written = range(offset // SECTOR, (offset + len(data)) // SECTOR)
        self.erased.difference_update(written)
        self.corrupted.difference_update(written)
        self._blocks.write(offset, data)

    def flush(self) -> None:
        self._blocks.flush()


class SectorEraser:
    """Damages sectors of drives, by name."""

    whole_drives = False

    def __init__(self, drives: Mapping[str, FaultyBlocks], *, corrupts: bool = True) -> None:
        self._drives = drives
        self._corrupts = corrupts
        self.erasures: list[frozenset[Place]] = []

    def erase(self, places: Sequence[Place]) -> None:
        self.erasures.append(frozenset(places))
        for place in places:
            self._drives[place.drive].erased.update(_sectors(place))

    def corrupt(self, places: Sequence[Place]) -> None:
        if not self._corrupts:
            raise NotSupported("these drives cannot be made to lie")
        for place in places:
            self._drives[place.drive].corrupted.update(_sectors(place))

    def mend(self) -> None:
        for drive in self._drives.values():
            drive.erased.clear()
            drive.corrupted.clear()


class DriveEraser(SectorEraser):
    """Takes whole drives away."""

    whole_drives = True

    def erase(self, places: Sequence[Place]) -> None:
        self.erasures.append(frozenset(places))
        for place in places:
            self._drives[place.drive].is_dead = True

    def corrupt(self, places: Sequence[Place]) -> None:
        super().corrupt(places)
        for place in places:
            drive = self._drives[place.drive]
            drive.corrupted.update(range(drive.size_bytes // SECTOR))

    def mend(self) -> None:
        super().mend()
        for drive in self._drives.values():
            drive.is_dead = False


def faulty_drives(count: int, size_bytes: int) -> dict[str, FaultyBlocks]:
    """Drives d0, d1 and so on, in memory, all well."""
    return {f"d{number}": FaultyBlocks(MemoryBlocks(size_bytes)) for number in range(count)}


def _sectors(place: Place) -> range:
    return range(place.offset // SECTOR, -(-(place.offset + place.length) // SECTOR))
