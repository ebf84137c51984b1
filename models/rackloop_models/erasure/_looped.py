"""Codewords computed by native loops: what is to be done is written down once, and then done in one call."""

from __future__ import annotations

import ctypes
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from rackloop_models.erasure._field import Bytes, delta_products
from rackloop_models.erasure._generator import Generator
from rackloop_models.erasure._native import Block, GfniEngine, Matrix, NativeEngine, Plan, Recovery, blocks_array
from rackloop_models.erasure._recovery import pattern, solution
from rackloop_models.erasure._sectors import Addresses, Located, address, plane_offsets

# Plans that are kept, of the latest shapes and erasure patterns: with ISA-L, one may need as much as its tables.
KEPT_PLANS = 32


class _Kept(NamedTuple):
    """A plan, and what has to stay where it is as long as the plan is used."""

    plan: Plan
    kept: object

    @property
    def at(self) -> int:
        return ctypes.addressof(self.plan)


class Looped:
    """Computes codewords of a generator matrix with a native engine. What it is given has been checked.

    Threads may share one: plans are not changed once they are made.
    """

    def __init__(self, generator: Generator, engine: NativeEngine) -> None:
        self._generator = generator
        self._engine = engine
        self._parts = generator.field.parts
        self._rows = tuple(range(generator.m))
        self._kept_part = lru_cache(KEPT_PLANS)(self._part)
        self._product = lru_cache(KEPT_PLANS)(self._product_plan)
        self._recovery = lru_cache(KEPT_PLANS)(self._recovery_plan)

    def multiply(self, user: Located, first: int, redundancy: Located, *, adds: bool) -> None:
        """Write the redundancy of user sectors from number ``first`` on, or add it to what is there."""
        plan = self._product(first, first + len(user), self._rows, user.sector_bytes, adds=adds)
        self._run_one(plan, user.planes, redundancy.planes)

    def multiply_groups(self, data: Bytes, redundancy: Bytes, workers: int) -> None:
        """Write the redundancy of many groups, arrays of (group, sector, byte)."""
        sources = plane_offsets(data.shape[1:], data.strides[1:], self._parts)
        outputs = plane_offsets(redundancy.shape[1:], redundancy.strides[1:], self._parts)
        plan = self._product(0, data.shape[1], self._rows, data.shape[2], adds=False)
        works = np.empty((len(data), 5), np.uint64)
        works[:, 0] = plan.at
        works[:, 1] = address(sources)
        works[:, 2] = _begins(data)
        works[:, 3] = address(outputs)
        works[:, 4] = _begins(redundancy)
        self._engine.run(works, workers)

    def recover(self, codeword: Located, erased: Collection[int], wanted: Sequence[int], outputs: Addresses) -> None:
        """Compute the ``wanted`` of the ``erased`` sectors of a codeword into the planes ``outputs``."""
        plan = self._recovery_of(len(codeword), erased, wanted, codeword.sector_bytes)
        self._run_one(plan, codeword.planes, outputs)

    def recover_groups(
        self, sectors: Bytes, erased: Sequence[Collection[int]], wanted: Sequence[Sequence[int]], workers: int
    ) -> None:
        """Compute the ``wanted`` of the ``erased`` sectors of many codewords in place."""
        _, count, size = sectors.shape
        planes = plane_offsets(sectors.shape[1:], sectors.strides[1:], self._parts)
        todo = [group for group, positions in enumerate(wanted) if positions]
        plans = [self._recovery_of(count, erased[group], wanted[group], size) for group in todo]
        outputs = [planes[list(wanted[group])] for group in todo]
        works = np.empty((len(todo), 5), np.uint64)
        works[:, 0] = [plan.at for plan in plans]
        works[:, 1] = address(planes)
        works[:, 2] = works[:, 4] = _begins(sectors)[todo]
        works[:, 3] = [address(of_group) for of_group in outputs]
        self._engine.run(works, workers)

    def _run_one(self, plan: _Kept, sources: Addresses, outputs: Addresses) -> None:
        sources, outputs = np.ascontiguousarray(sources), np.ascontiguousarray(outputs)
        works = np.array([[plan.at, address(sources), 0, address(outputs), 0]], np.uint64)
        self._engine.run(works, 1)

    def _recovery_of(self, count: int, erased: Collection[int], wanted: Sequence[int], size: int) -> _Kept:
        data = count - self._generator.m
        if min(erased) >= data:
            # No user sector is lost: what is wanted is encoded anew.
            return self._product(0, data, tuple(position - data for position in wanted), size, adds=False)
        return self._recovery(data, tuple(sorted(erased)), tuple(wanted), size)

    def _product_plan(self, first: int, stop: int, rows: tuple[int, ...], size: int, *, adds: bool) -> _Kept:
        product, kept = self._kept_part(first, stop, rows)
        return _Kept(Plan(length=size // self._parts, parts=self._parts, adds=adds, product=product), kept)

    def _recovery_plan(self, data: int, erased: tuple[int, ...], wanted: tuple[int, ...], size: int) -> _Kept:
        field = self._generator.field
        lost, left, also = pattern(self._generator.m, data, erased, wanted)
        product, product_kept = self._kept_part(0, data, (*left, *also))
        matrix = field.byte_matrix(solution(field, data, lost, left, also, wanted))
        solved, solution_kept = self._matrix(matrix)
        lost_at, left_at = np.array(lost, np.uint64), np.array([data + row for row in left], np.uint64)
        plan = Plan(
            length=size // self._parts,
            parts=self._parts,
            product=product,
            lost=address(lost_at),
            lost_count=len(lost),
            left=address(left_at),
            left_count=len(left),
            solution=solved,
        )
        return _Kept(plan, (product_kept, solution_kept, lost_at, left_at))

    def _matrix(self, matrix: Bytes) -> tuple[Matrix, object]:
        """A matrix by itself."""
        rows, columns = matrix.shape
        tables = self._engine.tables(matrix)
        if self._engine.takes_blocks:
            block = blocks_array([Block(columns, address(tables))])
            return Matrix(rows, columns, None, 0, address(block), 1), (block, tables)
        of_rows = address(tables) + np.arange(rows, dtype=np.uint64) * np.uint64(columns)
        return Matrix(rows, columns, address(of_rows)), (of_rows, tables)

    def _part(self, first: int, stop: int, rows: tuple[int, ...]) -> tuple[Matrix, object]:
        """The part of the generator matrix for these rows and user sectors."""
        planes, columns = len(rows) * self._parts, (stop - first) * self._parts
        if not self._engine.takes_blocks:
            whole = self._generator.byte_matrix
            begin = address(whole) + first * self._parts
            numbers = (row * self._parts + part for row in rows for part in range(self._parts))
            of_rows = np.array([begin + number * whole.shape[1] for number in numbers], np.uint64)
            return Matrix(planes, columns, address(of_rows)), (whole, of_rows)
        ones = self._parts if rows[0] == 0 else 0
        if ones == planes:
            block = blocks_array([Block(columns, 0)])
            return Matrix(planes, columns, None, ones, address(block), 1), block
        calls = list(self._generator.calls(first, stop, rows[1:] if ones else rows))
        blocks = blocks_array([Block(call.columns, call.tables) for call in calls])
        return Matrix(planes, columns, None, ones, address(blocks), len(blocks)), (blocks, calls)


class LoopedGfni(Looped):
    """Computes codewords with Rackloop's own kernels, and has patterns solved natively: most are met once."""

    def __init__(self, generator: Generator, engine: GfniEngine) -> None:
        super().__init__(generator, engine)
        self._gfni = engine
        self._code = lru_cache(KEPT_PLANS)(self._code_of)

    def recover(self, codeword: Located, erased: Collection[int], wanted: Sequence[int], outputs: Addresses) -> None:
        """Compute the ``wanted`` of the ``erased`` sectors of a codeword into the planes ``outputs``."""
        code, _ = self._code(len(codeword) - self._generator.m, codeword.sector_bytes)
        sources, outputs = np.ascontiguousarray(codeword.planes), np.ascontiguousarray(outputs)
        missing, asked = np.array(sorted(erased), np.uint64), np.array(wanted, np.uint64)
        places = (address(sources), 0, address(outputs), 0)
        loss = (ctypes.addressof(code), *places, address(missing), len(missing), address(asked), len(asked))
        self._gfni.recover(np.array([loss], np.uint64), 1)

    def recover_groups(
        self, sectors: Bytes, erased: Sequence[Collection[int]], wanted: Sequence[Sequence[int]], workers: int
    ) -> None:
        """Compute the ``wanted`` of the ``erased`` sectors of many codewords in place."""
        code, _ = self._code(sectors.shape[1] - self._generator.m, sectors.shape[2])
        planes = plane_offsets(sectors.shape[1:], sectors.strides[1:], self._parts)
        todo = [group for group, positions in enumerate(wanted) if positions]
        missing = [np.array(sorted(erased[group]), np.uint64) for group in todo]
        asked = [np.array(wanted[group], np.uint64) for group in todo]
        outputs = [planes[list(wanted[group])] for group in todo]
        losses = np.empty((len(todo), 9), np.uint64)
        losses[:, 0] = ctypes.addressof(code)
        losses[:, 1] = address(planes)
        losses[:, 2] = losses[:, 4] = _begins(sectors)[todo]
        for column, lists in ((3, outputs), (5, missing), (7, asked)):
            losses[:, column] = [address(one) for one in lists]
        losses[:, 6] = [len(one) for one in missing]
        losses[:, 8] = [len(one) for one in asked]
        self._gfni.recover(losses, workers)

    def _code_of(self, data: int, size: int) -> tuple[Recovery, object]:
        """The code of codewords of so many user sectors, and what has to stay where it is for that."""
        field, matrix = self._generator.field, self._generator.byte_matrix
        deltas = delta_products().astype(np.uint8)
        code = Recovery(
            length=size // self._parts,
            parts=self._parts,
            data=data,
            m=self._generator.m,
            coefficients=address(matrix),
            stride=matrix.shape[1],
            exp=address(field.exp),
            log=address(field.log),
            last=field.order - 1,
            deltas=address(deltas),
        )
        return code, (matrix, field.exp, field.log, deltas)


def _begins(array: Bytes) -> Addresses:
    """The start of each group of an array of (group, sector, byte)."""
    # A negative step wraps around, and so does the sum of an address with it.
    return (np.arange(len(array)) * array.strides[0]).astype(np.uint64) + np.uint64(address(array))
