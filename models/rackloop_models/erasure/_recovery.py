"""Computing erased sectors from those that are left: the e x e subsystem, never a k x k one."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from rackloop.errors import ProductFailed
from rackloop_models.erasure._cauchy import coefficients, inverse
from rackloop_models.erasure._field import Elements, Field
from rackloop_models.erasure._generator import Generator, Product
from rackloop_models.erasure._sectors import Addresses, address


class UnrecoverableError(ProductFailed):
    """More sectors of a codeword are erased than it has redundancy for. Nothing has been written.

    ``erased`` are their positions in the codeword, ``m`` is how many it could have computed.
    """

    def __init__(self, erased: Collection[int], m: int) -> None:
        self.erased = tuple(sorted(erased))
        self.m = m
        shown = ", ".join(map(str, self.erased[:20])) + (", ..." if len(self.erased) > 20 else "")
        super().__init__(
            f"{len(self.erased)} sectors of a codeword are erased (positions {shown}) and its {m} redundancy sectors "
            f"recover {m} at most; read some of them again"
        )


def pattern(
    m: int, data: int, erased: Collection[int], wanted: Sequence[int]
) -> tuple[list[int], list[int], list[int]]:
    """The lost user sectors, the rows of as many redundancy sectors that are left, and the rows that are wanted."""
    lost = sorted(position for position in erased if position < data)
    gone = {position - data for position in erased if position >= data}
    left = [row for row in range(m) if row not in gone][: len(lost)]
    return lost, left, [position - data for position in wanted if position >= data]


class Recovery:
    """Computes the sectors ``wanted`` of codewords of ``data`` user sectors that lack ``erased``; for one thread.

    With S, what surviving redundancy sectors r would be if the erased user sectors were zeros, G the part of the
    generator matrix for these rows and the erased columns: G d = S + r, so d = inverse(G) (S + r). An erased redundancy
    sector is what it would be if the erased user sectors were zeros, and its own part of the matrix times d. The user
    sectors are read once for all of it.
    """

    def __init__(
        self, generator: Generator, data: int, erased: Collection[int], wanted: Sequence[int], sector_bytes: int
    ) -> None:
        field = generator.field
        self._multiply = generator.engine.multiply
        lost, left, also = pattern(generator.m, data, erased, wanted)
        self._data, self._lost, self._left = data, lost, [data + row for row in left]
        self._known = np.empty((data, field.parts), np.uint64)
        self._product = Product(generator, 0, data, (*left, *also), sector_bytes, self._known)
        self._plane_bytes = sector_bytes // field.parts
        self._zeros = generator.scratch("zeros", 1, sector_bytes)
        self._computed = generator.scratch("computed", len(left) + len(also), sector_bytes)
        matrix = field.byte_matrix(solution(field, data, lost, left, also, wanted))
        self._rows, self._columns = matrix.shape
        self._tables = generator.engine.tables(matrix)

    def __call__(self, planes: Addresses, outputs: Addresses) -> None:
        """Compute the wanted sectors of the codeword with these planes into the planes ``outputs``."""
        self._known[:] = planes[: self._data]
        self._known[self._lost] = self._zeros.planes
        self._product(self._computed.sectors)
        sources = np.concatenate([self._computed.planes, planes[self._left]])
        tables, written = address(self._tables), np.ascontiguousarray(outputs)
        self._multiply(self._plane_bytes, self._columns, self._rows, tables, address(sources), address(written))


def solution(
    field: Field, data: int, lost: list[int], left: list[int], also: list[int], wanted: Sequence[int]
) -> Elements:
    """The wanted sectors as sums of S for the rows ``left``, of S for the rows ``also``, and of r for ``left``."""
    solved = inverse(field, left, lost)
    rows = dict(zip(lost, solved, strict=True))
    if also:
        part = coefficients(field, np.array(also), np.array(lost, np.int64))
        of_redundancy = field.matrix_product(part, np.array(solved, np.int64).reshape(len(lost), len(left)))
        rows |= {data + row: solved for row, solved in zip(also, of_redundancy.tolist(), strict=True)}
    units = {data + row: [int(row == other) for other in also] for row in also}
    none = [0] * len(also)
    return np.array([[*rows[position], *units.get(position, none), *rows[position]] for position in wanted], np.int64)
