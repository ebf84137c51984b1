"""Offsets and sizes of a synthetic trace.

Blocks are divided into cells: a cell is what one sequential run of requests of one size covers, from its first request
to its last, and runs of one kind and size have a zone of cells of their own. A run begins in a cell and goes on to its
end, so that the share of sequential requests follows from the lengths of cells, the footprint from their number, and
locality from how often each is chosen. Cells are chosen by systematic sampling, so that over the whole trace each is
chosen as often as the profile says, to within one, and not merely in expectation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rackloop_traces._columns import Op
from rackloop_traces._profile import BLOCK_BYTES, TraceProfile
from rackloop_traces._statistics_histogram import Ints

_PATTERN = 256
_RUNS_AT_ONCE = 2**16
_SECTOR_BYTES = 512


@dataclass(frozen=True)
class _Zone:
    """The cells for requests of one size. Lengths repeat after a pattern; ``begins`` are in blocks from its start."""

    size_bytes: int
    runs: Ints
    shifts: Ints
    begins: Ints
    pattern_blocks: int
    cells: int

    @classmethod
    def of(
        cls, size_bytes: int, blocks: float, continuing: float, shifts: tuple[float, ...], rng: np.random.Generator
    ) -> _Zone:
        """Cells on some number of blocks, at least one cell; a zone too small for the runs wanted gets shorter ones."""
        cells = _PATTERN
        longest = max(1, int(blocks * BLOCK_BYTES / size_bytes))
        while True:
            pattern = min(cells, _PATTERN)
            even = (np.arange(pattern) + 0.5) / pattern
            runs = _geometric(even, continuing)
            shift = np.searchsorted(np.cumsum(shifts) / sum(shifts), even) * _SECTOR_BYTES
            runs, shift = np.minimum(rng.permutation(runs), longest), rng.permutation(shift)
            lengths = (shift + runs * size_bytes + BLOCK_BYTES - 1) // BLOCK_BYTES
            wanted = max(1, round(blocks / float(lengths.mean())))
            if wanted >= pattern or cells == 1:
                break
            cells = wanted
        begins = np.concatenate(([0], np.cumsum(lengths)))
        return cls(size_bytes, runs, shift, begins[:-1], int(begins[-1]), max(wanted, 1))

    @property
    def blocks(self) -> int:
        """The number of blocks in the zone."""
        whole, rest = divmod(self.cells, self.runs.size)
        return whole * self.pattern_blocks + (int(self.begins[rest]) if rest else 0)


def _geometric(even: NDArray[np.float64], continuing: float) -> Ints:
    """Lengths of runs of which ``continuing`` go on after each request, at these quantiles."""
    if not continuing:
        return np.ones(even.size, dtype=np.int64)
    return (1 + np.floor(np.log1p(-even) / math.log(continuing))).astype(np.int64)


@dataclass(frozen=True)
class Runs:
    """Sequential runs: where each begins, the size of its requests, and how many they are."""

    offset_bytes: Ints
    size_bytes: Ints
    requests: Ints


class PlaceSource:
    """Sequential runs of one kind of request without end, so many that the first ``requests`` keep to the profile.

    The zones lie from block ``first_block`` on, spread by a factor so that all kinds together span the extent.
    """

    def __init__(
        self,
        op: Op,
        profile: TraceProfile,
        *,
        requests: int,
        blocks: float,
        first_block: int,
        spread: float,
        rng: np.random.Generator,
    ) -> None:
        self._rng, self._spread = rng, spread
        self._curve = np.asarray([(0.0, 0.0), *profile.locality])
        sizes = np.asarray([size for size, _ in profile.sizes[op]], dtype=np.int64)
        weights = np.asarray([weight for _, weight in profile.sizes[op]], dtype=np.float64)
        touched = weights * touches(sizes, profile.shifts)
        self._reached = np.cumsum(weights) / weights.sum()
        zones = [
            _Zone.of(int(size), blocks * float(share), profile.continuing[op], profile.shifts, rng)
            for size, share in zip(sizes, touched / touched.sum(), strict=True)
        ]
        self._sizes = sizes
        self._cells = np.asarray([zone.cells for zone in zones])
        self._strides = np.asarray([_stride(zone.cells) for zone in zones])
        self._pattern_blocks = np.asarray([zone.pattern_blocks for zone in zones])
        self._patterns = np.asarray([zone.runs.size for zone in zones])
        self._pattern_starts = np.concatenate(([0], np.cumsum(self._patterns)[:-1]))
        spans = np.asarray([zone.blocks for zone in zones])
        self._zone_starts = first_block + np.concatenate(([0], np.cumsum(spans)[:-1]))
        self.end_block = first_block + int(spans.sum())
        self._runs = np.concatenate([zone.runs for zone in zones])
        self._shifts = np.concatenate([zone.shifts for zone in zones])
        self._begins = np.concatenate([zone.begins for zone in zones])

        mean_run = float(np.average([zone.runs.mean() for zone in zones], weights=weights))
        runs = max(1, math.ceil(requests / mean_run))
        self._rounds = math.ceil(runs / _RUNS_AT_ONCE)
        self._runs_at_once = math.ceil(runs / self._rounds)
        self._order = rng.permutation(self._rounds)
        self._round = 0

    def next(self) -> Runs:
        """The next runs, some ten thousands at most."""
        place = self._order[self._round % self._rounds]
        self._round += 1
        n = self._runs_at_once
        level = (self._rng.permutation(n) + (place + 0.5) / self._rounds) / n
        zone = np.minimum(np.searchsorted(self._reached, level, side="right"), self._sizes.size - 1)
        lower = np.concatenate(([0.0], self._reached))
        within = (level - lower[zone]) / (lower[zone + 1] - lower[zone])
        cells = self._cells[zone]
        share_of_blocks = np.interp(within, self._curve[:, 1], self._curve[:, 0])
        rank = np.minimum((share_of_blocks * cells).astype(np.int64), cells - 1)
        # Scatter ranks over the zone, so that busy cells are not all neighbours.
        cell = (rank * self._strides[zone]) % cells
        pattern = self._pattern_starts[zone] + cell % self._patterns[zone]
        block = (
            self._zone_starts[zone] + cell // self._patterns[zone] * self._pattern_blocks[zone] + self._begins[pattern]
        )
        offset = np.floor(block * self._spread).astype(np.int64) * BLOCK_BYTES + self._shifts[pattern]
        return Runs(offset, self._sizes[zone], self._runs[pattern])


def touches(sizes_bytes: Ints, shifts: tuple[float, ...]) -> NDArray[np.float64]:
    """The number of blocks that a request of each size touches, averaged over its offset in a block."""
    starts = np.arange(len(shifts)) * _SECTOR_BYTES
    ends = starts[:, None] + sizes_bytes[None, :]
    return np.average((ends + BLOCK_BYTES - 1) // BLOCK_BYTES, axis=0, weights=shifts)


def _stride(cells: int) -> int:
    """A number without common factor with ``cells``, about its golden section, that multiplies without overflow."""
    stride = max(1, min(round(cells * 0.6180339887), 2**62 // cells))
    while math.gcd(stride, cells) != 1:
        stride -= 1
    return stride
