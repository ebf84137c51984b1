"""The history of writes and flushes, and what a read of any block may return by it.

A block is a register. Each write of it has a generation, and a beginning and an end on one count of events. A write
*supersedes* another when it began after that one had ended and is certain: acknowledged, and, where power was cut
since, flushed before the cut. Whatever is not superseded may be read. The state before the first write is generation 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock

import numpy as np
from numpy.typing import NDArray

_BUCKET = 256
_NEVER = -1


@dataclass
class Write:
    """A write of ``count`` blocks from ``first`` on, and what became of it. ``ended`` is None while it is in flight."""

    generation: int
    first: int
    count: int
    began: int
    ended: int | None = None
    is_acknowledged: bool = False

    def covers(self, block: int) -> bool:
        """Whether it wrote this block."""
        return self.first <= block < self.first + self.count


@dataclass(frozen=True)
class Flush:
    """A flush that succeeded."""

    began: int
    ended: int


class History:
    """Writes, flushes, power cuts and what was seen of ``blocks`` blocks. Threads may note at once."""

    def __init__(self, blocks: int) -> None:
        self.writes: list[Write] = []
        self.flushes: list[Flush] = []
        self.cuts: list[int] = []
        # What a block most likely holds: most reads are compared with nothing else.
        self.newest: NDArray[np.uint64] = np.zeros(blocks, np.uint64)
        self.is_written: NDArray[np.bool_] = np.zeros(blocks, bool)
        self._seen: NDArray[np.uint64] = np.zeros(blocks, np.uint64)
        self._seen_at: NDArray[np.int64] = np.full(blocks, _NEVER, np.int64)
        self._written_at: NDArray[np.int64] = np.full(blocks, _NEVER, np.int64)
        self._by_bucket: dict[int, list[Write]] = {}
        self._now = 0
        self._lock = Lock()

    def moment(self) -> int:
        """A new moment, later than all that were noted."""
        with self._lock:
            return self._tick()

    def begin_write(self, first: int, count: int) -> Write:
        """A write that is about to be asked for; its generation is higher than all before."""
        with self._lock:
            write = Write(len(self.writes) + 1, first, count, self._tick())
            self.writes.append(write)
            for bucket in range(first // _BUCKET, (first + count - 1) // _BUCKET + 1):
                self._by_bucket.setdefault(bucket, []).append(write)
            self.is_written[first : first + count] = True
            return write

    def end_write(self, write: Write, *, is_acknowledged: bool) -> None:
        """The system answered. A write that failed is over, too: it may have been done, and is not done later."""
        with self._lock:
            if write.ended is None:
                write.ended = self._tick()
                write.is_acknowledged = is_acknowledged
                if is_acknowledged:
                    self.newest[write.first : write.first + write.count] = write.generation
                self._written_at[write.first : write.first + write.count] = write.ended

    def note_flush(self, began: int) -> None:
        """A flush that was asked for at ``began`` succeeded."""
        with self._lock:
            self.flushes.append(Flush(began, self._tick()))

    def note_power_cut(self) -> None:
        """Power was cut and is back: what was in flight will not be answered any more, and not be done any more."""
        with self._lock:
            now = self._tick()
            self.cuts.append(now)
            for write in self.writes:
                if write.ended is None:
                    write.ended = now

    def note_seen(self, blocks: NDArray[np.intp], generations: NDArray[np.uint64], began: int) -> None:
        """A read that was asked for at ``began`` brought these blocks back whole, each of a generation it may be of."""
        with self._lock:
            # What was written meanwhile is newer than what was seen.
            still = self._written_at[blocks] < began
            self.newest[blocks[still]] = generations[still]
            self._seen[blocks[still]] = generations[still]
            self._seen_at[blocks[still]] = began

    def candidates(self, block: int, began: int, ended: int) -> frozenset[int]:
        """The generations that a read of ``block``, asked for at ``began`` and answered at ``ended``, may bring.

        What was seen once stays, until it is written over or power is cut.
        """
        with self._lock:
            writes = [write for write in self._by_bucket.get(block // _BUCKET, ()) if write.covers(block)]
            writes = [write for write in writes if write.began < ended]
            floor = max((write.began for write in writes if self._is_certain(write, began)), default=_NEVER)
            possible = {
                write.generation: write.ended for write in writes if write.ended is None or write.ended >= floor
            }
            if floor == _NEVER:
                possible[0] = _NEVER
            seen_at = int(self._seen_at[block])
            if seen_at != _NEVER and seen_at < began and not any(seen_at < cut for cut in self.cuts):
                seen = int(self._seen[block])
                possible = {
                    generation: when
                    for generation, when in possible.items()
                    if generation == seen or when is None or when > seen_at
                }
            return frozenset(possible)

    def _is_certain(self, write: Write, at: int) -> bool:
        """Whether the write had surely been done by ``at`` and not been lost since."""
        if not write.is_acknowledged or write.ended is None or write.ended > at:
            return False
        cut = next((cut for cut in self.cuts if write.ended < cut <= at), None)
        return cut is None or any(flush.began > write.ended and flush.ended < cut for flush in self.flushes)

    def _tick(self) -> int:
        self._now += 1
        return self._now
