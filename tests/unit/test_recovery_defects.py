"""Systems with a defect that shows now and then, and systems that are odd and right: each is told for what it is."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from rackloop.blocks import IoFailed
from rackloop.clock import Deadline, RealClock
from rackloop.recovery import (
    BlocksUnreadable,
    BlockSystem,
    Campaign,
    CampaignPlan,
    Damage,
    Eraser,
    Health,
    Phase,
    Place,
    RecoveryOracle,
    RecoveryResult,
    RecoveryState,
    SelfDescription,
    Stripe,
    SystemUnderTest,
)
from rackloop.seed import stream
from rackloop.verdict import Verdict
from tests.unit.coded_store import CodedStore
from tests.unit.faulty_blocks import SECTOR, SectorEraser, faulty_drives
from tests.unit.recovery_doubles import VolatileBlocks

PLAN = CampaignPlan(7, beyond=6, corruptions=6)


def judged(
    system: SystemUnderTest,
    eraser: Eraser | None,
    plan: CampaignPlan = PLAN,
    *,
    limit_s: float = 60.0,
    cut_power: Callable[[], None] | None = None,
) -> RecoveryResult:
    with RecoveryOracle(system, Deadline.after(RealClock(), 120), seed=plan.seed, call_limit_s=limit_s) as oracle:
        return Campaign(oracle, eraser, plan, cut_power=cut_power).run()


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


FAILS: dict[str, tuple[type[CodedStore], str]] = {
    "loses the second of two writes": (LosesTheSecond, "(stale)"),
    "old content of another block": (OldContentOfAnother, "(misplaced)"),
    "another set of erasures": (TakesOthersForErased, "before repair"),
    "acknowledges before redundancy": (RedundancyLater, "before repair"),
    "rebuild that skips a stripe": (RebuildSkips, "(stripe 2, "),
    "rebuild that resurrects": (RebuildResurrects, "repair), sector 0: expected generation"),
    "one pattern": (WrongForOnePattern, "units 1, 3 of"),
    "says lost when all is well": (LostOnceRepaired, "it says lost"),
    "rebuild that undoes writes": (RebuildUndoesWrites, "written during repair"),
    "wrong for blocks alone": (WrongAlone, "written while erased"),
    "wrong across stripes": (WrongAcross, "(misplaced)"),
    "whole stripes without redundancy": (WholeStripesWithoutRedundancy, "written while erased"),
    "corrects one and believes two": (BelievesOneOfTwo, "corrupted, before repair"),
    "believes more than m wrong units": (BelievesTooMany, "corrupted, before repair"),
    "refuses to flush": (FlushesNotWhileDamaged, "flush was refused"),
}


@pytest.mark.parametrize("defect", FAILS)
def test_each_fails_and_is_named(defect: str) -> None:
    make, said = FAILS[defect]
    store = make()
    result = judged(store, SectorEraser(store.drives))
    assert result.verdict is Verdict.FAIL
    assert any(said in reason for reason in result.failures), result.failures[:3]


@pytest.mark.parametrize("hangs_in", ["put", "repair", "recovery_state"])
def test_whatever_hangs_is_unknown(hangs_in: str) -> None:
    let_go = threading.Event()

    class Hangs(CodedStore):
        def put(self, first: int, data: bytes) -> None:
            self.perhaps("put")
            super().put(first, data)

        def repair(self, pause: Callable[[], None]) -> None:
            self.perhaps("repair")
            super().repair(pause)

        def recovery_state(self) -> RecoveryState:
            self.perhaps("recovery_state")
            return super().recovery_state()

        def perhaps(self, call: str) -> None:
            if call == hangs_in:
                let_go.wait()

    store = Hangs()
    try:
        with RecoveryOracle(store, Deadline.after(RealClock(), 1), seed=7, call_limit_s=0.2) as oracle:
            result = Campaign(oracle, SectorEraser(store.drives), PLAN).run()
    finally:
        let_go.set()
    assert result.verdict is Verdict.UNKNOWN
    assert "did not return in" in result.reasons[0]


class NeverHealthy(CodedStore):
    """Says that it is degraded, always."""

    def recovery_state(self) -> RecoveryState:
        return RecoveryState(Health.DEGRADED)


class RepairsBeforeItGives(CodedStore):
    """Writes what it decoded at once."""

    def block(self, stripe: int, unit: int) -> bytes:
        content = super().block(stripe, unit)
        if self.read(stripe, unit) is None:
            self.write(stripe, unit, content)
        return content


class WithholdsTheStripe(CodedStore):
    """Gives nothing of a stripe of which too much is lost, not even what it could."""

    def get(self, first: int, count: int) -> bytes:
        for stripe in {(first + number) // self.k for number in range(count)}:
            units = range(self.data_units(stripe) + self.m)
            if sum(self.read(stripe, unit) is None for unit in units) > self.m:
                self.damaged.add(stripe)
                raise BlocksUnreadable(f"stripe {stripe} is down")
        return super().get(first, count)


class WritesElsewhere(CodedStore):
    """Puts each unit into another place than the last time."""

    def __init__(self) -> None:
        self.slots: dict[tuple[int, int], int] = {}
        super().__init__(drives=faulty_drives(6, 12 * SECTOR))

    def place(self, stripe: int, unit: int) -> Place:
        return Place(f"d{(stripe + unit) % 6}", (stripe * 2 + self.slots.get((stripe, unit), 0)) * SECTOR, SECTOR)

    def write(self, stripe: int, unit: int, content: bytes) -> None:
        self.slots[stripe, unit] = 1 - self.slots.get((stripe, unit), 0)
        super().write(stripe, unit, content)


class GivesABuffer(CodedStore):
    """Passes on the buffer that it was given."""

    def get(self, first: int, count: int) -> bytes:
        return bytearray(super().get(first, count))  # type: ignore[return-value]


@pytest.mark.parametrize("make", [RepairsBeforeItGives, WithholdsTheStripe, WritesElsewhere, GivesABuffer])
def test_what_is_odd_and_right_passes(make: type[CodedStore]) -> None:
    store = make()
    result = judged(store, SectorEraser(store.drives))
    assert (result.verdict, result.reasons) == (Verdict.PASS, ())
    assert result.not_covered == ["loss of power: nobody cuts it"]


def test_rebuilds_of_who_never_says_healthy_are_not_covered() -> None:
    store = NeverHealthy()
    result = judged(store, SectorEraser(store.drives))
    assert result.verdict is Verdict.PASS
    (said,) = [text for text in result.not_covered if text.startswith("what repairs brought back")]
    assert "it did not say healthy" in said


class ErasesSomeDrives(SectorEraser):
    """Has no effect on half of the drives."""

    def erase(self, places: Sequence[Place]) -> None:
        super().erase([place for place in places if place.drive in {"d0", "d1", "d2"}])


class CorruptsNothing(SectorEraser):
    """Says that it corrupted."""

    def corrupt(self, places: Sequence[Place]) -> None:
        pass


@pytest.mark.parametrize(("make", "what"), [(ErasesSomeDrives, "erased"), (CorruptsNothing, "silently wrong")])
def test_an_eraser_without_effect_is_unknown_and_not_held_against_the_system(
    make: type[SectorEraser], what: str
) -> None:
    store = CodedStore()
    result = judged(store, make(store.drives))
    assert result.verdict is Verdict.UNKNOWN
    assert f"with more than m units {what} a stripe was given whole" in result.reasons[0]


def test_without_m_plus_1_erased_nothing_shows_that_the_eraser_works_and_that_is_said() -> None:
    store = CodedStore()
    result = judged(store, SectorEraser(store.drives), CampaignPlan(7, beyond=0, corruptions=0))
    assert result.verdict is Verdict.PASS
    assert any(text.startswith("beyond m: not asked for") for text in result.not_covered)
    assert "silent corruption: not asked for" in result.not_covered


def test_stripes_of_another_shape_than_it_says_are_unknown() -> None:
    class Understates(CodedStore):
        def places(self, address: int) -> Stripe:
            stripe = super().places(address)
            return replace(stripe, units=stripe.units[:-1])

    store = Understates()
    result = judged(store, SectorEraser(store.drives))
    assert result.verdict is Verdict.UNKNOWN
    assert "k = 4 and m = 2, and stripe 0 lies in 4 + 1 units" in result.reasons[0]


class Cached(BlockSystem):
    """A drive with a write cache, that can be told not to flush it."""

    def __init__(self, *, flushes: bool) -> None:
        self.cache = VolatileBlocks(200 * SECTOR, stream(6, "cache"))
        self.flushes = flushes
        super().__init__(self.cache, "cached")

    def flush(self) -> None:
        if self.flushes or not self.cache.durable.strip(b"\0"):
            super().flush()


@pytest.mark.parametrize("flushes", [True, False])
def test_a_flush_that_does_not_flush_is_found_where_power_can_be_cut(*, flushes: bool) -> None:
    system = Cached(flushes=flushes)
    result = judged(system, None, cut_power=system.cache.cut_power)
    assert not any("loss of power" in text for text in result.not_covered)
    assert any(row.damage is Damage.NONE and column.phase is Phase.AFTER for row, column, _ in result.matrix)
    if flushes:
        assert (result.verdict, result.failures) == (Verdict.UNKNOWN, [])
    else:
        assert result.verdict is Verdict.FAIL
        assert "(power was cut, after a flush)" in result.reasons[0]


def test_a_description_may_say_nothing_of_the_code() -> None:
    class Silent(CodedStore):
        def describe(self) -> SelfDescription:
            return replace(super().describe(), k=None, m=None)

    store = Silent()
    assert judged(store, SectorEraser(store.drives)).verdict is Verdict.PASS
