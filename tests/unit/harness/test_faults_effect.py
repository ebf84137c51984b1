"""What reads tell of a fault: those that ran before it, while it stood, or only after it was mended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from rackloop.faults import FaultSpec, Injection, first_trouble
from rackloop.record import Stage
from tests.parts import parts

TENTH_NS = 100_000_000
# It stands from 0.25 s until 0.65 s.
HUNG = Injection(1, FaultSpec("hang", "d01"), "k", parts(), 250_000_000, 251_000_000, healed_ns=650_000_000)


@dataclass
class Interval:
    """What completed in a tenth of a second; the longest read began 10 ms before its end."""

    t_ns: int
    max_us: float = 300
    completed: int = 100
    in_flight: int = 1
    errors: int = 0
    max_submit_ns: int = 0

    def __post_init__(self) -> None:
        self.max_submit_ns = self.max_submit_ns or self.t_ns - 10_000_000 if self.completed else 0

    @property
    def max_complete_ns(self) -> int:
        return self.max_submit_ns + round(self.max_us * 1000) if self.completed else 0


def silent(t_ns: int) -> Interval:
    return Interval(t_ns, max_us=0, completed=0)


def tenths(longest_us: Sequence[float], first: int = 1) -> list[Interval]:
    return [Interval((first + number) * TENTH_NS, longest) for number, longest in enumerate(longest_us)]


def test_a_drive_that_answers_nothing_is_seen_at_once_where_reads_ran_before() -> None:
    watch = [*tenths([300, 300, 300]), *(silent(n * TENTH_NS) for n in range(4, 7))]
    assert first_trouble(HUNG, watch) == Stage("unanswered read", 300_000_000, "rackprobe", TENTH_NS)


def test_reads_that_began_in_the_fault_are_told_by_those_after_it() -> None:
    held = Interval(7 * TENTH_NS, 290_000, completed=1, max_submit_ns=360_000_000)
    watch = [held, *tenths([300, 300], first=8)]
    assert first_trouble(HUNG, watch) == Stage("slow read", 360_000_000, "rackprobe", 450_000_000)
    slowed = [Interval(5 * TENTH_NS, 2_000), *tenths([300, 300], first=8)]
    assert first_trouble(HUNG, slowed) == Stage("slow read", 490_000_000, "rackprobe", 250_000_000)


def test_a_read_that_is_answered_after_the_interval_of_the_mending_was_held_by_the_fault() -> None:
    held = Interval(8 * TENTH_NS, 300_000, completed=1, max_submit_ns=410_000_000)
    watch = [Interval(4 * TENTH_NS, 300), *(silent(n * TENTH_NS + 60_000_000) for n in (4, 5, 6)), held]
    assert first_trouble(HUNG, watch) == Stage("unanswered read", 400_000_000, "rackprobe", 60_000_000)
    assert first_trouble(HUNG, [held, *tenths([300], first=9)]) == Stage(
        "slow read", 410_000_000, "rackprobe", 550_000_000
    )


def test_without_any_other_read_a_long_one_is_needed() -> None:
    assert first_trouble(HUNG, [Interval(5 * TENTH_NS, 99_000)]) is None
    long = Interval(6 * TENTH_NS, 150_000, max_submit_ns=400_000_000)
    assert first_trouble(HUNG, [long]) == Stage("slow read", 400_000_000, "rackprobe", 350_000_000)


def test_a_request_that_fails_needs_no_other_to_be_compared_with() -> None:
    (failed,) = tenths([300], first=4)
    failed.errors = 1
    assert first_trouble(HUNG, [failed]) == Stage("failed read", 250_000_000, "rackprobe", 150_000_000)


@pytest.mark.parametrize(
    "watch",
    [
        [],
        tenths([300] * 9),
        tenths([300, 90_000, 300, 300, 300, 300]),
        tenths([300] * 7 + [90_000]),
        tenths([100, 100, 100, 900, 100]),
        [silent(n * TENTH_NS) for n in (8, 9)],
        [*tenths([300] * 3), Interval(4 * TENTH_NS, 0, completed=0, in_flight=0)],
        [silent(4 * TENTH_NS)],
    ],
    ids=["no watch", "nothing", "before", "after", "under a millisecond", "silent after", "nobody reads", "just begun"],
)
def test_what_the_fault_did_not_do_is_not_seen_of_it(watch: list[Interval]) -> None:
    assert first_trouble(HUNG, watch) is None
