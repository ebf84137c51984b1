"""CRC-32C (Castagnoli) by tables of what each part of a sector adds.

The CRC is linear over GF(2) but for a constant: that of a message is the exclusive or of what each of its bytes adds
at its place. So the CRC of thousands of sectors is a few look-ups for each of them, in numpy and without a call a
sector, where a library is given one sector at a time.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

U32: TypeAlias = NDArray[np.uint32]
Bytes: TypeAlias = NDArray[np.uint8]

_POLYNOMIAL = 0x82F63B78
_ONES = 0xFFFFFFFF


@cache
def table() -> U32:
    """What one byte makes of an empty register."""
    entries = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        entries = np.where(entries & 1, (entries >> 1) ^ np.uint32(_POLYNOMIAL), entries >> 1)
    return entries


def crc32c(message: bytes) -> int:
    """The CRC of a short message, a byte at a time."""
    steps = _steps()
    register = _ONES
    for byte in message:
        register = steps[(register ^ byte) & 0xFF] ^ (register >> 8)
    return register ^ _ONES


def added_by_messages(messages: Bytes) -> U32:
    """What each row adds to the CRC of a message of zeros as long as it is."""
    steps = table()
    register = np.zeros(len(messages), np.uint32)
    for column in np.ascontiguousarray(messages.T):
        register = steps[(register ^ column) & np.uint32(0xFF)] ^ (register >> np.uint32(8))
    return register


def added_by_bytes(length: int, places: Collection[int]) -> dict[int, U32]:
    """For each place of a message of ``length`` bytes: what each of the 256 values adds there."""
    steps = table()
    wanted = set(places)
    added = {}
    entries = steps
    for place in range(length - 1, min(wanted) - 1, -1):
        if place in wanted:
            added[place] = entries
        entries = steps[entries & np.uint32(0xFF)] ^ (entries >> np.uint32(8))
    return added


def by_byte(added_by_bit: U32) -> U32:
    """From what each of the eight bits of a byte adds (last axis), what each of its 256 values does."""
    values = np.arange(256, dtype=np.uint8)
    bits = np.unpackbits(values[:, None], axis=1, bitorder="little").astype(bool)
    chosen = np.where(bits, added_by_bit[..., None, :], np.uint32(0))
    added: U32 = np.bitwise_xor.reduce(chosen, axis=-1)
    return added


@cache
def _steps() -> tuple[int, ...]:
    return tuple(int(entry) for entry in table())
