"""Rebuilding: what drives lack is computed from those that have it, the stripes with the fewest units left first."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from heapq import heapify, heappop

from rackloop.abilities.blocks import BLOCK_BYTES
from rackloop.clock import Clock
from rackloop_models.rack_erasure._drives import Drives
from rackloop_models.rack_erasure._errors import StripeLost
from rackloop_models.rack_erasure._stripes import Stripes
from rackloop_models.rack_erasure._throttle import Throttle

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class RebuildReport:
    """The result of a rebuild: units it wrote, bytes of units it read and wrote, and how long it took.

    ``left`` are the units that drives which can be reached still lack; ``lost`` are objects that cannot be read.
    """

    stripes: int
    units: int
    read_bytes: int
    written_bytes: int
    seconds: float
    left: int
    lost: tuple[int, ...]


class Rebuild:
    """One rebuild of what the drives with these ``numbers`` lack; what it has done is on the drives."""

    def __init__(self, stripes: Stripes, drives: Drives, numbers: Collection[int], clock: Clock) -> None:
        self._stripes = stripes
        self._drives = drives
        self._numbers = frozenset(numbers)
        self._clock = clock

    def lacking(self, number: int) -> set[int]:
        """The positions of a stripe that could be rebuilt now and are wanted."""
        units = self._stripes.layout.stripes[number]
        here = self._stripes.reachable(number) - self._stripes.known[number].holds
        return {at for at in here if units[at].drive in self._numbers}

    def run(self, throttle: Throttle | None, progress: Progress | None, at_most: int | None) -> RebuildReport:
        """Rebuild ``at_most`` stripes, or all."""
        began_ns, known = self._clock.now_ns(), self._stripes.known
        total = sum(len(self.lacking(number)) for number in range(len(known)))
        done = units = read = written = 0
        lost: set[int] = set()
        changes, queue = -1, list[tuple[int, int]]()
        while at_most is None or done < at_most:
            if changes != self._drives.changes:
                # A drive came or went: others have the fewest units left now.
                changes = self._drives.changes
                queue = [
                    (len(self._stripes.available(number)), number)
                    for number in range(len(known))
                    if number not in lost and self.lacking(number)
                ]
                heapify(queue)
            if not queue:
                break
            number = heappop(queue)[1]
            lacking = self.lacking(number)
            if not lacking:
                continue
            if throttle is not None:
                throttle.take(self._expected_bytes(number, len(lacking)))
            try:
                mended = self._stripes.mend(number, lacking)
            except StripeLost:
                lost.add(number)
                continue
            done += 1
            units, read, written = units + mended[0], read + mended[1], written + mended[2]
            if progress is not None:
                progress(min(units, total), total)
        left = sum(len(self.lacking(number)) for number in range(len(known)))
        seconds = (self._clock.now_ns() - began_ns) / 1e9
        return RebuildReport(done, units, read, written, seconds, left, tuple(sorted(lost)))

    def _expected_bytes(self, number: int, lacking: int) -> int:
        version = self._stripes.known[number].version
        if version is None:
            return BLOCK_BYTES
        code = self._stripes.code
        width = code.stored_bytes(code.k, version.length)
        return len(self._stripes.needed(version)) * width + lacking * (width + 2 * BLOCK_BYTES)
