"""A histogram of whole numbers in bounded memory, with the same relative error everywhere."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]


class LogLinearHistogram:
    """Counts of numbers >= 0, exact below ``2**bits`` and in bins of at most ``2**(1 - bits)`` of their value above.

    The bins are those of an HDR histogram. A number with no more than ``bits`` significant bits is the low end of its
    bin, so that multiples of 512 up to 1 MiB are told apart and come back as they were with 11 bits.
    """

    def __init__(self, bits: int) -> None:
        self._bits = bits
        self._counts: Ints = np.zeros(0, dtype=np.int64)

    def add(self, values: Ints, weight: int = 1) -> None:
        """Count each of ``values`` ``weight`` times."""
        if values.size:
            counts = np.bincount(self._places(values), minlength=self._counts.size) * weight
            counts[: self._counts.size] += self._counts
            self._counts = counts

    @property
    def total(self) -> int:
        """The number of counted values."""
        return int(self._counts.sum())

    def nonzero(self) -> tuple[Ints, Ints]:
        """The low end of every bin that holds something, ascending, and its count."""
        places = np.flatnonzero(self._counts)
        shift = np.maximum((places >> (self._bits - 1)) - 1, 0)
        return (places - (shift << (self._bits - 1))) << shift, self._counts[places]

    def quantiles(self, *quantiles: float) -> list[int]:
        """The low end of the bin in which each of ``quantiles`` lies; zeros where nothing was counted."""
        values, counts = self.nonzero()
        if not values.size:
            return [0] * len(quantiles)
        reached = np.cumsum(counts)
        ranks = np.maximum(np.ceil(np.asarray(quantiles) * reached[-1]), 1)
        return [int(value) for value in values[np.searchsorted(reached, ranks)]]

    def coarser(self, bits: int) -> LogLinearHistogram:
        """The same numbers in the fewer bins of a histogram with ``bits``."""
        coarse = LogLinearHistogram(bits)
        values, counts = self.nonzero()
        if values.size:
            places = coarse._places(values)
            coarse._counts = np.zeros(places[-1] + 1, dtype=np.int64)
            np.add.at(coarse._counts, places, counts)
        return coarse

    def _places(self, values: Ints) -> Ints:
        """The bins of ``values``. Where a float rounds up to a power of two, the bin is the last one below it."""
        shift = np.maximum(np.frexp(values.astype(np.float64))[1].astype(np.int64) - self._bits, 0)
        return (shift << (self._bits - 1)) + (values >> shift)
