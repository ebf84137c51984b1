"""Clocks of others related to the run's, and one timeline of all that was written down."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackloop.inspection.timeline import ClockOffset, ClockReading, EvidenceLine, offset_of
from rackloop_fixtures.supervision.evidence_timeline import merge

MOMENTS = st.integers(min_value=0, max_value=10**15)
LINES = st.lists(
    st.builds(
        EvidenceLine,
        source=st.sampled_from(["switch", "srv1 kernel", "srv1 SEL"]),
        own_stamp=st.just(""),
        at_ns=st.none() | st.integers(min_value=0, max_value=10**10),
        error_ns=st.integers(min_value=0, max_value=10**9),
        text=st.text("ab", max_size=3),
    ),
    max_size=30,
)


@st.composite
def clocks(draw: st.DrawFn) -> tuple[int, list[ClockReading]]:
    """A clock that is some offset ahead and cut off to its resolution, read at unknown moments between two stamps."""
    offset_ns = draw(st.integers(min_value=-(10**15), max_value=10**18))
    resolution_ns = draw(st.sampled_from([0, 1, 1000, 10**9]))
    readings = []
    for _ in range(draw(st.integers(min_value=1, max_value=8))):
        before_ns = draw(MOMENTS)
        read_ns = before_ns + draw(st.integers(min_value=0, max_value=10**9))
        after_ns = read_ns + draw(st.integers(min_value=0, max_value=10**9))
        theirs_ns = read_ns + offset_ns
        shown_ns = theirs_ns if resolution_ns == 0 else theirs_ns // resolution_ns * resolution_ns
        readings.append(ClockReading(before_ns, shown_ns, after_ns, resolution_ns))
    return offset_ns, readings


@given(clocks())
def test_the_true_offset_is_never_further_off_than_the_error(clock: tuple[int, list[ClockReading]]) -> None:
    offset_ns, readings = clock
    found = offset_of(readings)
    assert abs(found.offset_ns - offset_ns) <= found.error_ns


@given(clocks())
def test_more_readings_are_never_worse_than_the_best_of_them(clock: tuple[int, list[ClockReading]]) -> None:
    _, readings = clock
    assert offset_of(readings).error_ns <= min(offset_of([reading]).error_ns for reading in readings)


def test_readings_that_contradict_one_another_are_left_to_the_narrowest() -> None:
    stepped = [ClockReading(0, 1000, 10), ClockReading(100, 9_000, 102)]
    assert offset_of(stepped) == ClockOffset(8_899, 1)


def test_without_a_reading_nothing_is_known() -> None:
    with pytest.raises(ValueError, match="no reading"):
        offset_of([])


def test_a_moment_of_another_clock_is_told_on_the_runs() -> None:
    assert ClockOffset(offset_ns=500, error_ns=2).run_ns(1_700) == 1_200


@given(LINES)
def test_a_timeline_is_sorted_and_keeps_everything_that_may_be_of_the_test(lines: list[EvidenceLine]) -> None:
    began_ns = 5 * 10**9
    merged = merge("t", "mock", began_ns, 10**10, lines, []).lines
    stamps = [line.at_ns for line in merged if line.at_ns is not None]
    assert stamps == sorted(stamps)
    assert [line.at_ns is None for line in merged] == sorted(line.at_ns is None for line in merged)
    left_out = [line for line in lines if line not in merged]
    assert all(line.at_ns is not None and line.at_ns + line.error_ns < began_ns for line in left_out)
    for source in {line.source for line in merged}:
        same = [line for line in merged if line.source == source and line.at_ns is None]
        assert same == [line for line in lines if line.source == source and line.at_ns is None]
