"""Health counters before and after."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from rackloop.inspection.health import COUNTERS as RULES
from rackloop.inspection.health import CounterChange, health_changes

COUNTERS = st.dictionaries(
    st.sampled_from([*sorted(RULES), "bytes_written", "reads"]), st.integers(min_value=0, max_value=2**63)
)


def alarms(before: Mapping[str, int], after: Mapping[str, int]) -> list[str]:
    return [change.alarm for change in health_changes(before, after) if change.alarm]


@given(COUNTERS, COUNTERS)
def test_every_counter_of_either_side_stands_once(before: dict[str, int], after: dict[str, int]) -> None:
    changes = health_changes(before, after)
    assert [change.counter for change in changes] == sorted({*before, *after})
    assert {change.counter: change.before for change in changes if change.before is not None} == before
    assert {change.counter: change.after for change in changes if change.after is not None} == after


@given(COUNTERS)
def test_nothing_that_stays_is_an_alarm(counters: dict[str, int]) -> None:
    assert alarms(counters, counters) == []


def test_work_moves_counters_and_wear_alarms() -> None:
    before = {"bytes_written": 10, "media_errors": 0, "power_cycles": 3}
    after = {"bytes_written": 4106, "media_errors": 2, "power_cycles": 3}
    assert [change.difference for change in health_changes(before, after)] == [4096, 2, 0]
    assert alarms(before, after) == ["media_errors went from 0 to 2: data could not be read back, or not be written"]


def test_a_counter_that_vanishes_is_an_alarm() -> None:
    assert alarms({"temperature": 40}, {}) == ["temperature is no longer reported: it was 40"]
    assert CounterChange("temperature", 40, None).difference is None


def test_a_counter_that_is_reported_for_the_first_time_moved_from_0() -> None:
    meaning = "data could not be read back, or not be written"
    assert alarms({}, {"media_errors": 7}) == [f"media_errors went from not reported to 7: {meaning}"]
    assert alarms({}, {"media_errors": 0, "temperature": 40}) == []
    assert CounterChange("media_errors", None, 7).difference == 7


def test_an_alarming_counter_that_falls_back_is_an_alarm_too() -> None:
    assert len(alarms({"power_cycles": 3}, {"power_cycles": 0})) == 1
