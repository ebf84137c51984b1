"""What is held against the parts of a rack when a test fails, and what is not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rackloop.clock import VirtualClock
from rackloop.errors import LabError
from rackloop.measurement import Cause, Verdict
from rackloop.safety.leases import HeldLease, LeaseLost, Leases, LeaseTerms, holding, slice_of
from rackloop.safety.maintenance import Gear, QuarantineRule, Seen, Trial, Upkeep, diagnose
from rackloop.safety.store import Store, open_store
from rackloop.safety.undo import ActRecorder, Journal
from rackloop_fixtures import _triage
from rackloop_fixtures._outcome import Outcome
from rackloop_fixtures._triage import Triage
from rackloop_labs.in_service import BenchInService
from tests.unit.sim_rack import SimRack, described

D01, SRV2 = Gear.drive("d01"), Gear.server("srv2")
AWAY = LabError("d01 is away")
FAILED = Outcome(Verdict.FAIL, Cause.PRODUCT, "a read failed")


@dataclass
class Work:
    """A run that holds a rack in memory, where every drive that is tried is found at fault."""

    stack: ExitStack
    folder: Path
    held: HeldLease
    lost: dict[str, str] = field(default_factory=dict)
    tried: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        clock = VirtualClock()
        self.lab = described(self.folder)
        whole: Any = SimpleNamespace(lab=self.lab, clock=clock, equipment=replace(SimRack(clock).equipment))
        self.bench = BenchInService(whole)
        self.upkeep = Upkeep(self.held.leases.store, self.lab.name)
        self.steals_meanwhile = False
        run: Any = SimpleNamespace(events=SimpleNamespace(write=lambda _event: None), directory=Path("run-1"))
        self.triage = Triage(run, self.upkeep, QuarantineRule(failures=1, tests=10))

    def steal(self) -> None:
        leases = Leases(store_in(self.stack, self.folder), self.lab.name)
        self.stack.enter_context(holding(leases, slice_of(self.lab), LeaseTerms(steal_why="an outage")))

    def retest(self, _bench: object, _equipment: object, drive: str, _blocks: object) -> Any:
        self.tried.append(drive)
        if self.steals_meanwhile:
            self.steal()
        return diagnose([Trial(drive, *self.lab.places[drive], Seen.UNREADABLE)])

    def fails(self, error: LabError | None) -> None:
        """A test that ends so."""
        health: Any = SimpleNamespace(lost=self.lost, forget=lambda: None)
        recorder = ActRecorder(self.lab, Journal(self.held.leases.store), "run-1", lease=self.held)
        settled: Any = SimpleNamespace(is_broken=False)
        with self.triage.around(cast(Any, None), self.bench, settled, health, recorder):
            if error is not None:
                raise error


def store_in(stack: ExitStack, folder: Path) -> Store:
    return stack.enter_context(closing(open_store(folder / "store.sqlite", VirtualClock())))


@pytest.fixture
def phases() -> list[Outcome]:
    """What became of the test's phases."""
    return []


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, phases: list[Outcome]) -> Iterator[Work]:
    with ExitStack() as stack:
        lab = described(tmp_path)
        held = stack.enter_context(holding(Leases(store_in(stack, tmp_path), lab.name), slice_of(lab)))
        work = Work(stack, tmp_path, held)
        monkeypatch.setattr(_triage, "id_of", lambda _item: "one/it")
        monkeypatch.setattr(_triage, "phases_of", lambda _item: phases)
        monkeypatch.setattr(_triage, "note", lambda *_: None)
        monkeypatch.setattr(_triage, "_not_working", lambda _bench: ["d01"])
        monkeypatch.setattr(_triage, "retest", work.retest)
        yield work


def test_what_fails_is_held_against_what_is_at_fault(work: Work) -> None:
    work.lost["srv2"] = "no answer"
    with pytest.raises(LabError):
        work.fails(AWAY)
    assert work.tried == ["d01"]
    assert {D01, SRV2} <= set(work.upkeep.standing())


@pytest.mark.parametrize("error", [AWAY, LeaseLost("stolen"), None])
def test_nothing_is_held_against_gear_that_somebody_else_has_taken(
    work: Work, phases: list[Outcome], error: LabError | None
) -> None:
    phases += [] if error else [FAILED]
    work.lost["srv2"] = "no answer"
    work.steal()
    with pytest.raises(LeaseLost, match="stolen"):
        work.fails(error)
    assert work.tried == []
    assert work.upkeep.standing() == {}
    assert work.upkeep.failures(SRV2) == []


def test_a_rack_that_is_taken_during_a_retest_is_judged_no_more(work: Work) -> None:
    work.steals_meanwhile = True
    with pytest.raises(LeaseLost, match="stolen"):
        work.fails(AWAY)
    assert work.upkeep.failures(D01) == []
