"""Records of the log and the block that holds a drive's key, as bytes. No I/O.

A record is a header and its payload, padded to whole blocks. It carries a CRC-32 of itself, which the next record
repeats: what an earlier writer left behind a record that was torn cannot be taken for a continuation of what is
written in its place.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

from rackloop.abilities.blocks import BLOCK_BYTES
from rackloop.errors import ProductFailed
from rackloop_models.lwfs._token import KEY_BYTES

_HEADER = struct.Struct(">4s16sQIII")
_RECORD_MAGIC = b"LWR1"
_KEY_BLOCK = struct.Struct(f">4s32sQ{KEY_BYTES}sI")
_KEY_MAGIC = b"LWK1"
_CRC_BYTES = 4

HEADER_BYTES = _HEADER.size


class NoStore(ProductFailed):
    """A drive carries no store, or another drive's."""


@dataclass(frozen=True)
class Header:
    """The header of a payload. ``previous_crc`` is the CRC-32 of the record before, 0 for the first of a file."""

    file_id: bytes
    sequence: int
    length: int
    previous_crc: int
    crc: int

    @property
    def blocks(self) -> int:
        """The number of blocks for the record."""
        return blocks_for(self.length)


@dataclass(frozen=True)
class DriveKey:
    """The key by which a drive is known and its tokens are signed. ``generation`` counts the keys it has had."""

    drive_id: str
    generation: int
    key: bytes


def blocks_for(payload_bytes: int) -> int:
    """The number of blocks for a record with a payload of this length."""
    return -(-(HEADER_BYTES + payload_bytes) // BLOCK_BYTES)


def pack_record(file_id: bytes, sequence: int, payload: bytes, previous_crc: int) -> tuple[bytes, int]:
    """A record, in whole blocks, and its CRC-32."""
    unsealed = _HEADER.pack(_RECORD_MAGIC, file_id, sequence, len(payload), previous_crc, 0)[:-_CRC_BYTES]
    crc = zlib.crc32(payload, zlib.crc32(unsealed))
    record = unsealed + crc.to_bytes(_CRC_BYTES, "big") + payload
    return record.ljust(blocks_for(len(payload)) * BLOCK_BYTES, b"\0"), crc


def read_header(raw: bytes) -> Header | None:
    """The header at the start of ``raw``, or None where there is none. It is only believed with its payload."""
    magic, file_id, sequence, length, previous_crc, crc = _HEADER.unpack_from(raw)
    return Header(file_id, sequence, length, previous_crc, crc) if magic == _RECORD_MAGIC else None


def payload_of(raw: bytes, header: Header) -> bytes | None:
    """The payload of a record, or None where it or its header is not as it was written."""
    payload = raw[HEADER_BYTES : HEADER_BYTES + header.length]
    unsealed = raw[: HEADER_BYTES - _CRC_BYTES]
    whole = len(payload) == header.length and zlib.crc32(payload, zlib.crc32(unsealed)) == header.crc
    return payload if whole else None


def pack_key(key: DriveKey) -> bytes:
    """The block that holds a drive's key. All that counts lies in its first sector, which is written whole or not.

    Raises ValueError where the drive's id has more than 32 bytes or the key another length.
    """
    name = key.drive_id.encode()
    if len(name) > 32 or len(key.key) != KEY_BYTES:
        raise ValueError(f"a drive's id has at most 32 bytes and its key {KEY_BYTES}; shorten {key.drive_id!r}")
    body = _KEY_BLOCK.pack(_KEY_MAGIC, name, key.generation, key.key, 0)[:-_CRC_BYTES]
    return (body + zlib.crc32(body).to_bytes(_CRC_BYTES, "big")).ljust(BLOCK_BYTES, b"\0")


def read_key(raw: bytes) -> DriveKey:
    """The key in a block. Raises NoStore where there is none."""
    magic, name, generation, key, crc = _KEY_BLOCK.unpack_from(raw)
    if magic != _KEY_MAGIC or zlib.crc32(raw[: _KEY_BLOCK.size - _CRC_BYTES]) != crc:
        raise NoStore("block 0 holds no key: format the drive first")
    return DriveKey(name.rstrip(b"\0").decode(), generation, key)
