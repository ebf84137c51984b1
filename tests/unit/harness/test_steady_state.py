"""Steady state: both tests of the PTS, where it is attained and where it is left."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackloop.measurement import PTS, Criteria, SteadySpan, Window, attained, steady_spans, why_not_steady

VALUES = st.floats(min_value=1.0, max_value=1e7)
ROUNDS = st.lists(VALUES, min_size=5, max_size=40)


def test_the_criteria_are_those_of_the_specification() -> None:
    assert (PTS.rounds, PTS.excursion, PTS.slope) == (5, 0.20, 0.10)


@given(ROUNDS)
def test_a_window_is_measured_as_a_polynomial_fit_measures_it(values: list[float]) -> None:
    window = Window.over(values, len(values), 5)
    last = np.asarray(values[-5:])
    slope, start = np.polyfit(np.arange(5), last, 1)
    fit = start + slope * np.arange(5)
    assert (window.first, window.last) == (len(values) - 4, len(values))
    assert window.average == pytest.approx(last.mean())
    assert window.excursion == pytest.approx(np.ptp(last) / last.mean(), abs=1e-9)
    assert window.slope_excursion == pytest.approx(np.ptp(fit) / last.mean(), abs=1e-6)


@given(ROUNDS)
def test_the_first_steady_window_is_steady_and_none_before_it(values: list[float]) -> None:
    found = attained(values)
    ends = range(5, (found.last if found else len(values) + 1))
    assert not any(Window.over(values, last, 5).meets(PTS) for last in ends)
    assert found is None or Window.over(values, found.last, 5).meets(PTS)


@given(ROUNDS, st.floats(min_value=0.01, max_value=100))
def test_the_unit_does_not_matter(values: list[float], factor: float) -> None:
    window = Window.over(values, 5, 5)
    scaled = Window.over([value * factor for value in values], 5, 5)
    assert scaled.excursion == pytest.approx(window.excursion, abs=1e-9)
    assert scaled.slope_excursion == pytest.approx(window.slope_excursion, abs=1e-9)


@given(ROUNDS)
def test_spans_follow_one_another_and_are_steady_as_long_as_they_last(values: list[float]) -> None:
    spans = steady_spans(values)
    first = attained(values)
    assert (spans[0].attained if spans else None) == first
    for span, after in pairwise(spans):
        assert span.left is not None
        assert span.attained.last < span.left <= after.attained.last
    for span in spans:
        for last in range(span.attained.last, span.left or len(values) + 1):
            window = Window.over(values, last, 5)
            assert window.meets(PTS)
            assert window.is_as(span.attained, PTS)
        if span.left is not None:
            window = Window.over(values, span.left, 5)
            assert not (window.meets(PTS) and window.is_as(span.attained, PTS))


def test_a_constant_is_steady_with_its_fifth_round() -> None:
    window = attained([4000.0] * 5)
    assert window == Window(1, 5, 4000.0, 0.0, 4000.0, 0.0, 0.0)
    assert attained([4000.0] * 4) is None


@pytest.mark.parametrize(
    ("values", "is_steady"),
    [
        ([90, 110, 90, 110, 100], True),  # ranges over 20 %
        ([89.9, 110, 90, 110, 100.1], False),  # a little more
        ([100, 102.5, 105, 107.5, 110], True),  # drifts over 9.5 %
        ([95, 97.5, 100, 102.5, 105.1], False),  # drifts over 10.08 %, though it ranges over as much only
        ([110, 107.5, 105, 102.5, 100], True),  # downwards as well
        ([120, 100, 100, 100, 100], False),  # ranges over 19.2 %, drifts over 15.4 %
    ],
)
def test_both_tests_hold_at_their_bounds(values: list[float], is_steady: bool) -> None:
    assert (attained(values) is not None) is is_steady


def test_a_range_within_bounds_does_not_excuse_a_slope() -> None:
    values = [93.0, 96.5, 100.0, 103.5, 107.0]
    window = Window.over(values, 5, 5)
    assert window.excursion == pytest.approx(0.14)
    assert window.slope_excursion == pytest.approx(0.14)
    assert attained(values) is None
    assert attained(values, Criteria(slope=0.15)) is not None


def test_a_write_cliff_leaves_the_fresh_plateau_and_attains_another() -> None:
    values = [300.0] * 12 + [250.0, 180.0, 110.0] + [60.0] * 10
    fresh, worn = steady_spans(values)
    assert (fresh.attained.last, fresh.left) == (5, 13)  # the slope sees it first
    assert fresh.attained.average == 300
    assert (worn.attained.first, worn.left) == (16, None)
    assert worn.attained.average == 60


def test_a_creeping_drift_is_left_though_every_window_is_steady() -> None:
    values = [1000.0 * 0.98**turn for turn in range(20)]
    assert all(Window.over(values, last, 5).meets(PTS) for last in range(5, 21))
    first = steady_spans(values)[0]
    assert first.left is not None
    drifted = Window.over(values, first.left, 5)
    assert drifted.average < 0.9 * first.attained.average
    assert Window.over(values, first.left - 1, 5).average >= 0.9 * first.attained.average


def test_a_drive_that_does_nothing_is_not_steady() -> None:
    assert attained([0.0] * 10) is None
    assert Window.over([0.0] * 5, 5, 5).excursion == math.inf
    assert why_not_steady([0.0] * 5) == "rounds 1 to 5 measured nothing at all"


@given(ROUNDS)
def test_the_last_stretch_lasts_where_the_last_window_is_steady_and_the_sentence_agrees(values: list[float]) -> None:
    is_steady = Window.over(values, len(values), 5).meets(PTS)
    spans = steady_spans(values)
    assert (bool(spans) and spans[-1].left is None) is is_steady
    if is_steady:
        with pytest.raises(ValueError, match=f"rounds {len(values) - 4} to {len(values)} are steady"):
            why_not_steady(values)
    else:
        assert f"rounds {len(values) - 4} to {len(values)} range over" in why_not_steady(values)


def test_a_window_is_steady_though_it_shares_rounds_with_the_stretch_that_ended() -> None:
    values = [100.0] * 75 + [130.0] + [100.0, 103.0, 101.0, 105.0, 102.0]
    before, after = steady_spans(values)
    assert (before.left, after.attained.first, after.left) == (76, 77, None)
    drifting = steady_spans([1000.0 * 0.98**turn for turn in range(20)])
    assert len(drifting) > 2
    assert all(span.left == after.attained.last for span, after in pairwise(drifting))


def test_it_says_how_far_from_steady_a_drive_is() -> None:
    assert why_not_steady([1.0]) == "1 rounds were measured, a window has 5"
    assert why_not_steady([100.0, 100.0, 50.0, 150.0, 100.0, 100.0]) == (
        "rounds 2 to 6 range over 100.0% of their average (at most 20%) and drift over 20.0% (at most 10%)"
    )


@pytest.mark.parametrize("last", [0, 4, 7])
def test_a_window_that_is_not_there_is_refused(last: int) -> None:
    with pytest.raises(ValueError, match="there is no window of 5 rounds"):
        Window.over([1.0] * 6, last, 5)


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0])
def test_what_cannot_have_been_measured_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="finite and not negative"):
        attained([1.0, 1.0, value, 1.0, 1.0])


def test_criteria_that_mean_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="needs at least 2"):
        Criteria(rounds=1)
    with pytest.raises(ValueError, match="both are from 0 on"):
        Criteria(slope=-0.1)


def test_a_span_that_was_never_left_says_so() -> None:
    (span,) = steady_spans([5.0] * 30)
    assert span == SteadySpan(Window.over([5.0] * 30, 5, 5), None)
