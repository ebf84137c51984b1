"""Faults that stand longer than they should: they count as standing, and where they stay nothing else is broken."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rackloop.clock import VirtualClock
from rackloop.errors import DeadlineExceeded
from rackloop.faults import Faults, FaultSpec
from rackloop.faults.schedules import Bound, ScheduleFailed, play
from rackloop.safety.store import open_store
from rackloop.safety.undo import ActRecorder, Journal, UndoFailed
from tests.unit.harness.schedule_cases import schedule, step, taking
from tests.unit.harness.sim_rack import SimRack, described


@dataclass
class Injected:
    """A fault as the guard of faults gives it."""

    spec: FaultSpec
    stands: bool = True


@dataclass
class KeepingRack:
    """A rack on which d01 cannot be mended while one of ``keepers`` stands; it is then mended with the end of that."""

    clock: VirtualClock
    keepers: frozenset[str]
    leaves: frozenset[str] = frozenset()
    made: list[Injected] = field(default_factory=list)
    ended: list[Injected] = field(default_factory=list)
    most: int = 0

    def begin(self, spec: FaultSpec) -> Injected:
        """Break it; of a target that ``leaves`` something behind nobody heard whether it did."""
        self.made.append(made := Injected(spec))
        self.most = max(self.most, sum(each.stands for each in self.made))
        if spec.target in self.leaves:
            raise UndoFailed((f"{spec} may stand",))
        return made

    def end(self, injection: Injected) -> None:
        """Mend it, and what it kept."""
        self.ended.append(injection)
        for each in reversed(self.ended):
            others = {other.spec.target for other in self.made if other.stands and other is not each}
            each.stands = each.spec.target == "d01" and not others.isdisjoint(self.keepers)

    @property
    def begun(self) -> list[str]:
        """The targets of all that was begun."""
        return [each.spec.target for each in self.made]


def test_a_fault_that_another_keeps_from_being_mended_counts_as_standing() -> None:
    rack = KeepingRack(clock := VirtualClock(), keepers=frozenset({"d02"}))
    script = schedule(step(0, 1, "d01"), step(0.5, 3, "d02"), step(2, 1, "d03"), most=2)
    played = play(script, rack, clock, taking=taking)
    assert rack.most == 2
    first, _, third = played.done
    assert (first.mending_ns, first.ended_ns) == (1_000_000_000, 3_500_000_000)
    assert third.begun_ns == 3_500_000_000


def test_recovery_is_counted_from_the_moment_the_kept_one_was_mended() -> None:
    rack = KeepingRack(clock := VirtualClock(), keepers=frozenset({"d02"}))
    script = schedule(step(0, 1, "d01"), step(0.5, 3, "d02"), step(5.5, 1, "d03"), most=2, recovery_s=2)
    played = play(script, rack, clock, taking=taking)
    assert played.done[2].begun_ns == 5_500_000_000
    assert played.held_s == 0


def test_after_a_fault_that_something_else_keeps_none_is_begun() -> None:
    rack = KeepingRack(clock := VirtualClock(), keepers=frozenset({"srv9"}))
    rack.begin(FaultSpec("server_hang", "srv9"))
    with pytest.raises(
        ScheduleFailed, match="hang of d01 was not ended: a fault not of this schedule keeps it"
    ) as raised:
        play(schedule(step(0, 1, "d01"), step(2, 1, "d02")), rack, clock, taking=taking)
    assert rack.begun == ["srv9", "d01"]
    assert [done.ended_ns for done in raised.value.played.done] == [None]


def test_after_a_fault_that_may_stand_though_its_begin_failed_none_is_begun_and_all_others_are_ended() -> None:
    rack = KeepingRack(clock := VirtualClock(), keepers=frozenset(), leaves=frozenset({"d02"}))
    script = schedule(step(0, 9, "d01"), step(1, 1, "d02"), step(3, 1, "d03"), most=3)
    with pytest.raises(ScheduleFailed, match=r"hang of d02 at 1 s was not begun: .*hang of d02 may stand"):
        play(script, rack, clock, taking=taking)
    assert rack.begun == ["d01", "d02"]
    assert not rack.made[0].stands


@pytest.mark.parametrize("stays", [False, True])
def test_no_more_stand_than_the_bound_allows_where_answers_are_lost(tmp_path: Path, stays: bool) -> None:
    clock = VirtualClock()
    rack = SimRack(clock)
    journal = Journal(open_store(tmp_path / "store.sqlite", clock))
    lab = described(tmp_path)
    drive, most = rack.parts["drive:d01"], 0

    def lose_the_answer() -> None:
        raise DeadlineExceeded("no answer")

    def count() -> None:
        nonlocal most
        most = max(most, sum(len(part.broken) for part in rack.parts.values()))

    drive.after, drive.stays = lose_the_answer, stays
    rack.parts["server:srv1"].after = count
    script = schedule(step(0, 1, "d01"), step(2, 1, "srv1", "server_hang"), most=Bound(1, 4, 1))
    with Faults(lab, rack.equipment, clock, ActRecorder(lab, journal, "run 1")) as faults:
        with pytest.raises(ScheduleFailed, match="hang of d01 at 0 s was not begun"):
            play(script, faults, clock, taking=taking)
        assert most == (0 if stays else 1), "only where nothing stands is the rest played"
        drive.stays = False
    assert not any(part.broken for part in rack.parts.values())
    journal.close()
