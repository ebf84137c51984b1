"""The recovery oracle on Rackloop's own stores, through their adapters."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rackloop.clock import Deadline, RealClock, VirtualClock
from rackloop.errors import ProductFailed
from rackloop.measurement import Verdict
from rackloop.seed import Stream, stream
from rackloop_models.local_erasure import Layout as LocalLayout
from rackloop_models.local_erasure import LocalStore, format_drive
from rackloop_models.rack_erasure import StripeCode, StripedStore, format_store
from rackloop_models.under_test import LocalStoreUnderTest, StripedStoreUnderTest
from rackloop_oracles.recovery import (
    Campaign,
    CampaignPlan,
    Damage,
    DropsCaches,
    Phase,
    Place,
    Placed,
    RecoveryOracle,
    Repairs,
)
from tests.memory_blocks import MemoryBlocks
from tests.unit.oracles.faulty_blocks import DriveEraser, FaultyBlocks, SectorEraser, faulty_drives
from tests.unit.oracles.judged_system import judged
from tests.unit.oracles.recovery_doubles import VolatileBlocks

SECTOR = 4096
LOCAL_BLOCKS = 21  # four groups of five, and one of a single sector
UNIT = 2 * SECTOR


def local_store(k: int = 5, m: int = 2, blocks: int = LOCAL_BLOCKS) -> tuple[LocalStoreUnderTest, FaultyBlocks]:
    drive = FaultyBlocks(MemoryBlocks(8 << 20))
    format_drive(drive, LocalLayout(k, m), files=4)
    return LocalStoreUnderTest(lambda: LocalStore(drive, VirtualClock()), blocks=blocks), drive


def striped_store(drives: int = 6, spares: int = 0) -> tuple[StripedStoreUnderTest, dict[str, FaultyBlocks]]:
    every = faulty_drives(drives + spares, 1 << 20)
    names = list(every)
    mine = {name: every[name] for name in names[:drives]}
    format_store(mine, StripeCode(3, 2, UNIT), seed=5)
    store = StripedStore(mine, VirtualClock(), workers=1)
    return StripedStoreUnderTest(store, mine, blocks=8, spares={name: every[name] for name in names[drives:]}), every


def test_the_local_store_brings_back_every_pattern() -> None:
    system, drive = local_store()
    with system:
        assert isinstance(system, Placed)
        assert isinstance(system, Repairs)
        assert isinstance(system, DropsCaches)
        result = judged(system, SectorEraser({"drive": drive}), CampaignPlan(3, beyond=6, corruptions=6), seconds=300)
    assert (result.verdict, result.reasons) == (Verdict.PASS, ())
    assert result.is_exhaustive
    assert result.coverage.share("shortened stripes") == 1
    assert result.matrix.total([Damage.BEYOND]).loud > 0
    assert any(row.damage is Damage.ERASED and column.phase is Phase.DURING for row, column, _ in result.matrix)
    assert any("silent corruption: it gave wrong bytes" in text for text in result.not_covered)


def test_the_striped_store_brings_back_every_pattern_and_corrects_silent_corruption() -> None:
    system, drives = striped_store()
    result = judged(system, SectorEraser(drives), CampaignPlan(3, beyond=6, corruptions=9), seconds=300)
    assert (result.verdict, result.reasons) == (Verdict.PASS, ())
    assert result.is_exhaustive
    assert (result.corrupted, result.corrupted_found) == (6, 6)


class BadlyCoded(StripedStore):
    """A store whose redundancy has the right checksums and does not belong to the data."""

    is_degraded = False

    def get(self, number: int) -> bytes:
        if self.is_degraded:
            raise ProductFailed(f"object {number}: its units do not decode to what it held")
        return super().get(number)


class Degrades(SectorEraser):
    """Tells the store as it erases."""

    def __init__(self, drives: dict[str, FaultyBlocks], store: BadlyCoded) -> None:
        super().__init__(drives)
        self._store = store

    def erase(self, places: Sequence[Place]) -> None:
        super().erase(places)
        self._store.is_degraded = True


def test_objects_that_do_not_decode_to_what_they_held_are_lost_by_the_store_and_not_by_the_checker() -> None:
    drives = faulty_drives(6, 1 << 20)
    format_store(drives, StripeCode(3, 2, UNIT), seed=5)
    with BadlyCoded(drives, VirtualClock(), workers=1) as store:
        system = StripedStoreUnderTest(store, drives, blocks=8)
        result = judged(system, Degrades(drives, store), CampaignPlan(3, erasures=4, beyond=0, corruptions=0))
    assert result.verdict is Verdict.FAIL
    assert all("do not decode to what it held" in reason for reason in result.failures)


def test_the_striped_store_is_rebuilt_on_spares_when_drives_go() -> None:
    system, drives = striped_store(drives=7, spares=4)
    result = judged(
        system, DriveEraser(drives, corrupts=False), CampaignPlan(3, erasures=20, beyond=3, corruptions=0), seconds=300
    )
    assert (result.verdict, result.reasons) == (Verdict.PASS, ())
    after = [cell for row, column, cell in result.matrix if row.damage is Damage.ERASED and column.phase is Phase.AFTER]
    assert sum(cell.right + cell.degraded_right for cell in after) > 0


STEPS = st.lists(
    st.tuples(st.sampled_from(["write", "write", "flush", "cut", "read"]), st.integers(0, 20), st.integers(1, 9)),
    max_size=16,
)


@settings(max_examples=25, deadline=None)
@given(STEPS, st.randoms(use_true_random=False))
def test_no_history_of_the_local_store_raises_an_alarm(steps: list[tuple[str, int, int]], chance: Stream) -> None:
    drive = VolatileBlocks(2 << 20, chance, piece=SECTOR)
    format_drive(drive, LocalLayout(5, 2), files=4)
    drive.flush()
    system = LocalStoreUnderTest(lambda: LocalStore(drive, VirtualClock(), take_over=True), blocks=LOCAL_BLOCKS)
    with RecoveryOracle(system, Deadline.after(RealClock(), 300), seed=1) as oracle:
        for step, first, count in (*steps, ("read", 0, 0)):
            match step:
                case "write":
                    oracle.write(first, min(count, LOCAL_BLOCKS - first))
                case "flush":
                    oracle.flush()
                case "cut":
                    drive.cut_power()
                    system.power_lost()
                    oracle.power_was_cut()
                case "read":
                    assert oracle.judge(oracle.verify_all()) == []
    system.close()


def test_the_local_store_keeps_what_it_flushed_when_power_is_cut() -> None:
    drive = VolatileBlocks(2 << 20, stream(2, "drive"), piece=SECTOR)
    format_drive(drive, LocalLayout(5, 2), files=4)
    drive.flush()
    system = LocalStoreUnderTest(lambda: LocalStore(drive, VirtualClock(), take_over=True), blocks=LOCAL_BLOCKS)

    def cut_power() -> None:
        drive.cut_power()
        system.power_lost()

    with system, RecoveryOracle(system, Deadline.after(RealClock(), 300), seed=1) as oracle:
        result = Campaign(oracle, None, CampaignPlan(1), cut_power=cut_power).run()
    assert result.failures == []
    after = [cell for row, column, cell in result.matrix if row.damage is Damage.NONE and column.phase is Phase.AFTER]
    assert [(cell.tried, cell.right) for cell in after] == [(2 * LOCAL_BLOCKS, 2 * LOCAL_BLOCKS)]


@pytest.mark.nightly
def test_the_local_store_of_the_paper_is_sampled() -> None:
    system, drive = local_store(251, 4, blocks=600)
    with system:
        plan = CampaignPlan(3, erasures=300, beyond=12, corruptions=6)
        result = judged(system, SectorEraser({"drive": drive}), plan, seconds=300)
    assert (result.verdict, result.reasons) == (Verdict.PASS, ())
    assert not result.is_exhaustive
    assert result.coverage.share("sizes") == 1
    assert result.coverage.share("mixtures") == 1
