"""The record of a unit as bytes: what makes a write of a stripe valid. No I/O.

A record is one block. It stands before the bytes of each unit, and says whose they are; and once more in the table at
the start of the drive, where it is written when the units of a stripe are on all their drives. A record in a table
says that the whole stripe was written. It has the checksums of all units.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from dataclasses import dataclass
from enum import Enum

from rackloop.abilities.blocks import BLOCK_BYTES

FORMAT = 1
DIGEST_BYTES = 16
STORE_ID_BYTES = 16
# What a removed object has for a length.
REMOVED = -1

_MAGIC = b"RLSU"
# Magic, format, store, stripe, position, drive number, generation, length, digest; the units' checksums; its own.
_HEAD = struct.Struct(f">4sH{STORE_ID_BYTES}sIHHQq{DIGEST_BYTES}sH")
_CRC = struct.Struct(">I")


@dataclass(frozen=True, order=True)
class Version:
    """One write of an object. Two are the same only when generation and content are.

    ``length`` is :data:`REMOVED` for one that was removed. ``checksums`` are the CRC-32 of what is stored of each unit.
    """

    generation: int
    digest: bytes
    length: int
    checksums: tuple[int, ...]

    @property
    def slot(self) -> int:
        """The slot of its places, of two, that it lies in."""
        return self.generation % 2

    @property
    def is_removed(self) -> bool:
        """Whether it says that the object is gone."""
        return self.length == REMOVED


@dataclass(frozen=True)
class Where:
    """The place that a record says it is for; found elsewhere, it is misplaced."""

    store_id: bytes
    stripe: int
    position: int
    drive: int


class CorruptRecord(Enum):
    """A block that should have a record and has none for this place."""

    EMPTY = "empty"
    DAMAGED = "damaged"
    MISPLACED = "misplaced"


def digest_of(data: bytes) -> bytes:
    """A digest that tells contents apart."""
    return hashlib.blake2b(data, digest_size=DIGEST_BYTES).digest()


def pack_record(where: Where, version: Version) -> bytes:
    """The block of a record. The checksum covers all of it, padding and all."""
    head = _HEAD.pack(
        _MAGIC,
        FORMAT,
        where.store_id,
        where.stripe,
        where.position,
        where.drive,
        version.generation,
        version.length,
        version.digest,
        len(version.checksums),
    )
    checksums = struct.pack(f">{len(version.checksums)}I", *version.checksums)
    block = (_CRC.pack(0) + head + checksums).ljust(BLOCK_BYTES, b"\0")
    return _CRC.pack(zlib.crc32(block)) + block[_CRC.size :]


def read_record(block: bytes, where: Where) -> Version | CorruptRecord:
    """The version that a block has a record of, if it is for this place. Formatting fills the blocks with zeros."""
    if not any(block):
        return CorruptRecord.EMPTY
    (crc,) = _CRC.unpack_from(block)
    if zlib.crc32(block[_CRC.size :], zlib.crc32(bytes(_CRC.size))) != crc:
        return CorruptRecord.DAMAGED
    if not block.startswith(_MAGIC, _CRC.size):
        return CorruptRecord.DAMAGED
    (_, found, store_id, stripe, position, drive, generation, length, digest, count) = _HEAD.unpack_from(
        block, _CRC.size
    )
    if found != FORMAT or Where(store_id, stripe, position, drive) != where:
        return CorruptRecord.MISPLACED
    checksums = struct.unpack_from(f">{count}I", block, _CRC.size + _HEAD.size)
    return Version(generation, digest, length, checksums)
