"""The identified sector, made many at a time: 4 KiB that carry their store, address and generation.

The format is rackprobe's (``docs/reference/rackprobe.md``), byte for byte, so either checks what the other wrote.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
from crc32c import crc32c
from numpy.typing import NDArray

from rackloop.errors import BadInput

U32: TypeAlias = NDArray[np.uint32]
U64: TypeAlias = NDArray[np.uint64]

SECTOR_BYTES = 4096
# What every drive writes whole or not at all.
PIECE_BYTES = 512
SERIAL_BYTES = 44
MAGIC = b"RLSECTOR"
VERSION = 1
STAMPS = 8
HEADER_CHECKED = 84
HEADER = struct.Struct("<8sHHIQQQ44sI")
STAMP = struct.Struct("<QII")
CRC_AT = 4092
STAMPS_AT = (*range(PIECE_BYTES, SECTOR_BYTES, PIECE_BYTES), 4076)
_WORDS = SECTOR_BYTES // 8
_LANES = 8
_ROW = np.dtype("V64")
# Arrays of so many sectors' generators stay in the second-level cache, and a call to numpy is long beside its overhead.
_AT_ONCE = 1024
# Rows that begin a page apart would all fall into the same few lines of the caches.
_PAD = 8
_64 = (1 << 64) - 1


class Identity:
    """The identity of all sectors of one store and one run: its ``serial`` and the run's ``seed``.

    Threads may share one. Raises BadInput for a serial that is not 1 to 44 printable ASCII characters.
    """

    def __init__(self, serial: str, seed: int) -> None:
        if not can_be_stamped(serial):
            raise BadInput(
                f"{serial!r} cannot be stamped on sectors: name the store with 1 to {SERIAL_BYTES} ASCII characters"
            )
        if not 0 <= seed <= _64:
            raise BadInput(f"seed {seed} cannot be stamped on sectors: use 0 to 2^64 - 1")
        self.serial = serial
        self.seed = seed
        self._made = threading.local()
        self._hash = 0
        for byte in serial.encode():
            self._hash = mix(self._hash ^ byte)
        self._seed_mixed = np.uint64(mix(seed))
        header = HEADER.pack(MAGIC, VERSION, len(serial), 0, 0, 0, seed, serial.encode(), 0)
        self._header = np.frombuffer(header, np.uint8)

    def parts(self, lbas: U64, generations: U64) -> Iterator[tuple[slice, U64]]:
        """The sectors of these addresses and generations, a stretch at a time: which they are, and a row for each.

        The rows are good until the next ones are asked for, by this thread of this identity. About 2.5 GB/s on a core:
        the time goes into the payload's generators.
        """
        if (made := getattr(self._made, "rows", None)) is None:
            made = self._made.rows = np.empty((_AT_ONCE, _WORDS + _PAD), np.uint64)[:, :_WORDS]
        for start in range(0, len(lbas), _AT_ONCE):
            part = slice(start, min(start + _AT_ONCE, len(lbas)))
            rows = made[: part.stop - part.start]
            self._fill(rows, lbas[part], generations[part])
            yield part, rows

    def content(self, lbas: U64, generations: U64) -> bytes:
        """The same as bytes, one sector behind the other."""
        return b"".join(rows.tobytes() for _, rows in self.parts(lbas, generations))

    def places(self, lbas: U64) -> U32:
        """The place in the stamps of a sector: 32 bits of store, address and seed, mixed."""
        return (self._keys(lbas) >> np.uint64(32)).astype(np.uint32)

    def _keys(self, lbas: U64) -> U64:
        return _mixed(np.uint64(self._hash) ^ _mixed(lbas ^ self._seed_mixed))

    def _fill(self, sectors: U64, lbas: U64, generations: U64) -> None:
        keys = self._keys(lbas)
        places = (keys >> np.uint64(32)).astype(np.uint32)
        lanes = _mixed((keys ^ _mixed(generations))[:, None] ^ np.arange(_LANES, dtype=np.uint64)) | np.uint64(1)
        stripes = np.arange(1, STAMPS + 1, dtype=np.uint64) << np.uint64(32)
        checks = (_mixed(generations[:, None] ^ _mixed(stripes | places[:, None])) >> np.uint64(32)).astype(np.uint32)
        numbers = np.stack((lbas, generations), axis=1)

        _run_generators(sectors, lanes)
        content = sectors.view(np.uint8)
        content[:, : HEADER.size] = self._header
        sectors[:, 2:4] = numbers
        halves = sectors.view(np.uint32)
        halves[:, HEADER_CHECKED // 4] = _mixed(_crcs(content[:, :HEADER_CHECKED])) >> np.uint64(32)
        for stripe, at in enumerate(STAMPS_AT):
            # The trailer's stamp is not aligned to words of eight bytes.
            halves[:, at // 4 : at // 4 + 2] = numbers[:, 1:].view(np.uint32)
            halves[:, at // 4 + 2] = places
            halves[:, at // 4 + 3] = checks[:, stripe]
        halves[:, CRC_AT // 4] = _crcs(content[:, :CRC_AT])


def can_be_stamped(serial: str) -> bool:
    """Whether a name fits a sector: 1 to 44 printable ASCII characters."""
    return 1 <= len(serial) <= SERIAL_BYTES and serial.isascii() and serial.isprintable()


def mix(value: int) -> int:
    """The finisher of splitmix64: every bit of ``value`` spread over all 64."""
    value = (value + 0x9E3779B97F4A7C15) & _64
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _64
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _64
    return value ^ (value >> 31)


def _mixed(values: U64) -> U64:
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: U64 = values ^ (values >> np.uint64(31))
    return mixed


def _run_generators(sectors: U64, lanes: U64) -> None:
    """Eight xorshift64 generators (13, 7, 17) a sector; ``lanes`` are their states and are used up."""
    states = lanes.reshape(-1)
    shifted = np.empty_like(states)
    rows, state_rows = sectors.view(_ROW), states.view(_ROW)
    left, right, back = np.uint64(13), np.uint64(7), np.uint64(17)
    for row in range(_WORDS // _LANES):
        np.left_shift(states, left, out=shifted)
        np.bitwise_xor(states, shifted, out=states)
        np.right_shift(states, right, out=shifted)
        np.bitwise_xor(states, shifted, out=states)
        np.left_shift(states, back, out=shifted)
        np.bitwise_xor(states, shifted, out=states)
        rows[:, row] = state_rows


def _crcs(rows: NDArray[np.uint8]) -> U64:
    """The CRC-32C (Castagnoli) of each row."""
    return np.fromiter(map(crc32c, rows), np.uint64, len(rows))
