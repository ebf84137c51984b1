"""Codewords computed from Python: a call of the engine for each block of user sectors, sums by numpy."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import cast

import numpy as np

from rackloop_models.erasure._field import Bytes
from rackloop_models.erasure._generator import Generator, Product
from rackloop_models.erasure._recovery import Recovery
from rackloop_models.erasure._sectors import Addresses, Located, address, plane_addresses, plane_offsets


class Blockwise:
    """Computes codewords of a generator matrix with any engine. What it is given has been checked."""

    def __init__(self, generator: Generator) -> None:
        self._generator = generator
        self._rows = tuple(range(generator.m))

    def multiply(self, user: Located, first: int, redundancy: Located, *, adds: bool) -> None:
        """Write the redundancy of user sectors from number ``first`` on, or add it to what is there."""
        stop, size = first + len(user), user.sector_bytes
        product = Product(self._generator, first, stop, self._rows, size, user.planes, adds=adds)
        if isinstance(redundancy.kept, np.ndarray):
            product(redundancy.kept)
            return
        # What is computed is made of an array, and copied to where it belongs.
        views = cast("Sequence[Bytes]", redundancy.kept)
        array = np.stack(views)
        product(array)
        for view, row in zip(views, array, strict=True):
            view[:] = row

    def multiply_groups(self, data: Bytes, redundancy: Bytes, workers: int) -> None:
        """Write the redundancy of many groups, arrays of (group, sector, byte)."""
        parts = self._generator.field.parts
        offsets = plane_offsets(data.shape[1:], data.strides[1:], parts)
        first, step = address(data), data.strides[0]

        def share() -> Callable[[int], None]:
            planes = np.empty_like(offsets)
            product = Product(self._generator, 0, data.shape[1], self._rows, data.shape[2], planes)

            def encode(group: int) -> None:
                np.add(offsets, np.uint64(first + group * step), out=planes)
                product(redundancy[group])

            return encode

        _on_cores(len(data), workers, share)

    def recover(self, codeword: Located, erased: Collection[int], wanted: Sequence[int], outputs: Addresses) -> None:
        """Compute the ``wanted`` of the ``erased`` sectors of a codeword into the planes ``outputs``."""
        data = len(codeword) - self._generator.m
        Recovery(self._generator, data, erased, wanted, codeword.sector_bytes)(codeword.planes, outputs)

    def recover_groups(
        self, sectors: Bytes, erased: Sequence[Collection[int]], wanted: Sequence[Sequence[int]], workers: int
    ) -> None:
        """Compute the ``wanted`` of the ``erased`` sectors of many codewords in place."""
        data = sectors.shape[1] - self._generator.m

        def recover(group: int) -> None:
            if wanted[group]:
                planes = plane_addresses(sectors[group], self._generator.field)
                recovery = Recovery(self._generator, data, erased[group], wanted[group], sectors.shape[2])
                recovery(planes, planes[list(wanted[group])])

        _on_cores(len(sectors), workers, lambda: recover)


def _on_cores(groups: int, workers: int, share: Callable[[], Callable[[int], None]]) -> None:
    """Do every group once. Each worker takes the next one when it is done, the calling thread among them."""
    numbers = count()

    def work() -> None:
        do = share()
        while (group := next(numbers)) < groups:
            do(group)

    if workers == 1:
        return work()
    with ThreadPoolExecutor(workers - 1) as pool:
        others = [pool.submit(work) for _ in range(workers - 1)]
        work()
        for other in others:
            other.result()
    return None
