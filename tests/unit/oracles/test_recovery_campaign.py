"""Campaigns of erasures: a right store passes, and whatever is broken in it is found and named."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rackloop.clock import Deadline, RealClock
from rackloop.measurement import Cause, Verdict
from rackloop_oracles.recovery import (
    BlocksUnreadable,
    BlockSystem,
    Campaign,
    CampaignPlan,
    Damage,
    Health,
    Mix,
    Phase,
    Progress,
    RecoveryOracle,
    RecoveryResult,
    RecoveryState,
    SelfDescription,
    SilentCorruption,
)
from tests.memory_blocks import MemoryBlocks
from tests.unit.oracles.coded_store import CodedStore
from tests.unit.oracles.faulty_blocks import SECTOR, DriveEraser, SectorEraser
from tests.unit.oracles.judged_system import judged

PLAN = CampaignPlan(7, beyond=9, corruptions=9)


def of_store(store: CodedStore, plan: CampaignPlan = PLAN) -> RecoveryResult:
    return judged(store, SectorEraser(store.drives), plan)


def test_a_right_store_passes_every_pattern() -> None:
    heard: list[Progress] = []
    store = CodedStore()
    result = judged(store, SectorEraser(store.drives), PLAN, progress=heard.append)
    assert (result.verdict, result.reasons, result.not_covered) == (Verdict.PASS, (), ["loss of power: it is not cut"])
    assert result.is_exhaustive
    assert (
        len(result.coverage.covered["patterns"]) == 21 + 15
    )  # 6 choose 1 and 2, and of the shortened 5 choose 1 and 2
    assert all(result.coverage.share(kind) == 1 for kind in result.coverage.wanted)
    total = result.matrix.total([Damage.ERASED])
    assert (total.loud, total.wrong, total.unknown) == (0, 0, 0)
    assert total.tried == total.right + total.degraded_right
    assert result.matrix.total([Damage.BEYOND]).loud > 0
    assert (result.corrupted, result.corrupted_found) == (6, 6)
    assert {progress.part for progress in heard} == {"fill", "erased", "corrupted", "beyond m"}


def test_the_matrix_has_each_number_mixture_and_phase() -> None:
    result = of_store(CodedStore())
    cells = {(row.damage, row.erased, column.units, column.phase) for row, column, _ in result.matrix}
    erased = {(Mix.DATA, 1), (Mix.PARITY, 1), (Mix.DATA, 2), (Mix.PARITY, 2), (Mix.MIXED, 2)}
    for units, e in erased:
        for phase in Phase:
            assert (Damage.ERASED, e, units, phase) in cells
    lines = str(result.matrix).splitlines()
    assert lines[0].split() == [
        "damage",
        "e",
        "units",
        "phase",
        "tried",
        "right",
        "degraded",
        "right",
        "loud",
        "wrong",
        "unknown",
    ]
    assert len(lines) == len(cells) + 1


def test_measurements_are_named_and_labelled() -> None:
    found = of_store(CodedStore()).measurements()
    wrong = [one for one in found if one.name == "recovery.wrong"]
    assert wrong
    assert all(one.samples.maximum == 0 for one in wrong)
    assert {"system", "damage", "erased", "units", "phase"} == set(wrong[0].labels)
    covered = {one.labels["what"]: one.samples.maximum for one in found if one.name == "recovery.covered"}
    assert covered["patterns"] == 1
    assert [one.samples.maximum for one in found if one.name == "recovery.corruption_found"] == [1]
    left_out = [one.labels["what"] for one in found if one.name == "recovery.not_covered"]
    assert left_out == ["loss of power: it is not cut"]


def test_whole_drives_may_be_taken() -> None:
    store = CodedStore(short=0)
    eraser = DriveEraser(store.drives, corrupts=False)
    result = judged(store, eraser, CampaignPlan(7, beyond=6, corruptions=3))
    assert (result.verdict, result.reasons) == (Verdict.PASS, ())
    assert "corrupted: these drives cannot be made to lie" in result.not_covered
    assert result.coverage.share("sizes") == 1
    assert result.matrix.total([Damage.BEYOND]).loud > 0


def test_the_same_seed_breaks_the_same() -> None:
    def erasures(seed: int) -> list[object]:
        store = CodedStore()
        eraser = SectorEraser(store.drives)
        judged(store, eraser, CampaignPlan(seed, erasures=10, beyond=3, corruptions=3))
        return list(eraser.erasures)

    assert erasures(1) == erasures(1) != erasures(2)


Change = Callable[[int, bytes], bytes]


class Decoding(CodedStore):
    """Gives other bytes than it decoded, for a block that it could not read."""

    def __init__(self, change: Change, k: int = 4, m: int = 2) -> None:
        self.change: Change = lambda _, content: content
        super().__init__(k, m, short=k > 1)
        self.change = change

    def block(self, stripe: int, unit: int) -> bytes:
        if self.read(stripe, unit) is not None:
            return super().block(stripe, unit)
        return self.change(stripe * self.k + unit, super().block(stripe, unit))


class StaleParity(CodedStore):
    """Does not write redundancy while a stripe is damaged."""

    def store(self, stripe: int, data: list[bytes]) -> None:
        if stripe in self.damaged:
            for unit, content in enumerate(data):
                self.write(stripe, unit, content)
        else:
            super().store(stripe, data)


class SwallowsLoss(CodedStore):
    """Gives what is left where too much is lost."""

    def block(self, stripe: int, unit: int) -> bytes:
        try:
            return super().block(stripe, unit)
        except BlocksUnreadable:
            return bytes(SECTOR)


class ForgetsWrites(CodedStore):
    """Acknowledges writes of damaged stripes and does not do them."""

    def put(self, first: int, data: bytes) -> None:
        if first // self.k not in self.damaged:
            super().put(first, data)


class GivesUpAtM(CodedStore):
    """Recovers one unit less than it has redundancy for."""

    def decoded(self, stripe: int, wanted: list[int]) -> dict[int, bytes]:
        units = range(self.data_units(stripe) + self.m)
        if sum(self.read(stripe, unit) is None for unit in units) >= self.m:
            raise BlocksUnreadable(f"stripe {stripe} is lost")
        return super().decoded(stripe, wanted)


class RepairsNothing(CodedStore):
    """Says that it repaired, and did not."""

    def repair_stripe(self, stripe: int) -> None:
        pass


class RepairsWrongly(CodedStore):
    """Writes zeros where it should write the redundancy it decoded."""

    def repair_stripe(self, stripe: int) -> None:
        redundancy = range(self.data_units(stripe), self.data_units(stripe) + self.m)
        lost = [unit for unit in redundancy if self.read(stripe, unit) is None]
        super().repair_stripe(stripe)
        for unit in lost:
            self.write(stripe, unit, bytes(SECTOR))


class WrongWhileRepairing(CodedStore):
    """Gives zeros for what is not repaired yet."""

    def block(self, stripe: int, unit: int) -> bytes:
        if self.is_repairing and self.read(stripe, unit) is None:
            return bytes(SECTOR)
        return super().block(stripe, unit)


class AlwaysHealthy(CodedStore):
    """Never says that anything is wrong."""

    def recovery_state(self) -> RecoveryState:
        return RecoveryState(Health.HEALTHY)


class CriesWolf(CodedStore):
    """Says that data is lost as soon as anything is."""

    def recovery_state(self) -> RecoveryState:
        return RecoveryState(Health.LOST if self.damaged else Health.HEALTHY)


class Careless(CodedStore):
    """Promises to correct silent corruption, and does not look."""

    def read(self, stripe: int, unit: int) -> bytes | None:
        self.promise = SilentCorruption.NOT_COVERED
        try:
            return super().read(stripe, unit)
        finally:
            self.promise = SilentCorruption.CORRECTED


class RefusesWrites(CodedStore):
    """Takes no writes while damaged."""

    def put(self, first: int, data: bytes) -> None:
        if self.damaged:
            raise BlocksUnreadable("degraded: read only")
        super().put(first, data)


def torn(_: int, content: bytes) -> bytes:
    return content[:2048] + bytes(2048)


def flipped(_: int, content: bytes) -> bytes:
    return content[:2000] + bytes([content[2000] ^ 1]) + content[2001:]


DEFECTS: dict[str, tuple[Callable[[], CodedStore], str]] = {
    "torn": (lambda: Decoding(torn), "parts of generations 0, "),
    "corrupt": (lambda: Decoding(flipped), "damaged content (corrupt)"),
    "zeros": (lambda: Decoding(lambda _, content: bytes(len(content))), "found zeros (blank)"),
    "foreign": (lambda: Decoding(lambda _, content: b"U" * len(content)), "damaged content (foreign)"),
    "stale redundancy": (StaleParity, "found "),
    "swallows what is beyond m": (SwallowsLoss, "beyond m, before repair"),
    "forgets writes": (ForgetsWrites, "(stale)"),
    "gives up at m": (GivesUpAtM, "is lost"),
    "repairs nothing": (RepairsNothing, "repaired, as it said, and erased elsewhere"),
    "repairs redundancy wrongly": (RepairsWrongly, "repaired, as it said, and erased elsewhere"),
    "wrong while repairing": (WrongWhileRepairing, "erased, during repair"),
    "always healthy": (AlwaysHealthy, "it says healthy"),
    "cries wolf": (CriesWolf, "it says lost (), with no more than m units erased"),
    "does not look for corruption": (Careless, "corrupted, before repair"),
    "refuses writes": (RefusesWrites, "put of block"),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_each_defect_fails_and_is_named(defect: str) -> None:
    make, said = DEFECTS[defect]
    result = of_store(make(), CampaignPlan(7, erasures=24, beyond=3, corruptions=3))
    assert result.verdict is Verdict.FAIL
    assert any(said in reason for reason in result.failures), result.failures[:3]


def test_content_of_another_block_is_named() -> None:
    class Neighbour(CodedStore):
        def block(self, stripe: int, unit: int) -> bytes:
            if self.read(stripe, unit) is None and stripe + 1 < self.stripes - 1:
                self.damaged.add(stripe)
                return super().block(stripe + 1, unit)
            return super().block(stripe, unit)

    result = of_store(Neighbour())
    assert result.verdict is Verdict.FAIL
    assert any("(misplaced)" in reason for reason in result.failures)


def test_more_failures_than_are_shown_are_counted() -> None:
    result = of_store(Decoding(lambda _, content: bytes(len(content))))
    assert len(result.failures) == 50
    assert result.reasons[-1] == f"and {result.more_failures} failures more"


def test_corruption_that_is_not_covered_is_said_and_no_failure() -> None:
    for promise in (SilentCorruption.NOT_COVERED, SilentCorruption.UNKNOWN):
        result = of_store(CodedStore(promise=promise))
        assert (result.verdict, result.reasons) == (Verdict.PASS, ())
        assert any("silent corruption: it gave wrong bytes" in text for text in result.not_covered)
        assert result.corrupted_found < result.corrupted
        assert result.matrix.total([Damage.CORRUPTED]).wrong > 0


def test_a_store_that_hangs_is_unknown() -> None:
    let_go = threading.Event()

    class Hangs(CodedStore):
        def decoded(self, stripe: int, wanted: list[int]) -> dict[int, bytes]:
            let_go.wait()
            return super().decoded(stripe, wanted)

    try:
        store = Hangs()
        result = judged(store, SectorEraser(store.drives), PLAN, limit_s=0.3)
    finally:
        let_go.set()
    assert result.verdict is Verdict.UNKNOWN
    assert "did not return in 0.3 s" in result.reasons[0]
    assert result.matrix.total([Damage.ERASED]).unknown > 0
    assert result.not_covered


def test_time_that_runs_out_is_unknown_with_what_was_covered() -> None:
    class Ends:
        """A clock that is over after so many looks at it."""

        def __init__(self, looks: int) -> None:
            self._left = looks
            self._clock = RealClock()

        def now_ns(self) -> int:
            self._left -= 1
            return self._clock.now_ns() if self._left > 0 else self._clock.now_ns() + 10**15

        wall = RealClock().wall
        sleep_until_ns = RealClock().sleep_until_ns

    store = CodedStore()
    clock = Ends(400)
    with RecoveryOracle(store, Deadline.after(clock, 1000), seed=1) as oracle:
        result = Campaign(oracle, SectorEraser(store.drives), CampaignPlan(1, together=1)).run()
    assert result.verdict is Verdict.UNKNOWN
    assert "the time given is over" in result.reasons[0]
    assert 0 < result.coverage.share("patterns") < 1
    assert any("patterns: " in text for text in result.not_covered)


def test_a_checker_that_crashes_is_unknown() -> None:
    class Crashes(CodedStore):
        def recovery_state(self) -> RecoveryState:
            raise KeyError("state")

    result = of_store(Crashes())
    assert (result.verdict, result.cause_of_doubts) == (Verdict.UNKNOWN, Cause.HARNESS)
    assert "KeyError: 'state'" in result.reasons[0]


def test_a_cache_that_hides_the_damage_is_unknown() -> None:
    class Cached(CodedStore):
        def read(self, stripe: int, unit: int) -> bytes | None:
            return self.cache[stripe, unit]

        def write(self, stripe: int, unit: int, content: bytes) -> None:
            self.__dict__.setdefault("cache", {})[stripe, unit] = content
            super().write(stripe, unit, content)

        def describe(self) -> SelfDescription:
            return replace(super().describe(), reports_damage=False)

        cache: dict[tuple[int, int], bytes]

    result = of_store(Cached())
    assert result.verdict is Verdict.UNKNOWN
    assert any("nothing was loud" in reason for reason in result.reasons)


def test_without_places_nothing_can_be_erased() -> None:
    plain = BlockSystem(MemoryBlocks(40 * SECTOR), "plain")
    store = CodedStore()
    for eraser, said in ((None, "nothing to erase with"), (SectorEraser(store.drives), "does not say where")):
        result = judged(plain, eraser, PLAN)
        assert result.verdict is Verdict.UNKNOWN
        assert said in result.reasons[0]
        assert result.matrix.total([Damage.NONE]).right == 40


def test_a_system_that_is_wrong_undamaged_is_not_damaged() -> None:
    class Wrong(CodedStore):
        def get(self, first: int, count: int) -> bytes:
            return bytes(count * SECTOR)

    store = Wrong()
    eraser = SectorEraser(store.drives)
    result = judged(store, eraser, PLAN)
    assert result.verdict is Verdict.FAIL
    assert "(undamaged)" in result.reasons[0]
    assert eraser.erasures == []


@settings(max_examples=12, deadline=None)
@given(
    st.integers(1, 6),
    st.integers(1, 3),
    st.integers(1, 4),
    st.integers(0, 100),
    st.sampled_from([SilentCorruption.CORRECTED, SilentCorruption.NOT_COVERED]),
    st.booleans(),
)
def test_no_right_store_raises_an_alarm(
    k: int, m: int, stripes: int, seed: int, promise: SilentCorruption, takes_drives: bool
) -> None:
    store = CodedStore(k, m, stripes, short=seed % k, promise=promise)
    eraser = (DriveEraser if takes_drives else SectorEraser)(store.drives)
    result = judged(store, eraser, CampaignPlan(seed, erasures=20, beyond=4, corruptions=4))
    assert (result.verdict, result.reasons) == (Verdict.PASS, ())


@settings(max_examples=12, deadline=None)
@given(st.integers(1, 5), st.integers(1, 3), st.integers(0, 100), st.sampled_from(["torn", "flipped", "zeros"]))
def test_no_wrong_decoding_escapes(k: int, m: int, seed: int, defect: str) -> None:
    changes: dict[str, Change] = {"torn": torn, "flipped": flipped, "zeros": lambda _, content: bytes(len(content))}
    store = Decoding(changes[defect], k, m)
    result = of_store(store, CampaignPlan(seed, erasures=12, beyond=0, corruptions=0))
    assert result.verdict is Verdict.FAIL
