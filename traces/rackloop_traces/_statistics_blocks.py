"""Statistics of touched blocks: footprint, locality, working set, from a sample of blocks in bounded memory."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rackloop_traces._statistics_histogram import Ints, LogLinearHistogram
from rackloop_traces._statistics_result import Blocks, WorkingSet

BLOCK_BYTES = 4096
MOST_BLOCKS_OF_A_REQUEST = 2**16
_SAMPLE = 2**19
_HASH_BITS = 44
_PLACE_BITS = 20
_TOUCHES_AT_ONCE = 2**_PLACE_BITS
_REUSE_BITS = 11
_REUSE_POINTS = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99)
_WINDOWS_NS = (10**9, 60 * 10**9, 3600 * 10**9)
_MOST_WINDOWS = 4096
_CURVE_POINTS = 120
_NEVER = np.iinfo(np.int64).min
_Hashes = NDArray[np.uint64]


class BlockRecord:
    """Touches of blocks of 4 KiB, by reads and by writes.

    Up to 2**19 distinct blocks (2 GiB) everything is exact. Beyond, blocks are sampled by a hash of their address, at
    a rate that halves each time that many are kept, so that memory does not grow: Flajolet, "On adaptive sampling"
    (Computing 43, 1990), whose count of distinct values has a standard error of 1.2 / sqrt(kept); Waldspurger and
    others, "Efficient MRC Construction with SHARDS" (FAST 2015), take locality from such a sample.
    """

    def __init__(self) -> None:
        self._level = 0
        self._hash: _Hashes = np.zeros(0, dtype=np.uint64)
        # For each block kept: touches by reads, by writes, first and last touch.
        self._kept: Ints = np.zeros((4, 0), dtype=np.int64)
        self._touches, self._cut_short = 0, 0
        self._reuse = LogLinearHistogram(_REUSE_BITS)
        self._windows = {width_ns: np.zeros(_MOST_WINDOWS, dtype=np.int64) for width_ns in _WINDOWS_NS}

    def add(self, since_start_ns: Ints, volume: Ints, is_write: Ints, offset_bytes: Ints, size_bytes: Ints) -> None:
        """Record reads and writes of at least one byte; times never fall."""
        first = offset_bytes // BLOCK_BYTES
        counts = (offset_bytes + size_bytes - 1) // BLOCK_BYTES - first + 1
        self._cut_short += int((counts > MOST_BLOCKS_OF_A_REQUEST).sum())
        counts = np.minimum(counts, MOST_BLOCKS_OF_A_REQUEST)
        reached = np.cumsum(counts)
        begin = 0
        while begin < counts.size:
            done = int(reached[begin - 1]) if begin else 0
            end = max(begin + 1, int(np.searchsorted(reached, done + _TOUCHES_AT_ONCE, side="right")))
            part = slice(begin, end)
            self._add_touches(since_start_ns[part], volume[part], is_write[part], first[part], counts[part])
            begin = end

    def _add_touches(self, since_start_ns: Ints, volume: Ints, is_write: Ints, first: Ints, counts: Ints) -> None:
        request = np.repeat(np.arange(counts.size), counts)
        self._touches += request.size
        block = np.arange(request.size) + (first - np.cumsum(counts) + counts)[request]
        hashes = _mixed(block.astype(np.uint64) + (volume.astype(np.uint64) << np.uint64(48))[request])
        if self._level:
            chosen = np.flatnonzero(hashes < self._limit)
            hashes, request = hashes[chosen], request[chosen]
        if not hashes.size:
            return
        # One word sorts by block and then by time.
        keys = np.sort((hashes << np.uint64(_PLACE_BITS)) | np.arange(hashes.size, dtype=np.uint64))
        request = request[(keys & np.uint64(2**_PLACE_BITS - 1)).astype(np.int64)]
        hashes = keys >> np.uint64(_PLACE_BITS)
        times, writes = since_start_ns[request], is_write[request]
        starts = np.concatenate(([0], np.flatnonzero(hashes[1:] != hashes[:-1]) + 1))
        self._update(hashes[starts], starts, times, writes)

    def _update(self, distinct: _Hashes, starts: Ints, times: Ints, writes: Ints) -> None:
        """Take in touches that are sorted by block and time; those of a block begin at each of ``starts``."""
        places = np.searchsorted(self._hash, distinct)
        is_known = np.zeros(distinct.size, dtype=bool)
        inside = places < self._hash.size
        is_known[inside] = self._hash[places[inside]] == distinct[inside]
        known = places[is_known]
        before = np.empty_like(times)
        before[1:] = times[:-1]
        before[starts] = _NEVER
        before[starts[is_known]] = self._kept[3, known]
        self._note_reuse(times, before)

        ends = np.concatenate((starts[1:], [times.size]))
        written = np.add.reduceat(writes, starts)
        rows = np.stack((ends - starts - written, written, times[starts], times[ends - 1]))
        self._kept[:2, known] += rows[:2, is_known]
        self._kept[3, known] = rows[3, is_known]
        self._hash = np.insert(self._hash, places[~is_known], distinct[~is_known])
        self._kept = np.insert(self._kept, places[~is_known], rows[:, ~is_known], axis=1)
        while self._hash.size > _SAMPLE:
            self._level += 1
            left = int(np.searchsorted(self._hash, self._limit))
            self._hash, self._kept = self._hash[:left], self._kept[:, :left]

    @property
    def _limit(self) -> np.uint64:
        return np.uint64(1 << (_HASH_BITS - self._level))

    def _note_reuse(self, times: Ints, before: Ints) -> None:
        weight = 1 << self._level
        is_again = before != _NEVER
        self._reuse.add(times[is_again] - before[is_again], weight)
        for width_ns, distinct in list(self._windows.items()):
            window = times // width_ns
            if int(window.max()) >= _MOST_WINDOWS:
                del self._windows[width_ns]
                continue
            is_first = ~is_again | (before // width_ns < window)
            self._windows[width_ns] = distinct + np.bincount(window[is_first], minlength=_MOST_WINDOWS) * weight

    def result(self, duration_ns: int) -> Blocks:
        """The statistics; all counts of blocks are estimates where ``is_exact`` is false."""
        reads, writes, first_ns, _ = self._kept
        weight = 1 << self._level
        counts = np.sort(reads + writes)[::-1]
        kept = max(1, counts.size)
        reached = np.cumsum(counts) / max(1, int(counts.sum()))
        ranks = np.unique(np.geomspace(1, kept, _CURVE_POINTS).round().astype(np.int64))[: counts.size]

        def share_of(part: float) -> float:
            return float(np.interp(part * kept, np.arange(counts.size + 1), np.concatenate(([0], reached))))

        return Blocks(
            block_bytes=BLOCK_BYTES,
            distinct=counts.size * weight,
            distinct_read=int((reads > 0).sum()) * weight,
            distinct_written=int((writes > 0).sum()) * weight,
            touches=self._touches,
            touched_once=int((counts == 1).sum()) * weight,
            is_exact=not self._level,
            standard_error=1.2 / math.sqrt(kept) if self._level else 0.0,
            requests_cut_short=self._cut_short,
            hot_shares={part: share_of(part) for part in (0.001, 0.01, 0.1, 0.2, 0.5)},
            curve=[(int(rank) / kept, float(reached[rank - 1])) for rank in ranks if counts.size],
            reuse_us={q: v / 1e3 for q, v in zip(_REUSE_POINTS, self._reuse.quantiles(*_REUSE_POINTS), strict=True)},
            growth=[(seconds, int(blocks) * weight) for seconds, blocks in _growth(np.sort(first_ns), duration_ns)],
            working_set=self._working_set(duration_ns),
        )

    def _working_set(self, duration_ns: int) -> WorkingSet | None:
        """By the shortest window that has few enough of them."""
        for width_ns, distinct in self._windows.items():
            windows = duration_ns // width_ns + 1
            if windows <= _MOST_WINDOWS:
                return WorkingSet(window_s=width_ns / 1e9, distinct=distinct[:windows].tolist())
        return None


def _growth(first_ns: Ints, duration_ns: int) -> list[tuple[float, int]]:
    """The number of touched blocks at each of a hundred times."""
    moments = np.linspace(0, duration_ns, 101)
    counts = np.searchsorted(first_ns, moments, side="right")
    return list(zip((moments / 1e9).tolist(), counts.tolist(), strict=True))


def _mixed(words: _Hashes) -> _Hashes:
    """The upper bits of the finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014)."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (words ^ (words >> np.uint64(31))) >> np.uint64(64 - _HASH_BITS)
