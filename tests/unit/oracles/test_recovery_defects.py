"""Systems with a defect that shows now and then, and systems that are odd and right: each is told for what it is."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from rackloop.clock import Deadline, RealClock
from rackloop.errors import NotSupported
from rackloop.measurement import Verdict
from rackloop.seed import stream
from rackloop_oracles.recovery import (
    BlocksUnreadable,
    BlockSystem,
    Campaign,
    CampaignPlan,
    Damage,
    Health,
    Phase,
    Place,
    RecoveryOracle,
    RecoveryResult,
    RecoveryState,
    SelfDescription,
    SilentCorruption,
    Stripe,
)
from tests.unit.oracles.coded_store import CodedStore
from tests.unit.oracles.defective_stores import (
    BelievesOneOfTwo,
    BelievesTooMany,
    FlushesNotWhileDamaged,
    LosesTheSecond,
    LostOnceRepaired,
    OldContentOfAnother,
    RebuildResurrects,
    RebuildSkips,
    RebuildSpoilsAnother,
    RebuildUndoesWrites,
    RedundancyLater,
    TakesOthersForErased,
    WholeStripesWithoutRedundancy,
    WrongAcross,
    WrongAlone,
    WrongForOnePattern,
)
from tests.unit.oracles.faulty_blocks import SECTOR, SectorEraser, faulty_drives
from tests.unit.oracles.judged_system import judged
from tests.unit.oracles.recovery_doubles import VolatileBlocks

PLAN = CampaignPlan(7, beyond=6, corruptions=6)


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
    result = judged(store, SectorEraser(store.drives), PLAN)
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
    result = judged(store, SectorEraser(store.drives), PLAN)
    assert (result.verdict, result.reasons) == (Verdict.PASS, ())
    assert result.not_covered == ["loss of power: it is not cut"]


def test_blocks_that_nothing_hit_are_looked_at_when_all_is_mended() -> None:
    store = RebuildSpoilsAnother(stripes=24)
    result = judged(store, SectorEraser(store.drives), replace(PLAN, erasures=1))
    assert result.verdict is Verdict.FAIL
    assert all("(misplaced)" in reason for reason in result.reasons)
    assert "(when all was repaired and mended)" in result.reasons[-1]


def test_rebuilds_of_who_never_says_healthy_are_not_covered() -> None:
    store = NeverHealthy()
    result = judged(store, SectorEraser(store.drives), PLAN)
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
    result = judged(store, make(store.drives), PLAN)
    assert result.verdict is Verdict.UNKNOWN
    assert f"with more than m units {what} a stripe was given whole" in result.reasons[0]


class MarksNoSectors(SectorEraser):
    """Refuses to erase."""

    most = 0

    def erase(self, places: Sequence[Place]) -> None:
        if len(self.erasures) >= self.most:
            raise NotSupported("these drives cannot mark sectors")
        super().erase(places)


class MarksFewSectors(MarksNoSectors):
    """Refuses to erase more than a few times."""

    most = 5


@pytest.mark.parametrize("make", [MarksNoSectors, MarksFewSectors])
def test_erasures_that_were_asked_for_and_refused_leave_it_unknown(make: type[SectorEraser]) -> None:
    store = CodedStore()
    result = judged(store, make(store.drives), CampaignPlan(7, erasures=60, beyond=0, corruptions=0))
    assert (result.verdict, result.reasons) == (Verdict.UNKNOWN, ("erased: these drives cannot mark sectors",))
    assert any(text.startswith("patterns: ") for text in result.not_covered)


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
    result = judged(store, SectorEraser(store.drives), PLAN)
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
    result = judged(system, None, PLAN, cut_power=system.cache.cut_power)
    assert not any("loss of power" in text for text in result.not_covered)
    assert any(row.damage is Damage.NONE and column.phase is Phase.AFTER for row, column, _ in result.matrix)
    if flushes:
        assert (result.verdict, result.failures) == (Verdict.UNKNOWN, [])
    else:
        assert result.verdict is Verdict.FAIL
        assert "(power was cut, after a flush)" in result.reasons[0]


class ReadOnlyAfter(CodedStore):
    """Takes no writes once power was cut, or once it gave what was silently wrong."""

    is_read_only = False

    def cut_power(self) -> None:
        self.is_read_only = True

    def put(self, first: int, data: bytes) -> None:
        if self.is_read_only:
            raise BlocksUnreadable("read-only")
        super().put(first, data)

    def get(self, first: int, count: int) -> bytes:
        self.is_read_only |= any(drive.corrupted for drive in self.drives.values())
        return super().get(first, count)


def test_writes_that_are_refused_after_power_was_cut_are_held_against_the_system() -> None:
    store = ReadOnlyAfter()
    plan = replace(PLAN, writes=False)
    result = judged(store, SectorEraser(store.drives), plan, cut_power=store.cut_power)
    assert result.verdict is Verdict.FAIL
    (reason,) = result.reasons
    assert reason.startswith("undamaged, after power was cut: put of block ")
    assert reason.endswith("was refused: read-only")


def test_writes_that_are_refused_when_all_is_mended_are_held_against_the_system() -> None:
    store = ReadOnlyAfter(promise=SilentCorruption.UNKNOWN)
    result = judged(store, SectorEraser(store.drives), replace(PLAN, writes=False))
    assert result.verdict is Verdict.FAIL
    assert "was refused: read-only with nothing damaged any more" in result.reasons[0]


def test_a_description_may_say_nothing_of_the_code() -> None:
    class Silent(CodedStore):
        def describe(self) -> SelfDescription:
            return replace(super().describe(), k=None, m=None)

    store = Silent()
    assert judged(store, SectorEraser(store.drives), PLAN).verdict is Verdict.PASS


class ForgetsBadly(CodedStore):
    """Gives blocks from memory, until it is told to forget."""

    def __init__(self) -> None:
        self.memory: dict[int, bytes] = {}
        super().__init__()

    def put(self, first: int, data: bytes) -> None:
        super().put(first, data)
        for number in range(len(data) // SECTOR):
            self.memory[first + number] = data[number * SECTOR :][:SECTOR]

    def get(self, first: int, count: int) -> bytes:
        blocks = range(first, first + count)
        if all(block in self.memory for block in blocks):
            return b"".join(self.memory[block] for block in blocks)
        return super().get(first, count)

    def describe(self) -> SelfDescription:
        return replace(super().describe(), reports_damage=False)

    def forget(self) -> None:
        self.memory.clear()


def test_what_is_in_memory_is_forgotten_before_each_look_at_damage() -> None:
    store = ForgetsBadly()
    result = judged(store, SectorEraser(store.drives), PLAN)
    assert (result.verdict, result.reasons) == (Verdict.PASS, ())
    assert result.matrix.total([Damage.BEYOND]).loud > 0


class DetectsOnly(CodedStore):
    """Withholds stripes with wrong units, and says so."""

    def describe(self) -> SelfDescription:
        return replace(super().describe(), silent_corruption=self.said)

    said = SilentCorruption.DETECTED

    def get(self, first: int, count: int) -> bytes:
        for stripe in {(first + number) // self.k for number in range(count)}:
            for unit in range(self.data_units(stripe) + self.m):
                place = self.place(stripe, unit)
                if self.drives[place.drive].corrupted.intersection({stripe}) and self.read(stripe, unit) is None:
                    self.damaged.add(stripe)
                    raise BlocksUnreadable(f"stripe {stripe}: unit {unit} is wrong")
        return super().get(first, count)


def test_who_promises_to_detect_may_withhold_and_who_promises_to_correct_may_not() -> None:
    store = DetectsOnly()
    result = judged(store, SectorEraser(store.drives), PLAN)
    assert (result.verdict, result.reasons) == (Verdict.PASS, ())
    assert result.matrix.total([Damage.CORRUPTED]).loud > 0
    store = DetectsOnly()
    store.said = SilentCorruption.CORRECTED
    result = judged(store, SectorEraser(store.drives), PLAN)
    assert result.verdict is Verdict.FAIL
    assert "is wrong" in result.reasons[0]


def test_who_withholds_what_is_silently_wrong_and_promises_nothing_gave_no_wrong_bytes() -> None:
    store = DetectsOnly()
    store.said = SilentCorruption.UNKNOWN
    result = judged(store, SectorEraser(store.drives), PLAN)
    assert (result.verdict, result.not_covered) == (Verdict.PASS, ["loss of power: it is not cut"])


def test_who_only_detects_and_says_healthy_has_to_survive_the_loss_of_m_others() -> None:
    class SaysMended(DetectsOnly):
        """Says that it is healthy whatever it found, and mends nothing that is silently wrong."""

        def describe(self) -> SelfDescription:
            return replace(super().describe(), reports_damage=False)

        def recovery_state(self) -> RecoveryState:
            return RecoveryState(Health.HEALTHY)

        def repair_stripe(self, stripe: int) -> None:
            if not any(drive.corrupted for drive in self.drives.values()):
                super().repair_stripe(stripe)

    store = SaysMended()
    result = judged(store, SectorEraser(store.drives), PLAN)
    assert result.verdict is Verdict.FAIL
    assert all("repaired, as it said, and erased elsewhere" in reason for reason in result.reasons)


def test_a_campaign_that_damages_nothing_is_unknown() -> None:
    store = CodedStore()
    result = judged(store, SectorEraser(store.drives), CampaignPlan(7, erasures=0, beyond=0, corruptions=0))
    assert result.verdict is Verdict.UNKNOWN
    assert result.reasons == ("nothing was damaged: no case was asked for, or none could be made",)


def test_a_result_of_which_nothing_was_read_is_unknown() -> None:
    result = RecoveryResult("nothing", 1)
    assert (result.verdict, result.reasons) == (Verdict.UNKNOWN, ("nothing was read",))
