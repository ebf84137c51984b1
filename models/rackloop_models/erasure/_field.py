"""The two fields of the codes, whose arithmetic on sectors is in either case that of bytes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Elements = NDArray[np.int64]

# x^8 + x^4 + x^3 + x^2 + 1, which is ISA-L's: 2 generates all of the field but 0.
POLYNOMIAL = 0x11D
# GF(2^16) is GF(2^8)[x] / (x^2 + x + DELTA), with the smallest DELTA for which that does not fall apart.
DELTA = 0x20


def _powers_of_two() -> Elements:
    powers = [1]
    while len(powers) < 255:
        doubled = powers[-1] << 1
        powers.append(doubled ^ POLYNOMIAL if doubled > 0xFF else doubled)
    return np.array(powers)


@dataclass(frozen=True)
class Field:
    """A field of ``2**bits`` elements, each kept in ``parts`` bytes; a sector is as many planes, the lowest first.

    An element of GF(2^16) is ``low + high * x``, written as the number ``low | high << 8``. A sector holds the low
    bytes of its symbols in its first half and the high bytes in its second, so that to multiply it by an element is
    to multiply two planes by a 2 x 2 block of bytes.
    """

    bits: int
    generator: int

    @property
    def order(self) -> int:
        """The number of elements."""
        return 1 << self.bits

    @property
    def parts(self) -> int:
        """Planes of a sector, and bytes of an element."""
        return self.bits // 8

    @cached_property
    def exp(self) -> Elements:
        """The powers of the generator, twice over, so that a sum of two logarithms needs no remainder."""
        if self.parts == 1:
            powers = _powers_of_two()
        else:
            powers = np.ones(1, np.int64)
            step = np.array([self.generator])
            while len(powers) < self.order:
                powers = np.concatenate([powers, _tower_product(powers, step)])
                step = _tower_product(step, step)
            powers = powers[: self.order - 1]
        return np.concatenate([powers, powers])

    @cached_property
    def log(self) -> Elements:
        """The logarithm of every element but 0, whose entry means nothing."""
        logarithms = np.zeros(self.order, np.int64)
        logarithms[self.exp[: self.order - 1]] = np.arange(self.order - 1)
        return logarithms

    @cached_property
    def exp_list(self) -> list[int]:
        """``exp`` for arithmetic on single elements."""
        return [int(power) for power in self.exp]

    @cached_property
    def log_list(self) -> list[int]:
        """``log`` for arithmetic on single elements."""
        return [int(logarithm) for logarithm in self.log]

    def multiply(self, a: Elements, b: Elements) -> Elements:
        """The products of elements, as numpy broadcasts them."""
        product = self.exp[self.log[a] + self.log[b]]
        return np.where((a == 0) | (b == 0), 0, product)

    def matrix_product(self, a: Elements, b: Elements) -> Elements:
        """The product of two matrices."""
        rows = [np.bitwise_xor.reduce(self.multiply(row[:, None], b), axis=0) for row in a]
        return np.array(rows, np.int64).reshape(a.shape[0], b.shape[1])

    def byte_matrix(self, matrix: Elements) -> Bytes:
        """The matrix over bytes that does to planes what ``matrix`` does to sectors."""
        if self.parts == 1:
            return matrix.astype(np.uint8)
        low, high = matrix & 0xFF, matrix >> 8
        blocks = np.empty((matrix.shape[0], 2, matrix.shape[1], 2), np.uint8)
        blocks[:, 0, :, 0] = low
        blocks[:, 0, :, 1] = delta_products()[high]
        blocks[:, 1, :, 0] = high
        blocks[:, 1, :, 1] = low ^ high
        return blocks.reshape(2 * matrix.shape[0], 2 * matrix.shape[1])

    def __str__(self) -> str:
        return f"GF(2^{self.bits})"


@cache
def delta_products() -> Elements:
    """The products of all bytes with ``DELTA``."""
    return GF8.multiply(np.arange(GF8.order), np.array(DELTA))


def _tower_product(a: Elements, b: Elements) -> Elements:
    """Products in GF(2^16), by those in GF(2^8): x * x = x + DELTA."""
    multiply = GF8.multiply
    a_low, a_high, b_low, b_high = a & 0xFF, a >> 8, b & 0xFF, b >> 8
    highs = multiply(a_high, b_high)
    low = multiply(a_low, b_low) ^ multiply(highs, np.array(DELTA))
    return low | (multiply(a_low, b_high) ^ multiply(a_high, b_low) ^ highs) << 8


GF8 = Field(bits=8, generator=0x02)
GF16 = Field(bits=16, generator=0x104)
