"""Random schedules: the same seed draws the same, and nothing drawn exceeds the bound."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackloop.errors import BadInput
from rackloop.faults.schedules import (
    Bound,
    FaultChoice,
    RandomSchedule,
    bound_problems,
    drawn,
    read_schedule,
    require_within_bound,
    schedule_yaml,
)
from tests.unit.harness.schedule_cases import RANDOM_SCHEDULES, schedule, step, taking

SEEDS = st.integers(0, 2**63 - 1)
STORM = RandomSchedule(
    "storm",
    (
        FaultChoice("hang", ("d01", "d02"), (0.5, 2.0), weight=3.0),
        FaultChoice("fail_slow", ("d03",), (0.1, 0.1), weight=1.0),
    ),
    every_s=0.2,
    duration_s=600.0,
    most=Bound(2, 2, 0),
    recovery_s=0.5,
)


@given(RANDOM_SCHEDULES, SEEDS)
def test_a_seed_draws_the_same_to_the_byte(chances: RandomSchedule, seed: int) -> None:
    once, again = drawn(chances, seed, "test", taking=taking), drawn(chances, seed, "test", taking=taking)
    assert schedule_yaml(once) == schedule_yaml(again)
    assert read_schedule(schedule_yaml(once)) == once
    assert once.seed == seed


@given(RANDOM_SCHEDULES, SEEDS)
def test_nothing_drawn_exceeds_the_bound_or_lasts_too_long(chances: RandomSchedule, seed: int) -> None:
    found = drawn(chances, seed, taking=taking)
    assert list(bound_problems(found, taking)) == []
    assert found.lasts_s <= chances.duration_s + 1e-6


@given(SEEDS, st.integers(1, 3_000_000))
def test_a_drawn_schedule_keeps_a_recovery_that_is_no_whole_millisecond(seed: int, recovery_us: int) -> None:
    chances = replace(STORM, most=Bound(1, 1, 0), recovery_s=recovery_us / 1e6, duration_s=60.0)
    found = drawn(chances, seed, taking=taking)
    assert list(bound_problems(found, taking)) == []


def test_seeds_and_names_draw_differently() -> None:
    assert len({drawn(STORM, seed, *names).steps[0].at_s for seed, names in ((1, ()), (2, ()), (1, ("other",)))}) == 3


def test_faults_are_drawn_by_weight_on_all_targets() -> None:
    found = drawn(replace(STORM, most=Bound(3, 3, 0), recovery_s=0.0, duration_s=2000.0), 7).steps
    hangs = sum(each.fault.kind == "hang" for each in found)
    assert hangs / len(found) == pytest.approx(0.75, abs=0.05)
    assert {each.fault.target for each in found} == {"d01", "d02", "d03"}


def test_a_fault_that_alone_exceeds_the_bound_is_refused_before_anything_is_drawn() -> None:
    chances = replace(STORM, choices=(FaultChoice("server_crash", ("srv1",), (1, 1)),), places=("s.yaml:6:5",))
    with pytest.raises(BadInput, match=r"s\.yaml:6:5: .*server_crash of srv1: 2 drives \(d01, d02\).*allows 1; raise"):
        drawn(replace(chances, most=Bound(1, 1, 1)), 1, taking=taking)
    assert drawn(replace(chances, most=Bound(1, 2, 1)), 1, taking=taking).steps


def test_the_bound_counts_what_faults_take_and_not_only_the_faults() -> None:
    crash = step(0, 2, "srv1", "server_crash")
    both = schedule(crash, step(1, 2, "d01"), most=Bound(2, 2, 1))
    assert list(bound_problems(both, taking)) == [], "a drive of a server that is away anyway is no further one"
    more = schedule(crash, step(1, 2, "d03"), most=Bound(2, 2, 1), places=("s.yaml:3:5", "s.yaml:4:5"))
    with pytest.raises(BadInput, match=r"s\.yaml:4:5: step 2 .*: 3 drives \(d01, d02, d03\) would be broken at once"):
        require_within_bound(more, taking)


def test_the_bound_counts_a_fault_for_as_long_as_its_own_parameters_have_it_stand() -> None:
    flap = step(0, 0.2, "d01", "phy_flap")
    assert flap.ends_s == pytest.approx(1.05)
    ((index, problem),) = bound_problems(schedule(flap, step(0.5, 1, "d02")))
    assert (index, problem.partition("; ")[2].partition(",")[0]) == (1, "begin it at 1.05 s")
    assert list(bound_problems(schedule(flap, step(1.05, 1, "d02")))) == []
    assert schedule(flap).lasts_s == pytest.approx(1.05)


def test_a_later_round_is_held_against_the_bound_too() -> None:
    repeated = schedule(step(0, 1), step(1.5, 1, "d02"), recovery_s=0.5, repeats=2)
    assert repeated.unrolled().steps == (
        step(0, 1),
        step(1.5, 1, "d02"),
        step(3, 1),
        step(4.5, 1, "d02"),
    )
    assert list(bound_problems(repeated, taking)) == []
