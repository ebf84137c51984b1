"""A correct small store of coded stripes, to which tests add one defect at a time."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from rackloop.abilities.blocks import IoFailed
from rackloop_models.erasure import Code
from rackloop_oracles.recovery import (
    BlocksUnreadable,
    Health,
    Place,
    RecoveryState,
    SelfDescription,
    SilentCorruption,
    Stripe,
)
from tests.unit.oracles.faulty_blocks import SECTOR, FaultyBlocks, faulty_drives

Unit = NDArray[np.uint8]


class CodedStore:
    """Blocks of 4096 bytes in stripes of ``k`` + ``m`` on as many drives, the last stripe shortened by ``short``.

    Checksums are kept in memory where it ``checks``. Unit ``u`` of stripe ``s`` is on drive ``(s + u) % (k + m)``.
    """

    def __init__(
        self,
        k: int = 4,
        m: int = 2,
        stripes: int = 6,
        *,
        short: int = 1,
        promise: SilentCorruption = SilentCorruption.CORRECTED,
        drives: Mapping[str, FaultyBlocks] | None = None,
    ) -> None:
        self.k, self.m, self.stripes, self.short = k, m, stripes, short
        self.code = Code(k, m)
        self.drives = drives or faulty_drives(k + m, stripes * SECTOR)
        self.promise = promise
        self.checksums: dict[tuple[int, int], int] = {}
        self.damaged: set[int] = set()
        self.missed: set[tuple[int, int]] = set()
        self.is_repairing = False
        for stripe in range(stripes):
            self.store(stripe, [bytes(SECTOR)] * self.data_units(stripe))

    def describe(self) -> SelfDescription:
        blocks = self.stripes * self.k - self.short
        return SelfDescription("coded", SECTOR, blocks, self.k, self.m, SECTOR, self.promise, reports_damage=True)

    def put(self, first: int, data: bytes) -> None:
        for number in range(len(data) // SECTOR):
            stripe, unit = divmod(first + number, self.k)
            content = self.data(stripe)
            content[unit] = data[number * SECTOR : (number + 1) * SECTOR]
            self.store(stripe, content)

    def get(self, first: int, count: int) -> bytes:
        return b"".join(self.block(*divmod(first + number, self.k)) for number in range(count))

    def flush(self) -> None:
        for drive in self.drives.values():
            drive.flush()

    def recovery_state(self) -> RecoveryState:
        if self.is_repairing:
            return RecoveryState(Health.REBUILDING)
        return RecoveryState(Health.DEGRADED if self.damaged else Health.HEALTHY, f"{len(self.damaged)} stripes")

    def places(self, address: int) -> Stripe:
        number = address // self.k
        data_units = self.data_units(number)
        units = tuple(self.place(number, unit) for unit in range(data_units + self.m))
        first = number * self.k
        return Stripe(str(number), range(first, first + data_units), units, data_units)

    def repair(self, pause: Callable[[], None]) -> None:
        self.is_repairing = True
        for stripe in range(self.stripes):
            if stripe % 2:
                pause()
            self.damaged.discard(stripe)
            try:
                self.repair_stripe(stripe)
            except BlocksUnreadable:
                self.damaged.add(stripe)
        self.is_repairing = False

    def repair_stripe(self, stripe: int) -> None:
        units = range(self.data_units(stripe) + self.m)
        lost = [unit for unit in units if self.read(stripe, unit) is None]
        if lost:
            for unit, content in self.decoded(stripe, lost).items():
                self.write(stripe, unit, content)

    def data_units(self, stripe: int) -> int:
        return self.k - (self.short if stripe == self.stripes - 1 else 0)

    def place(self, stripe: int, unit: int) -> Place:
        return Place(f"d{(stripe + unit) % (self.k + self.m)}", stripe * SECTOR, SECTOR)

    def read(self, stripe: int, unit: int) -> bytes | None:
        """The unit, None where it cannot be had."""
        place = self.place(stripe, unit)
        if (stripe, unit) in self.missed:
            return None
        try:
            content = self.drives[place.drive].read(place.offset, place.length)
        except IoFailed:
            return None
        checks = self.promise is SilentCorruption.CORRECTED
        return None if checks and zlib.crc32(content) != self.checksums[stripe, unit] else content

    def write(self, stripe: int, unit: int, content: bytes) -> None:
        self.checksums[stripe, unit] = zlib.crc32(content)
        place = self.place(stripe, unit)
        try:
            self.drives[place.drive].write(place.offset, content)
            self.missed.discard((stripe, unit))
        except IoFailed:
            # What is there when the drive is back is old.
            self.missed.add((stripe, unit))
            self.damaged.add(stripe)

    def block(self, stripe: int, unit: int) -> bytes:
        content = self.read(stripe, unit)
        if content is not None:
            return content
        self.damaged.add(stripe)
        return self.decoded(stripe, [unit])[unit]

    def data(self, stripe: int) -> list[bytes]:
        return [self.block(stripe, unit) for unit in range(self.data_units(stripe))]

    def store(self, stripe: int, data: list[bytes]) -> None:
        redundancy = np.zeros((self.m, SECTOR), np.uint8)
        self.code.encode([np.frombuffer(block, np.uint8) for block in data], redundancy)
        for unit, content in enumerate((*data, *(row.tobytes() for row in redundancy))):
            self.write(stripe, unit, content)

    def decoded(self, stripe: int, wanted: list[int]) -> dict[int, bytes]:
        units = self.data_units(stripe) + self.m
        found = [self.read(stripe, unit) for unit in range(units)]
        erased = [unit for unit, content in enumerate(found) if content is None]
        if len(erased) > self.m:
            raise BlocksUnreadable(f"stripe {stripe}: {len(erased)} units are lost, {self.m} can be recovered")
        codeword = np.zeros((units, SECTOR), np.uint8)
        for unit, content in enumerate(found):
            if content is not None:
                codeword[unit] = np.frombuffer(content, np.uint8)
        self.code.decode(codeword, erased)
        return {unit: codeword[unit].tobytes() for unit in wanted}
