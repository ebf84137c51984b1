"""Stores of coded stripes, each with one intermittent defect."""

from __future__ import annotations

import errno
from collections.abc import Callable

import numpy as np

from rackloop.abilities.blocks import IoFailed
from rackloop_oracles.recovery import BlocksUnreadable, Health, Place, RecoveryState
from tests.unit.oracles.coded_store import CodedStore
from tests.unit.oracles.faulty_blocks import SECTOR


class LosesTheSecond(CodedStore):
    """Of two writes of one block that follow each other the second is acknowledged and not done."""

    last: int | None = None

    def put(self, first: int, data: bytes) -> None:
        is_second = len(data) == SECTOR and self.last == first
        self.last = first if len(data) == SECTOR and not is_second else None
        if not is_second:
            super().put(first, data)


class OldContentOfAnother(CodedStore):
    """Gives what the next block held at first, for one that it could not read."""

    def put(self, first: int, data: bytes) -> None:
        for number in range(len(data) // SECTOR):
            self.__dict__.setdefault("at_first", {}).setdefault(first + number, data[number * SECTOR :][:SECTOR])
        super().put(first, data)

    def block(self, stripe: int, unit: int) -> bytes:
        if self.read(stripe, unit) is not None:
            return super().block(stripe, unit)
        self.damaged.add(stripe)
        old: bytes = self.__dict__["at_first"][(stripe * self.k + unit + 1) % (self.stripes * self.k - self.short)]
        return old


class TakesOthersForErased(CodedStore):
    """Decodes as if the units behind the erased ones were missing."""

    def decoded(self, stripe: int, wanted: list[int]) -> dict[int, bytes]:
        right = super().decoded(stripe, wanted)
        units = self.data_units(stripe) + self.m
        erased = [unit for unit in range(units) if self.read(stripe, unit) is None]
        codeword = np.zeros((units, SECTOR), np.uint8)
        for unit in range(units):
            codeword[unit] = np.frombuffer(self.read(stripe, unit) or bytes(SECTOR), np.uint8)
        self.code.decode(codeword, sorted({(unit + 1) % units for unit in erased}))
        return {unit: codeword[unit].tobytes() for unit in right}


class RedundancyLater(CodedStore):
    """Acknowledges, and flushes, before there is redundancy; a repair makes it."""

    def store(self, stripe: int, data: list[bytes]) -> None:
        if self.is_repairing or not self.checksums.keys() >= {(stripe, unit) for unit in range(len(data) + self.m)}:
            super().store(stripe, data)
        else:
            for unit, content in enumerate(data):
                self.write(stripe, unit, content)

    def repair_stripe(self, stripe: int) -> None:
        self.store(stripe, self.data(stripe))


class RebuildSkips(CodedStore):
    """Leaves one stripe out."""

    def repair_stripe(self, stripe: int) -> None:
        if stripe != 2:
            super().repair_stripe(stripe)


class RebuildResurrects(CodedStore):
    """Puts back what a unit held before it was last written."""

    def write(self, stripe: int, unit: int, content: bytes) -> None:
        held = self.__dict__.setdefault("held", {}).setdefault((stripe, unit), [content])
        if not self.is_repairing:
            held.append(content)
        super().write(stripe, unit, content)

    def repair_stripe(self, stripe: int) -> None:
        for unit in range(self.data_units(stripe)):
            if self.read(stripe, unit) is None:
                self.write(stripe, unit, self.__dict__["held"][stripe, unit][-2])
        super().repair_stripe(stripe)


class RebuildSpoilsAnother(CodedStore):
    """Writes what it rebuilds over the last whole stripe as well, with redundancy that belongs to it."""

    def repair_stripe(self, stripe: int) -> None:
        units = range(self.data_units(stripe) + self.m)
        has_lost = any(self.read(stripe, unit) is None for unit in units)
        super().repair_stripe(stripe)
        if has_lost and stripe < self.stripes - 2:
            self.store(self.stripes - 2, self.data(stripe))


class WrongForOnePattern(CodedStore):
    """Decodes all but one pattern."""

    def decoded(self, stripe: int, wanted: list[int]) -> dict[int, bytes]:
        found = super().decoded(stripe, wanted)
        units = range(self.data_units(stripe) + self.m)
        if [unit for unit in units if self.read(stripe, unit) is None] != [1, 3]:
            return found
        return {unit: content[::-1] for unit, content in found.items()}


class LostOnceRepaired(CodedStore):
    """Says that it has lost data once all is well again."""

    was_damaged = False

    def recovery_state(self) -> RecoveryState:
        self.was_damaged |= bool(self.damaged)
        is_well = self.was_damaged and not self.damaged and not self.is_repairing
        return RecoveryState(Health.LOST) if is_well else super().recovery_state()


class RebuildUndoesWrites(CodedStore):
    """Reads all, and writes it in the end, over what was written meanwhile."""

    def repair(self, pause: Callable[[], None]) -> None:
        self.is_repairing = True
        found: dict[int, list[bytes]] = {}
        for stripe in range(self.stripes):
            units = range(self.data_units(stripe) + self.m)
            try:
                if any(self.read(stripe, unit) is None for unit in units):
                    found[stripe] = self.data(stripe)
            except BlocksUnreadable:
                continue
        pause()
        for stripe, data in found.items():
            self.damaged.discard(stripe)
            self.store(stripe, data)
        self.is_repairing = False


class WrongAlone(CodedStore):
    """Gives zeros where it is asked for one damaged block only."""

    def get(self, first: int, count: int) -> bytes:
        if count == 1 and self.read(*divmod(first, self.k)) is None:
            return bytes(SECTOR)
        return super().get(first, count)


class WrongAcross(CodedStore):
    """Repeats the first block of a request at its end where that lies in two stripes and one is damaged."""

    def get(self, first: int, count: int) -> bytes:
        data = super().get(first, count)
        is_across = first // self.k != (first + count - 1) // self.k
        return data[:-SECTOR] + data[:SECTOR] if is_across and self.damaged else data


class WholeStripesWithoutRedundancy(CodedStore):
    """Writes no redundancy for writes of a whole stripe that is damaged."""

    def put(self, first: int, data: bytes) -> None:
        stripe, unit = divmod(first, self.k)
        if unit or len(data) // SECTOR != self.data_units(stripe) or stripe not in self.damaged:
            super().put(first, data)
            return
        for unit in range(self.data_units(stripe)):
            self.write(stripe, unit, data[unit * SECTOR :][:SECTOR])


class BelievesOneOfTwo(CodedStore):
    """Corrects one wrong unit of a stripe; of two it gives what the drive says."""

    def block(self, stripe: int, unit: int) -> bytes:
        bad = [at for at in range(self.data_units(stripe) + self.m) if self.read(stripe, at) is None]
        place = self.place(stripe, unit)
        if len(bad) > 1:
            try:
                return self.drives[place.drive].read(place.offset, place.length)
            except IoFailed:
                pass
        return super().block(stripe, unit)


class BelievesTooMany(CodedStore):
    """Corrects up to m wrong units of a stripe; of more it gives what the drive says."""

    def block(self, stripe: int, unit: int) -> bytes:
        try:
            return super().block(stripe, unit)
        except BlocksUnreadable:
            place = self.place(stripe, unit)
            return self.read_aloud(place)

    def read_aloud(self, place: Place) -> bytes:
        try:
            return self.drives[place.drive].read(place.offset, place.length)
        except IoFailed as error:
            raise BlocksUnreadable(str(error)) from error


class FlushesNotWhileDamaged(CodedStore):
    """Refuses to flush while anything is damaged."""

    def flush(self) -> None:
        if self.damaged:
            raise IoFailed("flush: media error", errno.EIO)
