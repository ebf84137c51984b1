"""Playing schedules in virtual time: on time, in order, within the bound, and everything ended."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackloop.clock import VirtualClock
from rackloop.errors import BadInput, NotSupported
from rackloop.faults import FaultSpec
from rackloop.faults.schedules import (
    Bound,
    RandomSchedule,
    ScheduleFailed,
    bound_problems,
    drawn,
    play,
    read_schedule,
    schedule_yaml,
)
from tests.unit.harness.schedule_cases import RANDOM_SCHEDULES, TellingRack, schedule, step, taking


def test_faults_begin_and_end_on_time_and_in_order() -> None:
    rack = TellingRack(clock := VirtualClock())
    played = play(schedule(step(1, 2), step(2, 0.5, "d02"), step(5, 1, "d03"), most=2), rack, clock, taking=taking)
    assert rack.told == [
        (1, "begin", "d01"),
        (2, "begin", "d02"),
        (2.5, "end", "d02"),
        (3, "end", "d01"),
        (5, "begin", "d03"),
        (6, "end", "d03"),
    ]
    assert [done.late_s for done in played.done] == [0, 0, 0]
    assert (played.held_s, played.errors) == (0, ())


def test_a_fault_stands_as_long_as_its_own_parameters_say_though_its_step_is_shorter() -> None:
    rack = TellingRack(clock := VirtualClock())
    drop = step(0, 0.25, "d01", "phy_drop", down_s=1.0)
    played = play(schedule(drop, step(2, 3, "d02", "phy_drop", down_s=1.0)), rack, clock, taking=taking)
    assert rack.told == [(0, "begin", "d01"), (1, "end", "d01"), (2, "begin", "d02"), (5, "end", "d02")]
    assert [each.lasts_s for each in played.as_schedule().steps] == [1, 3]


@given(RANDOM_SCHEDULES, st.integers(0, 2**32))
def test_what_keeps_the_bound_is_played_on_time(chances: RandomSchedule, seed: int) -> None:
    rack = TellingRack(clock := VirtualClock())
    played = play(drawn(chances, seed, taking=taking), rack, clock, taking=taking)
    assert all(done.late_s <= 1e-6 for done in played.done)


def test_what_was_done_is_a_schedule_that_does_it_again() -> None:
    rack = TellingRack(clock := VirtualClock(), takes_s=0.25, mending_s=0.5)
    played = play(schedule(step(1, 1), step(2, 1, "d02")), rack, clock, taking=taking)
    again = played.as_schedule()
    assert [(each.at_s, each.lasts_s) for each in again.steps] == [(1, 1.5), (2.75, 1.5)]
    assert read_schedule(schedule_yaml(again)) == again
    replayed = TellingRack(other := VirtualClock())
    play(again, replayed, other, taking=taking)
    assert [moment for moment, what, _ in replayed.told if what == "begin"] == [1, 2.75]


@given(RANDOM_SCHEDULES, st.integers(0, 2**32), st.floats(0, 3), st.floats(0, 3))
def test_a_slow_rack_never_has_more_broken_than_the_bound_allows(
    chances: RandomSchedule, seed: int, takes_s: float, mending_s: float
) -> None:
    clock = VirtualClock()
    rack = TellingRack(clock, takes_s, mending_s)
    plan = drawn(chances, seed, taking=taking)
    played = play(plan, rack, clock, taking=taking)
    assert rack.standing == []
    assert len(played.done) == len(plan.steps)
    assert [done.fault for done in played.done] == [each.fault for each in plan.steps]
    assert list(bound_problems(played.as_schedule(), taking)) == []
    begins = [moment for moment, what, _ in rack.told if what == "begin"]
    assert begins == sorted(begins)
    assert all(done.late_s >= 0 for done in played.done)


def test_a_fault_that_ends_late_delays_what_comes_after() -> None:
    rack = TellingRack(clock := VirtualClock(), mending_s=4)
    played = play(schedule(step(0, 1), step(2, 1, "d02"), step(10, 1, "d03")), rack, clock, taking=taking)
    assert [(at, target) for at, what, target in rack.told if what == "begin"] == [(0, "d01"), (5, "d02"), (13, "d03")]
    assert [done.late_s for done in played.done] == [0, 3, 3]
    assert played.held_s == 3


def test_recovery_is_counted_from_the_moment_all_was_mended() -> None:
    rack = TellingRack(clock := VirtualClock(), mending_s=1)
    play(schedule(step(0, 1), step(3, 1, "d02"), recovery_s=2), rack, clock, taking=taking)
    assert [at for at, what, _ in rack.told if what == "begin"] == [0, 4]


def test_no_fault_begins_during_a_pause_and_those_that_stand_end() -> None:
    rack = TellingRack(clock := VirtualClock())
    conditions = {"recovering": lambda: 1 <= clock.now_ns() / 1e9 < 9}
    script = schedule(step(0, 4), step(2, 1, "d02"), step(3, 1, "d03"), most=3, pause=("recovering",))
    played = play(script, rack, clock, taking=taking, conditions=conditions)
    moments = {(what, target): at for at, what, target in rack.told}
    assert moments["end", "d01"] == 4
    assert moments["begin", "d02"] == pytest.approx(9, abs=0.02)
    assert moments["begin", "d03"] == pytest.approx(10, abs=0.02)
    assert played.held_s == pytest.approx(7, abs=0.02)


def test_a_pause_that_nobody_knows_is_refused_before_anything_is_done() -> None:
    rack = TellingRack(clock := VirtualClock())
    with pytest.raises(BadInput, match=r"pauses while 'recovring'.*did you mean 'recovering'\?"):
        play(schedule(step(0, 1), pause=("recovring",)), rack, clock, conditions={"recovering": lambda: False})
    assert rack.told == []


def test_a_schedule_that_exceeds_its_bound_is_refused_before_anything_is_done() -> None:
    rack = TellingRack(clock := VirtualClock())
    with pytest.raises(BadInput, match="2 drives"):
        play(schedule(step(0, 2), step(1, 2, "d02"), most=Bound(2, 1, 1)), rack, clock, taking=taking)
    assert rack.told == []


def test_a_fault_that_does_not_begin_is_told_and_the_rest_is_played() -> None:
    rack = TellingRack(clock := VirtualClock(), refuses=frozenset({"d01"}))
    with pytest.raises(ScheduleFailed, match="hang of d01 at 0 s was not begun: d01 does not break") as caught:
        play(schedule(step(0, 1), step(2, 1, "d02")), rack, clock, taking=taking)
    assert rack.told[1:] == [(2, "begin", "d02"), (3, "end", "d02")]
    assert [done.error is None for done in caught.value.played.done] == [False, True]
    assert len(caught.value.played.as_schedule().steps) == 1


def test_after_a_fault_that_does_not_end_none_begins_and_all_others_are_ended() -> None:
    rack = TellingRack(clock := VirtualClock(), keeps=frozenset({"d02"}))
    script = schedule(step(0, 9), step(1, 1, "d02"), step(3, 1, "d03"), most=3)
    with pytest.raises(ScheduleFailed, match="hang of d02 was not ended: d02 does not mend"):
        play(script, rack, clock, taking=taking)
    assert rack.standing == [FaultSpec("hang", "d02")]
    assert not [target for _, what, target in rack.told if (what, target) == ("begin", "d03")]


@pytest.mark.parametrize("error", [NotSupported("nothing hangs here"), KeyboardInterrupt()])
def test_whatever_happens_all_that_stands_is_ended(error: BaseException) -> None:
    class Interrupted(TellingRack):
        def begin(self, spec: FaultSpec) -> FaultSpec:
            if spec.target == "d03":
                raise error
            return super().begin(spec)

    rack = Interrupted(clock := VirtualClock())
    with pytest.raises(type(error)):
        play(schedule(step(0, 9), step(1, 9, "d02"), step(3, 1, "d03"), most=3), rack, clock, taking=taking)
    assert rack.standing == []
    assert [target for _, what, target in rack.told if what == "end"] == ["d02", "d01"]
