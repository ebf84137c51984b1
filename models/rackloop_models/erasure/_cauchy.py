"""The generator matrix: one for each field, of which every code takes the first rows and columns.

Redundancy sector ``i`` has the point ``order - 1 - i``, user sector ``j`` the point ``j``. The coefficient is
``(x_0 + y_j) / (x_i + y_j)``: Cauchy's ``1 / (x_i + y_j)`` with each column scaled, so that redundancy sector 0 is
the exclusive or of the user sectors. Every square part of a Cauchy matrix can be inverted, and scaling a column keeps
that, so any ``m`` sectors of a codeword can be computed from the others.
"""

from __future__ import annotations

from collections.abc import Sequence

from rackloop_models.erasure._field import Elements, Field


def coefficients(field: Field, rows: Elements, columns: Elements) -> Elements:
    """The factors of the user sectors ``columns`` in the redundancy sectors ``rows``."""
    last = field.order - 1
    scales = field.log[last ^ columns]
    sums = field.log[(last - rows)[:, None] ^ columns[None, :]]
    elements: Elements = field.exp[scales[None, :] - sums + last]
    return elements


def inverse(field: Field, rows: Sequence[int], columns: Sequence[int]) -> list[list[int]]:
    """The inverse of the square part of the generator matrix at ``rows`` and ``columns``, by Cauchy's formula.

    A quadratic number of operations, where elimination needs a cubic one. The parts that are inverted are small, and
    numpy would take longer to be called.
    """
    last, log, exp = field.order - 1, field.log_list, field.exp_list
    x, y = [last - row for row in rows], columns
    sums = [[log[of_row ^ of_column] for of_row in x] for of_column in y]
    of_rows = [
        sum(column) - _differences(log, of_row, x) for of_row, column in zip(x, zip(*sums, strict=True), strict=True)
    ]
    of_columns = [
        sum(row) - _differences(log, of_column, y) - log[last ^ of_column]
        for of_column, row in zip(y, sums, strict=True)
    ]
    return [
        [exp[(of_column + of_row - one) % last] for of_row, one in zip(of_rows, row, strict=True)]
        for of_column, row in zip(of_columns, sums, strict=True)
    ]


def _differences(log: list[int], point: int, points: Sequence[int]) -> int:
    """The logarithm of the product of the differences of a point from all others."""
    return sum(log[point ^ other] for other in points if other != point)
