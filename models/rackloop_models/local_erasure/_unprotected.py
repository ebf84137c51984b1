"""The record of groups whose redundancy may not be that of their data, kept on the drive before either changes."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from rackloop_models.local_erasure._drive import Drive
from rackloop_models.local_erasure._layout import RECORDED_STARTS, Geometry
from rackloop_models.local_erasure._replicas import ReplicatedArea, Sealed

_COUNT = struct.Struct("<Q")


class UnprotectedRecord:
    """First sectors of unprotected groups. What is recorded was on the drive when ``require`` returned.

    ``next_generation`` gives rising numbers that no earlier opening of the store has used.
    """

    def __init__(self, drive: Drive, geometry: Geometry, store_id: bytes) -> None:
        replicas = geometry.layout.replicas
        self.area = ReplicatedArea(drive, b"UNPR", geometry.records_at, geometry.records, replicas, store_id)
        self._drive = drive
        self._sectors: list[set[int]] = [set() for _ in range(geometry.records)]
        self._in: dict[int, int] = {}
        self._released: set[int] = set()
        self._unflushed: set[int] = set()
        self._failed: set[int] = set()

    @property
    def most(self) -> int:
        """The number of groups there is room for."""
        return RECORDED_STARTS * len(self._sectors)

    @property
    def used(self) -> int:
        """The number of groups that are recorded and not released."""
        return len(self._in) - len(self._released)

    def format(self) -> None:
        """Write that there are none."""
        self.area.write(dict.fromkeys(range(self.area.count), Sealed(0, _COUNT.pack(0))))

    def load(self) -> set[int]:
        """Read the drive's record, which is kept from now on."""
        for number, sealed in enumerate(self.area.read_all()):
            (count,) = _COUNT.unpack_from(sealed.payload)
            starts = struct.unpack_from(f"<{count}Q", sealed.payload, _COUNT.size)
            self._sectors[number] = set(starts)
            self._in |= dict.fromkeys(starts, number)
        return set(self._in)

    def missing(self, starts: Iterable[int]) -> list[int]:
        """Those of ``starts`` that are not recorded."""
        return sorted(
            {
                start
                for start in starts
                if start not in self._in or start in self._released or self._in[start] in self._unflushed
            }
        )

    def require(self, starts: Iterable[int], generation: int) -> bool:
        """Record groups; False where all were recorded already, and nothing has to be flushed.

        Raises ValueError where there is no room: have some groups protected, and released, first.
        """
        new = set(starts)
        # What was released and is still on the drive need not be written again, but what a request failed for must.
        self._released -= new
        changed = {self._in[start] for start in new & self._in.keys()} & self._unflushed
        new -= self._in.keys()
        if not new and not changed:
            return False
        for number, recorded in enumerate(self._sectors):
            if not new:
                break
            kept = recorded - self._released
            take = sorted(new)[: RECORDED_STARTS - len(kept)]
            if take:
                self._sectors[number] = kept | set(take)
                for start in recorded - kept:
                    del self._in[start]
                self._released -= recorded - kept
                self._in |= dict.fromkeys(take, number)
                new -= set(take)
                changed.add(number)
        self._write(changed, generation)
        if new:
            raise ValueError(f"{len(new)} groups more than the {self.most} that there is room for")
        return True

    def release(self, starts: Iterable[int]) -> None:
        """Groups whose redundancy is up to date on the drive, or that are gone. The drive hears of it later."""
        self._released |= set(starts) & self._in.keys()

    def settle(self, generation: int) -> bool:
        """Write that what was released is not recorded any more; False where there is nothing to write."""
        changed = {self._in.pop(start) for start in self._released}
        for number in changed:
            self._sectors[number] -= self._released
        self._released.clear()
        self._write(changed, generation)
        return bool(changed)

    def write_again(self, generation: int) -> None:
        """Write all of it, as when the drive does not know it any more."""
        self._write(set(range(len(self._sectors))), generation)

    def flushed(self) -> None:
        """The drive was flushed: what was written of the record stays."""
        self._unflushed &= self._failed

    def _write(self, numbers: set[int], generation: int) -> None:
        self._unflushed |= numbers
        self._failed |= numbers
        contents = {}
        for number in numbers:
            starts = sorted(self._sectors[number])
            payload = _COUNT.pack(len(starts)) + struct.pack(f"<{len(starts)}Q", *starts)
            contents[number] = Sealed(generation, payload)
        self.area.write(contents)
        self._failed -= numbers
