"""Metadata sectors, each kept as a lead sector and shadow sectors behind it with the same content."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rackloop_models.local_erasure._drive import Drive
from rackloop_models.local_erasure._errors import ReplicasDisagree
from rackloop_models.local_erasure._layout import SECTOR_BYTES

# magic, kind, CRC-32 of the rest, generation, number in its area, id of the store
_HEADER = struct.Struct("<4s4sIxxxxQQ16s")
_MAGIC = b"LEC1"
_CRC_AT, _CRC_END = 8, 12

HEADER_BYTES = _HEADER.size
PAYLOAD_BYTES = SECTOR_BYTES - HEADER_BYTES


@dataclass(frozen=True)
class Sealed:
    """The content of one replica: the newest ``generation`` of a sector counts."""

    generation: int
    payload: bytes


def seal(kind: bytes, number: int, store_id: bytes, content: Sealed) -> bytes:
    """A metadata sector: its payload, who and how new it is, and a CRC-32 over all of it."""
    if len(content.payload) > PAYLOAD_BYTES:
        raise ValueError(f"a metadata sector holds {PAYLOAD_BYTES} bytes, found {len(content.payload)}")
    payload = content.payload.ljust(PAYLOAD_BYTES, b"\0")
    head = _HEADER.pack(_MAGIC, kind, 0, content.generation, number, store_id)
    crc = zlib.crc32(payload, zlib.crc32(head[_CRC_END:], zlib.crc32(head[:_CRC_AT])))
    return head[:_CRC_AT] + crc.to_bytes(4, "little") + head[_CRC_END:] + payload


def unseal(raw: bytes, kind: bytes) -> tuple[int, bytes, Sealed] | None:
    """Number in its area, id of the store and content, or None where the sector is not of this kind or is damaged."""
    magic, found, crc, generation, number, store_id = _HEADER.unpack_from(raw)
    if magic != _MAGIC or found != kind:
        return None
    body = memoryview(raw)
    if zlib.crc32(body[_CRC_END:], zlib.crc32(body[:_CRC_AT])) != crc:
        return None
    return number, store_id, Sealed(generation, raw[HEADER_BYTES:])


class ReplicatedArea:
    """``count`` metadata sectors of one kind from sector ``first`` of the drive on, each ``replicas`` times.

    Reading takes the lead, then the shadows, of those that are whole the newest; replicas that cannot be read, are
    damaged or older are written again and counted. When none is whole, the drive is let retry.
    """

    def __init__(self, drive: Drive, kind: bytes, first: int, count: int, replicas: int, store_id: bytes) -> None:
        self.count = count
        self.replicas = replicas
        self.kind = kind
        self._drive = drive
        self._first = first
        self._store_id = store_id

    def places(self, number: int) -> list[int]:
        """The sectors of the drive that hold replicas of a sector, the lead first."""
        lead = self._first + number * self.replicas
        return list(range(lead, lead + self.replicas))

    def read(self, number: int, *, repair: bool = True) -> Sealed:
        """A sector. Raises ReplicasDisagree where none of its replicas is whole, or two of one age differ."""
        places = self.places(number)
        found = self._judge(number, self._drive.read_metadata(places[0], self.replicas), repair=repair)
        if isinstance(found, str):
            raise ReplicasDisagree(f"metadata sector {number} of kind {self.kind.decode()}", places, found)
        return found

    def read_all(self, count: int | None = None, *, repair: bool = True) -> list[Sealed]:
        """The first ``count`` sectors, else all. Raises as ``read`` does."""
        found: list[Sealed] = []
        for number, sealed in enumerate(self.read_each(self.count if count is None else count, repair=repair)):
            if isinstance(sealed, str):
                what = f"metadata sector {number} of kind {self.kind.decode()}"
                raise ReplicasDisagree(what, self.places(number), sealed)
            found.append(sealed)
        return found

    def read_each(self, count: int, *, repair: bool = True) -> list[Sealed | str]:
        """The first ``count`` sectors; in place of one that cannot be believed, why."""
        raws = self._drive.read_metadata(self._first, count * self.replicas)
        return [
            self._judge(number, raws[number * self.replicas : (number + 1) * self.replicas], repair=repair)
            for number in range(count)
        ]

    def write(self, contents: Mapping[int, Sealed]) -> None:
        """Write sectors, all replicas, in as few requests as they lie together."""
        numbers = sorted(contents)
        run: list[bytes] = []
        for place, number in enumerate(numbers):
            run += [seal(self.kind, number, self._store_id, contents[number])] * self.replicas
            if place + 1 == len(numbers) or numbers[place + 1] != number + 1:
                self._drive.write_metadata(self.places(number)[-1] + 1 - len(run), run)
                run = []

    def _judge(self, number: int, raws: Sequence[bytes | None], *, repair: bool) -> Sealed | str:
        lead = raws[0]
        alike = lead is not None and all(raw == lead for raw in raws[1:])
        whole = [self._believed(number, raw) for raw in (raws[:1] if alike else raws)]
        if not any(whole):
            whole = [self._believed(number, self._drive.retry_metadata(place)) for place in self.places(number)]
        valid = [sealed for sealed in whole if sealed]
        if not valid:
            return "nothing whole can be read"
        newest = max(valid, key=lambda sealed: sealed.generation)
        if any(sealed.generation == newest.generation and sealed != newest for sealed in valid):
            return f"different contents of one generation, {newest.generation},"
        wrong = [place for place, sealed in zip(self.places(number), whole, strict=False) if sealed != newest]
        if wrong and repair:
            self._drive.statistics.metadata_repairs += len(wrong)
            for place in wrong:
                self._drive.write_metadata(place, [seal(self.kind, number, self._store_id, newest)])
        return newest

    def _believed(self, number: int, raw: bytes | None) -> Sealed | None:
        found = None if raw is None else unseal(raw, self.kind)
        return found[2] if found and found[:2] == (number, self._store_id) else None
