"""The generator matrix at work: products with it, in blocks that stay in the processor's caches."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from ctypes import c_void_p
from functools import cached_property, lru_cache, partial
from math import ceil
from typing import NamedTuple

import numpy as np

from rackloop_models.erasure._cauchy import coefficients
from rackloop_models.erasure._engines import Engine
from rackloop_models.erasure._field import Bytes, Field
from rackloop_models.erasure._sectors import Addresses, address, plane_addresses

# One call of ISA-L reads a few bytes of each of its sources in turn. Beyond the streams that a processor prefetches and
# the pages that its first TLB holds (64 or more), it waits for memory: 32 sectors a call are up to five times as fast
# as hundreds. Fewer cost more calls.
BLOCK_SECTORS = 32
# What blocks come to is kept apart up to here and then added up: fewer calls of short blocks, at each of which threads
# would wait for the interpreter lock. More would push user sectors out of the caches.
SCRATCH_BYTES = 48 << 10
# Up to here, prepared coefficients are kept; (1004, 19) needs 2.4 MB.
KEPT_TABLE_BYTES = 64 << 20


class _Call(NamedTuple):
    columns: int
    tables: int
    sources_offset: int
    kept: Bytes


class Scratch(NamedTuple):
    """Sectors to compute into, the addresses of their planes, and where these are."""

    sectors: Bytes
    planes: Addresses
    at: int


class _ThreadScratch(threading.local):
    def __init__(self) -> None:
        self.made: dict[tuple[str, int, int], Scratch] = {}


class Generator:
    """The generator matrix of a (k, m) code. Threads may share one.

    Prepared coefficients are kept where they need no more than ``kept_table_bytes``; ``scratch_bytes`` are what blocks
    come to before they are added up.
    """

    def __init__(
        self,
        k: int,
        m: int,
        field: Field,
        engine: Engine,
        *,
        kept_table_bytes: int = KEPT_TABLE_BYTES,
        scratch_bytes: int = SCRATCH_BYTES,
    ) -> None:
        self.k = k
        self.m = m
        self.field = field
        self.engine = engine
        self.block_sectors = ceil(k / ceil(k / BLOCK_SECTORS))
        self.keeps = 32 * field.parts**2 * k * m <= kept_table_bytes
        self.scratch_bytes = scratch_bytes
        self._whole: dict[int, Bytes] = {}
        self._scratch = _ThreadScratch()
        self._kept_calls: Callable[[int, int, tuple[int, ...]], tuple[_Call, ...]] = lru_cache(maxsize=8)(
            lambda first, stop, rows: tuple(self._make_calls(first, stop, rows))
        )

    @cached_property
    def byte_matrix(self) -> Bytes:
        """The whole matrix over bytes: a row for each plane of redundancy. Only where it is small enough to be kept."""
        return self.field.byte_matrix(coefficients(self.field, np.arange(self.m), np.arange(self.k)))

    def calls(self, first: int, stop: int, rows: tuple[int, ...]) -> Iterable[_Call]:
        """The calls that multiply user sectors ``first`` up to ``stop`` for the redundancy sectors ``rows``."""
        return (self._kept_calls if self.keeps else self._make_calls)(first, stop, rows)

    def scratch(self, use: str, count: int, sector_bytes: int) -> Scratch:
        """Sectors of zeros at first, which this thread has for ``use`` and finds again as it left them."""
        made = self._scratch.made
        key = (use, count, sector_bytes)
        if key not in made:
            sectors = _aligned_zeros(count, sector_bytes)
            planes = plane_addresses(sectors, self.field)
            made[key] = Scratch(sectors, planes, address(planes))
        return made[key]

    def _make_calls(self, first: int, stop: int, rows: tuple[int, ...]) -> Iterator[_Call]:
        at, parts = first, self.field.parts
        while at < stop:
            whole = min(at // self.block_sectors * self.block_sectors + self.block_sectors, self.k)
            end = min(whole, stop)
            if self.keeps and at % self.block_sectors == 0 and end == whole:
                tables = self._of_rows(self._whole_block(at, end), rows)
            else:
                tables = self._tables(rows, at, end)
            yield _Call((end - at) * parts, address(tables), (at - first) * parts * 8, tables)
            at = end

    def _whole_block(self, at: int, end: int) -> Bytes:
        if at not in self._whole:
            self._whole[at] = self._tables(tuple(range(self.m)), at, end)
        return self._whole[at]

    def _of_rows(self, tables: Bytes, rows: tuple[int, ...]) -> Bytes:
        parts = self.field.parts
        if rows == tuple(range(rows[0], rows[0] + len(rows))):
            return tables[rows[0] * parts : (rows[-1] + 1) * parts]
        return tables.reshape(self.m, -1)[list(rows)]

    def _tables(self, rows: tuple[int, ...], first: int, stop: int) -> Bytes:
        matrix = coefficients(self.field, np.array(rows), np.arange(first, stop))
        return self.engine.tables(self.field.byte_matrix(matrix))


class Product:
    """The redundancy sectors ``rows`` of user sectors ``first`` up to ``stop``; one thread uses it, group after group.

    The addresses of the user sectors' planes are in ``sources``, where those of another group may be put. With
    ``adds``, what is computed is added to what is there.
    """

    def __init__(
        self,
        generator: Generator,
        first: int,
        stop: int,
        rows: tuple[int, ...],
        sector_bytes: int,
        sources: Addresses,
        *,
        adds: bool = False,
    ) -> None:
        self._multiply = generator.engine.multiply
        self._adds = adds
        self._sources = sources
        self._length, self._planes = sector_bytes // generator.field.parts, len(rows) * generator.field.parts
        self._make_calls = partial(generator.calls, first, stop, rows)
        self._kept = list(self._arguments()) if generator.keeps else None
        blocks = ceil(generator.k / generator.block_sectors) + 1
        slots = max(1, min(blocks, generator.scratch_bytes // (len(rows) * sector_bytes)))
        scratch = generator.scratch("scratch", slots * len(rows), sector_bytes)
        self._slots = scratch.sectors.reshape(slots, len(rows), sector_bytes)
        self._slots_at = [c_void_p(scratch.at + slot * self._planes * 8) for slot in range(slots)]

    def __call__(self, output: Bytes) -> None:
        """Multiply the user sectors into ``output``."""
        multiply, slots, length, planes = self._multiply, self._slots_at, self._length, self._planes
        fresh, filled = not self._adds, 0
        for columns, tables, sources, _ in self._arguments() if self._kept is None else self._kept:
            multiply(length, columns, planes, tables, sources, slots[filled])
            filled += 1
            if filled == len(slots):
                self._add_up(output, filled, fresh=fresh)
                fresh, filled = False, 0
        if filled:
            self._add_up(output, filled, fresh=fresh)

    def _arguments(self) -> Iterator[tuple[int, c_void_p, c_void_p, Bytes]]:
        """The arguments that differ from call to call, and what has to stay as long as it is used."""
        begin = address(self._sources)
        for call in self._make_calls():
            yield call.columns, c_void_p(call.tables), c_void_p(begin + call.sources_offset), call.kept

    def _add_up(self, output: Bytes, filled: int, *, fresh: bool) -> None:
        slots = self._slots[:filled]
        if fresh:
            np.bitwise_xor.reduce(slots, axis=0, out=output)
            return
        if filled > 1:
            np.bitwise_xor.reduce(slots, axis=0, out=slots[0])
        np.bitwise_xor(output, slots[0], output)


def _aligned_zeros(count: int, sector_bytes: int) -> Bytes:
    """Sectors from the start of a cache line on: numpy aligns to 16 bytes, and then every load of 64 takes two."""
    line = 64
    raw = np.zeros(count * sector_bytes + line, np.uint8)
    skipped = -address(raw) % line
    return raw[skipped : skipped + count * sector_bytes].reshape(count, sector_bytes)
