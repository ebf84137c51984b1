"""Erasure codes computed from their definition, independent of the code under test."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray


def byte_product(a: int, b: int) -> int:
    """Multiply in GF(2)[x] / (x^8 + x^4 + x^3 + x^2 + 1), bit by bit."""
    product = 0
    for bit in range(8):
        if b >> bit & 1:
            product ^= a << bit
    for bit in range(14, 7, -1):
        if product >> bit & 1:
            product ^= 0b1_0001_1101 << (bit - 8)
    return product


def word_product(a: int, b: int) -> int:
    """Multiply in GF(2^8)[x] / (x^2 + x + 32), the low byte of a number being the constant term."""
    constant = byte_product(a & 255, b & 255)
    linear = byte_product(a & 255, b >> 8) ^ byte_product(a >> 8, b & 255)
    square = byte_product(a >> 8, b >> 8)
    return (constant ^ byte_product(square, 32)) | (linear ^ square) << 8


def product(bits: int, a: int, b: int) -> int:
    return byte_product(a, b) if bits == 8 else word_product(a, b)


@cache
def reciprocal(bits: int, a: int) -> int:
    """``a`` to the power of two less than there are elements."""
    result, square, exponent = 1, a, (1 << bits) - 2
    while exponent:
        if exponent & 1:
            result = product(bits, result, square)
        square = product(bits, square, square)
        exponent >>= 1
    return result


@cache
def coefficient(bits: int, row: int, column: int) -> int:
    """(x_0 + y_j) / (x_i + y_j), redundancy sectors counted down from the last element, user sectors up from 0."""
    last = (1 << bits) - 1
    return product(bits, last ^ column, reciprocal(bits, last - row ^ column))


def symbols(bits: int, sector: NDArray[np.uint8]) -> list[int]:
    """The symbols of a sector: its bytes, or those of its halves in pairs."""
    if bits == 8:
        return [int(byte) for byte in sector]
    half = len(sector) // 2
    return [int(low) | int(high) << 8 for low, high in zip(sector[:half], sector[half:], strict=True)]


def redundancy(bits: int, data: NDArray[np.uint8], m: int) -> NDArray[np.uint8]:
    """Every symbol of every redundancy sector as a sum of products."""
    sectors = [symbols(bits, sector) for sector in data]
    coded = np.zeros((m, data.shape[1]), np.uint8)
    for row in range(m):
        for place in range(len(sectors[0])):
            total = 0
            for column, sector in enumerate(sectors):
                total ^= product(bits, coefficient(bits, row, column), sector[place])
            coded[row, place] = total & 255
            if bits == 16:
                coded[row, place + data.shape[1] // 2] = total >> 8
    return coded
