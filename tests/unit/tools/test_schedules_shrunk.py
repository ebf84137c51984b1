"""Shrinking: what is left is the least that fails, within the runs allowed."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackloop.clock import VirtualClock
from rackloop.errors import BadInput, LabError
from rackloop.faults.schedules import Schedule, Step, bound_problems, play
from rackloop_cli.schedule.delta_debugging import ddmin, shrink
from rackloop_cli.schedule.trial_words import tried
from tests.unit.harness.schedule_cases import TellingRack, schedule, step, taking

TARGETS = ("d01", "d02", "d03", "d04")


def overlap(found: Schedule, first: str, second: str) -> bool:
    """Whether a fault of one target and one of another stand at the same time."""
    spans = {name: [each for each in found.steps if each.fault.target == name] for name in (first, second)}
    return any(one.at_s < other.ends_s and other.at_s < one.ends_s for one in spans[first] for other in spans[second])


@st.composite
def storms(draw: st.DrawFn) -> Schedule:
    """Many faults, two of which overlap: on d01 and on d02."""
    steps = draw(
        st.lists(
            st.builds(
                step,
                at_s=st.integers(0, 20_000).map(lambda ms: ms / 1000),
                lasts_s=st.integers(100, 5_000).map(lambda ms: ms / 1000),
                target=st.sampled_from(TARGETS),
                factor=st.integers(1, 9),
            ),
            max_size=20,
        )
    )
    steps += [step(7, 2, "d01"), step(8, 2, "d02")]
    return schedule(*sorted(steps, key=lambda each: each.at_s), most=99)


@given(storms())
def test_a_failure_of_two_overlapping_faults_shrinks_to_exactly_these_two(storm: Schedule) -> None:
    shrunk = shrink(storm, lambda candidate: overlap(candidate, "d01", "d02"), most_runs=5_000)
    assert shrunk.is_minimal
    assert sorted(each.fault.target for each in shrunk.schedule.steps) == ["d01", "d02"]
    assert [(each.at_s, each.lasts_s, each.fault.parameters) for each in shrunk.schedule.steps] == [(0, 0.001, {})] * 2


@given(st.sets(st.integers(0, 59), min_size=1, max_size=5))
def test_delta_debugging_finds_exactly_what_is_needed(needed: set[int]) -> None:
    assert set(ddmin(range(60), lambda part: needed <= set(part))) == needed


def test_it_is_found_in_virtual_time_by_playing() -> None:
    """The system under test loses data where two drives are away at once for half a second."""

    def loses_data(candidate: Schedule) -> bool:
        rack = TellingRack(clock := VirtualClock())
        play(candidate, rack, clock, taking=taking)
        away: dict[str, float] = {}
        for at_s, what, target in rack.told:
            if what == "begin":
                away[target] = at_s
            else:
                began_s = away.pop(target)
                if any(at_s - max(began_s, other_s) >= 0.5 for other_s in away.values()):
                    return True
        return False

    steps = [step(number, 0.9, TARGETS[number % 4]) for number in range(40)]
    storm = schedule(*steps, step(41, 3, "d02"), step(42, 3, "d04"), *(step(50 + n, 0.5) for n in range(20)), most=2)
    shrunk = shrink(storm, loses_data, is_allowed=lambda candidate: not [*bound_problems(candidate, taking)])
    first, second = shrunk.schedule.steps
    assert {first.fault.target, second.fault.target} == {"d02", "d04"}
    assert shrunk.is_minimal
    assert first.at_s == 0
    assert min(first.ends_s, second.ends_s) - second.at_s == pytest.approx(0.5, abs=0.01)
    assert shrunk.runs <= 200


def test_a_failure_without_any_fault_is_said_to_need_none() -> None:
    shrunk = shrink(schedule(step(0, 1)), lambda _candidate: True)
    assert (shrunk.schedule.steps, shrunk.runs) == ((), 2)


def test_a_schedule_that_does_not_fail_cannot_be_shrunk() -> None:
    with pytest.raises(LabError, match=r"did not fail 2 of 2 times, .*: it never failed"):
        shrink(schedule(step(0, 1)), lambda _candidate: False, times=2)


def test_a_candidate_that_fails_only_sometimes_counts_as_passing() -> None:
    turns = count()

    def fails(candidate: Schedule) -> bool:
        targets = [each.fault.target for each in candidate.steps]
        return targets == ["d01", "d02"] or ("d01" in targets and next(turns) % 2 == 0)

    shrunk = shrink(schedule(step(0, 1), step(2, 1, "d02")), fails, times=2)
    assert [each.fault.target for each in shrunk.schedule.steps] == ["d01", "d02"]
    assert shrunk.flaky > 0


def test_no_more_runs_are_made_than_allowed_and_the_best_is_kept() -> None:
    storm = schedule(*(step(number, 0.5) for number in range(64)))
    runs = []
    shrunk = shrink(
        storm,
        lambda candidate: any(each.at_s == 40 for each in candidate.steps),
        most_runs=9,
        on_run=lambda number, _candidate, _best: runs.append(number),
    )
    assert (shrunk.runs, shrunk.is_minimal, runs) == (9, False, [*range(1, 10)])
    assert 1 <= len(shrunk.schedule.steps) < 64


def test_an_interrupt_keeps_the_best_so_far() -> None:
    storm = schedule(*(step(number, 0.5) for number in range(8)))
    turns = count()

    def fails(candidate: Schedule) -> bool:
        if next(turns) == 4:
            raise KeyboardInterrupt
        return any(each.at_s == 0 for each in candidate.steps)

    shrunk = shrink(storm, fails)
    assert shrunk.is_interrupted
    assert not shrunk.is_minimal
    assert len(shrunk.schedule.steps) < 8


def test_candidates_that_exceed_the_bound_are_not_run() -> None:
    """Moving a step earlier makes two overlap; that is not tried."""
    ran: list[Schedule] = []

    def fails(candidate: Schedule) -> bool:
        ran.append(candidate)
        return len(candidate.steps) == 2

    shrink(schedule(step(0, 4), step(9, 4, "d02")), fails, is_allowed=lambda found: not [*bound_problems(found)])
    assert all(not list(bound_problems(candidate)) for candidate in ran)


def test_a_fault_is_not_tried_shorter_where_its_own_parameters_have_it_stand_as_long() -> None:
    shrunk = shrink(schedule(step(0, 2, "d01", "phy_flap")), lambda candidate: bool(candidate.steps))
    assert (shrunk.schedule.steps, shrunk.is_minimal) == ((step(0, 1, "d01", "phy_flap"),), True)


def test_repeats_are_written_out_first() -> None:
    storm = schedule(step(0, 1), repeats=5)
    shrunk = shrink(storm, lambda candidate: len(candidate.steps) >= 3)
    assert len(shrunk.schedule.steps) == 3
    assert shrunk.schedule.repeats == 1
    assert all(isinstance(each, Step) for each in shrunk.schedule.steps)


def test_fewer_runs_than_one_candidate_takes_are_refused_before_any_run() -> None:
    ran = []

    def fails(candidate: Schedule) -> bool:
        ran.append(candidate)
        return True

    with pytest.raises(BadInput, match="2 runs are too few to see a schedule fail 3 of 3 times; allow more runs"):
        shrink(schedule(step(0, 1)), fails, times=3, most_runs=2)
    assert ran == []


def test_what_a_fault_needs_is_not_taken_from_it() -> None:
    ran: list[Schedule] = []

    def fails(candidate: Schedule) -> bool:
        ran.append(candidate)
        return any(each.fault.kind == "miswire" for each in candidate.steps)

    miswire = step(0, 0.5, "d01", "miswire", **{"with": "d02"})
    shrunk = shrink(schedule(miswire, step(1, 1)), fails, is_allowed=lambda found: not [*bound_problems(found, taking)])
    assert shrunk.is_minimal
    assert all(each.fault.parameters for found in ran for each in found.steps if each.fault.kind == "miswire")


def test_a_candidate_that_the_lab_cannot_have_is_not_run() -> None:
    """What else a simpler fault may lack only the lab knows."""
    ran: list[Schedule] = []

    def is_allowed(candidate: Schedule) -> bool:
        if any("factor" not in each.fault.parameters for each in candidate.steps):
            raise BadInput("slow needs factor")
        return True

    def fails(candidate: Schedule) -> bool:
        ran.append(candidate)
        return bool(candidate.steps)

    shrunk = shrink(schedule(step(0, 1, factor=2), step(2, 1, factor=2)), fails, is_allowed=is_allowed)
    assert shrunk.is_minimal
    assert all(each.fault.parameters == {"factor": 2} for found in ran for each in found.steps)


def test_each_run_says_what_it_tried() -> None:
    storm = schedule(step(1, 2, "d01", factor=3), step(4, 2, "d02"), step(7, 1, "d03"), recovery_s=1, most=9)
    said: list[str] = []
    shrink(
        storm,
        lambda candidate: any(each.fault.target == "d02" for each in candidate.steps),
        on_run=lambda _number, candidate, best: said.append(tried(best, candidate)),
    )
    assert said[:4] == [
        "as it is",
        "without any fault",
        "without hang of d02 at 4 s, hang of d03 at 7 s",
        "without hang of d01 at 1 s",
    ]
    assert "without time to recover" in said
    assert "hang of d02 begins at 0 s, not 4 s" in said
    assert "hang of d02 at 0 s lasts 1 s, not 2 s" in said
    assert len(set(said)) == len(said), "no two runs are told alike"


def test_what_a_trial_changes_is_told_of_parameters_of_those_after_it_and_of_many() -> None:
    one, two = step(1, 2, "d01", factor=3), step(4, 2, "d02")
    storm = schedule(one, two, most=9)
    assert tried(storm, schedule(step(1, 2, "d01"), two)) == "hang of d01 at 1 s without factor"
    assert tried(storm, schedule(step(0, 2, "d01", factor=3), step(3, 2, "d02"))) == (
        "hang of d01 begins at 0 s, not 1 s and those after it as much earlier"
    )
    many = [step(number, 0.5) for number in range(20)]
    assert tried(schedule(*many), schedule(*many[:10])) == "without 10 faults"
    assert tried(schedule(*many), schedule(*many[:1])) == "only hang of d01 at 0 s"
