"""Repairs that a system refuses, and what it says of its health around them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from rackloop.measurement import Verdict
from rackloop_oracles.recovery import (
    BlocksUnreadable,
    CampaignPlan,
    Health,
    RecoveryState,
    SelfDescription,
    SilentCorruption,
)
from tests.unit.oracles.coded_store import CodedStore
from tests.unit.oracles.faulty_blocks import SectorEraser
from tests.unit.oracles.judged_system import judged

PLAN = CampaignPlan(7, beyond=6, corruptions=6)


class RefusesToRepair(CodedStore):
    """Cannot repair what it can read."""

    def repair(self, pause: Callable[[], None]) -> None:
        if any(drive.erased for drive in self.drives.values()):
            raise BlocksUnreadable("a unit is lost")
        super().repair(pause)


class RefusesOnceMended(CodedStore):
    """Cannot repair what is no longer damaged."""

    was_read = False

    def get(self, first: int, count: int) -> bytes:
        self.was_read = any(drive.erased for drive in self.drives.values())
        return super().get(first, count)

    def repair(self, pause: Callable[[], None]) -> None:
        if self.was_read and not any(drive.erased for drive in self.drives.values()):
            raise BlocksUnreadable("a unit was lost")
        super().repair(pause)


class RefusesOnceTooMuchWasLost(CodedStore):
    """Repairs nothing any more once it has lost more than it can recover."""

    has_lost = False

    def decoded(self, stripe: int, wanted: list[int]) -> dict[int, bytes]:
        try:
            return super().decoded(stripe, wanted)
        except BlocksUnreadable:
            self.has_lost = True
            raise

    def repair(self, pause: Callable[[], None]) -> None:
        if self.has_lost:
            raise BlocksUnreadable("too much was lost")
        super().repair(pause)


class RefusesCorruption(CodedStore):
    """Notices silent corruption, and repairs nothing as long as there is any."""

    def repair(self, pause: Callable[[], None]) -> None:
        if any(drive.corrupted for drive in self.drives.values()):
            raise BlocksUnreadable("a unit is wrong")
        super().repair(pause)


class DetectsCorruption(RefusesCorruption):
    """The same, which promises no more than that it notices, and says so."""

    def describe(self) -> SelfDescription:
        return replace(super().describe(), silent_corruption=SilentCorruption.DETECTED)

    def recovery_state(self) -> RecoveryState:
        is_wrong = any(drive.corrupted for drive in self.drives.values())
        return RecoveryState(Health.DEGRADED) if is_wrong else super().recovery_state()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (RefusesToRepair, "repair was refused: a unit is lost with no more than m units of a stripe erased"),
        (RefusesOnceMended, "repair was refused: a unit was lost with nothing damaged any more"),
        (RefusesCorruption, "repair was refused: a unit is wrong with no more than m units of a stripe corrupted"),
    ],
)
def test_a_repair_that_is_refused_fails_where_no_more_is_damaged_than_is_promised(
    make: type[CodedStore], said: str
) -> None:
    store = make()
    result = judged(store, SectorEraser(store.drives), PLAN)
    assert result.verdict is Verdict.FAIL
    assert said in result.failures


@pytest.mark.parametrize(
    ("make", "damage"), [(RefusesOnceTooMuchWasLost, "beyond m"), (DetectsCorruption, "corrupted")]
)
def test_a_repair_may_be_refused_where_more_is_damaged(make: type[CodedStore], damage: str) -> None:
    store = make()
    result = judged(store, SectorEraser(store.drives), PLAN)
    assert (result.verdict, result.reasons) == (Verdict.PASS, ())
    assert f"{damage}: repairs were refused, as they may be there" in result.not_covered


class LostAtRest(CodedStore):
    """Says that it has lost data wherever no unit is erased."""

    def recovery_state(self) -> RecoveryState:
        is_erased = any(drive.erased for drive in self.drives.values())
        return super().recovery_state() if is_erased else RecoveryState(Health.LOST, "all of it")


def test_lost_after_a_repair_of_what_can_be_recovered_is_a_lie() -> None:
    store = LostAtRest()
    result = judged(store, SectorEraser(store.drives), PLAN)
    assert result.verdict is Verdict.FAIL
    assert result.failures[0].startswith("it says lost (all of it) after a repair of no more than m units: stripe ")


@pytest.mark.parametrize("blocks", [1, 2, 6])
def test_who_says_healthy_has_not_lied_of_units_that_hold_no_block_that_was_read(blocks: int) -> None:
    store = CodedStore()
    result = judged(store, SectorEraser(store.drives), replace(PLAN, blocks=blocks))
    assert (result.verdict, result.reasons) == (Verdict.PASS, ())
