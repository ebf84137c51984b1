"""Redundancy beside galois (https://mhostetter.github.io/galois/), which knows nothing of ours but the fields."""

from __future__ import annotations

from functools import cache
from typing import Any

import galois
import numpy as np
import pytest
from numpy.typing import NDArray

from rackloop_models.erasure import GF8, GF16, Code, Field

SECTOR_BYTES = 64
OCTIC = "x^8+x^4+x^3+x^2+1"


@cache
def image(field: Field) -> tuple[Any, NDArray[np.int64]]:
    """A field of galois, and the element of it that each element of ours is.

    GF(2^16) is a tower of ours and not of galois: a root of the octic in it stands for the x of GF(2^8), and a root of
    x^2 + x + 32 for the x above. Sums are exclusive or in both, so that the images of sixteen bits give all others.
    """
    if field == GF8:
        return galois.GF(2**8, irreducible_poly=OCTIC), np.arange(256)
    large = galois.GF(2**16)
    beta = galois.Poly.Str(OCTIC, field=large).roots()[0]
    low = [beta**power for power in range(8)]
    gamma = galois.Poly([1, 1, int(low[5])], field=large).roots()[0]
    basis = np.array([int(bit) for bit in (*low, *(bit * gamma for bit in low))], np.int64)
    numbers = np.arange(1 << 16)
    bits = numbers[:, None] >> np.arange(16) & 1
    return large, np.bitwise_xor.reduce(np.where(bits, basis, 0), axis=1)


def words(field: Field, sectors: NDArray[np.uint8]) -> NDArray[np.int64]:
    """The symbols of each sector: bytes, or those of its halves in pairs."""
    if field == GF8:
        return sectors.astype(np.int64)
    half = sectors.shape[1] // 2
    return sectors[:, :half].astype(np.int64) | sectors[:, half:].astype(np.int64) << 8


@pytest.mark.parametrize("field", [GF8, GF16])
def test_ours_is_the_field_that_it_is_compared_in(field: Field) -> None:
    large, of = image(field)
    assert len(np.unique(of)) == field.order
    assert (of[0], of[1]) == (0, 1)
    if field == GF16:
        # 32 is the constant of the quadratic whose root the byte above stands for.
        root = large(of[1 << 8])
        assert root * root + root + large(of[32]) == 0


@pytest.mark.parametrize(
    ("k", "m", "field"),
    [(4, 2, GF8), (252, 3, GF8), (246, 9, GF8), (4, 2, GF16), (300, 5, GF16), (1014, 9, GF16), (1004, 19, GF16)],
)
def test_redundancy_is_the_product_with_the_generator_matrix(k: int, m: int, field: Field) -> None:
    large, of = image(field)
    codeword = np.random.default_rng(k).integers(0, 256, (k + m, SECTOR_BYTES), np.uint8)
    Code(k, m, field).encode(codeword[:k], codeword[k:])
    x, y = large(of[field.order - 1 - np.arange(m)]), large(of[np.arange(k)])
    generator = (x[0] + y)[None, :] / (x[:, None] + y[None, :])
    expected = generator @ large(of[words(field, codeword[:k])])
    assert (np.asarray(expected) == of[words(field, codeword[k:])]).all()


@pytest.mark.parametrize(("k", "m", "field"), [(30, 6, GF8), (300, 6, GF16)])
def test_what_is_decoded_solves_the_equations_of_the_code(k: int, m: int, field: Field) -> None:
    large, of = image(field)
    chance = np.random.default_rng(m)
    codeword = chance.integers(0, 256, (k + m, SECTOR_BYTES), np.uint8)
    code = Code(k, m, field)
    code.encode(codeword[:k], codeword[k:])
    lost = sorted(chance.choice(k, m, replace=False).tolist())
    damaged = codeword.copy()
    damaged[lost] = 0
    code.decode(damaged, lost)
    x, y = large(of[field.order - 1 - np.arange(m)]), large(of[np.arange(k)])
    generator = (x[0] + y)[None, :] / (x[:, None] + y[None, :])
    known = [column for column in range(k) if column not in lost]
    data = large(of[words(field, codeword[:k])])
    right = generator[:, known] @ data[known] + large(of[words(field, codeword[k:])])
    solved = np.linalg.solve(generator[:, lost], right)
    assert (np.asarray(solved) == of[words(field, damaged[lost])]).all()
