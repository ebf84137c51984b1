"""Units and records on their drives: read and judged, written and made to stay."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import partial

from rackloop.abilities.blocks import BLOCK_BYTES
from rackloop_models.rack_erasure._drives import Drives, DriveUnavailable, Unreadable
from rackloop_models.rack_erasure._label import Label
from rackloop_models.rack_erasure._layout import SLOTS
from rackloop_models.rack_erasure._record import CorruptRecord, Version, Where, pack_record, read_record
from rackloop_models.rack_erasure._state import Counts

_NOTHING = bytes(BLOCK_BYTES)
_SCANNED_BYTES = 1 << 20

# What the two slots of a place have a record of; None where it cannot be read.
Records = tuple[Version | CorruptRecord | None, Version | CorruptRecord | None]


class UnitError(Enum):
    """The reason why a unit cannot be had from its drive."""

    GONE = "gone"
    UNREADABLE = "unreadable"
    DAMAGED = "damaged"
    STALE = "stale"
    MISPLACED = "misplaced"


class Units:
    """The units of the stripes of a store, by stripe and position."""

    def __init__(self, label: Label, drives: Drives, counts: Counts) -> None:
        self._store_id = label.store_id
        self._layout = label.layout
        self._drives = drives
        self._counts = counts

    def read(self, stripe: int, position: int, version: Version) -> bytes | UnitError:
        """The stored bytes of a unit of this version, or why it cannot be had."""
        unit = self._layout.stripes[stripe][position]
        stored = self._layout.code.stored_bytes(position, version.length)
        try:
            raw = self._drives.read(
                unit.drive, self._layout.unit_offset(unit.place, version.slot), BLOCK_BYTES + stored
            )
        except DriveUnavailable:
            return UnitError.GONE
        except Unreadable:
            return self._noted(UnitError.UNREADABLE)
        found = read_record(raw[:BLOCK_BYTES], self._where(stripe, position))
        if found is CorruptRecord.MISPLACED:
            return self._noted(UnitError.MISPLACED)
        if found is CorruptRecord.DAMAGED:
            return self._noted(UnitError.DAMAGED)
        if found != version:
            return self._noted(UnitError.STALE)
        data = raw[BLOCK_BYTES:]
        if zlib.crc32(data) != version.checksums[position]:
            return self._noted(UnitError.DAMAGED)
        return data

    def read_each(self, stripe: int, positions: Sequence[int], version: Version) -> dict[int, bytes | UnitError]:
        """Units of a stripe, read at the same time."""
        read = self._drives.at_once([partial(self.read, stripe, at, version) for at in positions])
        return dict(zip(positions, read, strict=True))

    def write_each(self, stripe: int, units: Mapping[int, bytes], version: Version) -> list[int]:
        """Put units of a version where they belong, not yet valid; the positions at which they stay."""
        slot = version.slot
        pieces = {}
        for position, data in units.items():
            place = self._layout.stripes[stripe][position].place
            record = pack_record(self._where(stripe, position), version)
            pieces[position] = [(self._layout.unit_offset(place, slot), record + data)] if data else []
        return self._put(stripe, pieces)

    def record_each(self, stripe: int, positions: Sequence[int], version: Version) -> list[int]:
        """Say at these positions that a version is valid; those at which that stays."""
        slot = version.slot
        pieces = {}
        for position in positions:
            place = self._layout.stripes[stripe][position].place
            record = pack_record(self._where(stripe, position), version)
            pieces[position] = [(self._layout.record_offset(place, slot), record)]
        return self._put(stripe, pieces)

    def forget_each(self, stripe: int, slots: Mapping[int, Sequence[int]]) -> None:
        """Take the records out of these slots of these positions."""
        stripes = self._layout.stripes[stripe]
        self._put(
            stripe,
            {
                position: [(self._layout.record_offset(stripes[position].place, slot), _NOTHING) for slot in these]
                for position, these in slots.items()
            },
        )

    def records(self, stripe: int, position: int) -> Records:
        """The records in the two slots of a place."""
        unit = self._layout.stripes[stripe][position]
        try:
            raw = self._drives.read(unit.drive, self._layout.record_offset(unit.place, 0), SLOTS * BLOCK_BYTES)
        except DriveUnavailable:
            return (None, None)
        except Unreadable:
            return self._one_by_one(stripe, position)
        return self._judged(raw, stripe, position)

    def records_of_drive(self, number: int) -> dict[int, Records]:
        """The records of all places of a drive, by stripe. What cannot be read is None."""
        places = self._layout.on_drive[number]
        each = SLOTS * BLOCK_BYTES
        at_once = _SCANNED_BYTES // each
        found: dict[int, Records] = {}
        for first in range(0, len(places), at_once):
            some = places[first : first + at_once]
            try:
                raw = self._drives.read(number, self._layout.record_offset(first, 0), len(some) * each)
            except DriveUnavailable:
                found |= {stripe: (None, None) for stripe, _ in some}
            except Unreadable:
                found |= {stripe: self.records(stripe, position) for stripe, position in some}
            else:
                for index, (stripe, position) in enumerate(some):
                    found[stripe] = self._judged(raw[index * each : (index + 1) * each], stripe, position)
        return found

    def _one_by_one(self, stripe: int, position: int) -> Records:
        unit = self._layout.stripes[stripe][position]
        read: list[Version | CorruptRecord | None] = []
        for slot in range(SLOTS):
            try:
                block = self._drives.read(unit.drive, self._layout.record_offset(unit.place, slot), BLOCK_BYTES)
            except (DriveUnavailable, Unreadable):
                read.append(None)
            else:
                read.append(read_record(block, self._where(stripe, position)))
        return (read[0], read[1])

    def _judged(self, raw: bytes, stripe: int, position: int) -> Records:
        where = self._where(stripe, position)
        return (read_record(raw[:BLOCK_BYTES], where), read_record(raw[BLOCK_BYTES:], where))

    def _where(self, stripe: int, position: int) -> Where:
        return Where(self._store_id, stripe, position, self._layout.stripes[stripe][position].drive)

    def _put(self, stripe: int, pieces: Mapping[int, list[tuple[int, bytes]]]) -> list[int]:
        def put(position: int) -> bool:
            try:
                self._drives.write(self._layout.stripes[stripe][position].drive, pieces[position])
            except DriveUnavailable:
                return False
            return True

        stayed = self._drives.at_once([partial(put, at) for at in pieces])
        return [position for position, did in zip(pieces, stayed, strict=True) if did]

    def _noted(self, wrong: UnitError) -> UnitError:
        self._counts.add(**{wrong.value: 1})
        return wrong
