"""Judging: pass, fail and unknown come from the interval, never from the point estimate alone."""

import pytest

from rackloop.distribution import Distribution
from rackloop.limits import Limit
from rackloop.measurement import Finding, Measurement, judge
from rackloop.verdict import Verdict

MOCK = {"lab_kind": "mock"}


def finding(samples: list[float], limit: Limit, **labels: str) -> Finding:
    (found,) = judge(Measurement("remap.latency", "s", Distribution.of(samples), labels), [limit], MOCK)
    return found


def at_most(maximum: float, quantile: float | None = 0.99) -> Limit:
    return Limit("remap.latency", quantile=quantile, maximum=maximum, unit="s", text=f"max {maximum} s")


def test_a_quantile_whose_interval_is_inside_passes() -> None:
    assert finding([0.001] * 400, at_most(0.002)).verdict is Verdict.PASS


def test_a_quantile_whose_interval_is_outside_fails() -> None:
    found = finding([0.003] * 400, at_most(0.002))
    assert found.verdict is Verdict.FAIL
    assert "p99" in str(found.reason)


def test_an_interval_that_straddles_the_limit_is_unknown() -> None:
    samples = [0.001] * 396 + [0.0015, 0.0019, 0.0021, 0.0025]
    found = finding(samples, at_most(0.002))
    assert found.verdict is Verdict.UNKNOWN
    assert "straddles" in str(found.reason)


def test_too_few_samples_for_a_p99_are_unknown_however_good_they_are() -> None:
    found = finding([0.001] * 100, at_most(0.002))
    assert found.verdict is Verdict.UNKNOWN
    assert found.p99 is None
    assert "100 samples" in str(found.reason)


def test_few_samples_that_are_all_far_outside_still_fail() -> None:
    assert finding([0.1] * 100, at_most(0.002)).verdict is Verdict.FAIL


def test_a_minimum_is_held_from_below() -> None:
    limit = Limit("remap.latency", quantile=0.5, minimum=1.0, text="min 1")
    assert finding([2.0] * 20, limit).verdict is Verdict.PASS
    assert finding([0.5] * 20, limit).verdict is Verdict.FAIL


@pytest.mark.parametrize(("count", "verdict"), [(0.0, Verdict.PASS), (1.0, Verdict.FAIL)])
def test_a_single_count_is_judged_as_the_fact_it_is(count: float, verdict: Verdict) -> None:
    assert finding([count], at_most(0.0, None)).verdict is verdict


def test_the_maximum_is_a_fact_about_the_run() -> None:
    limit = Limit("remap.latency", quantile="max", maximum=0.5, text="max 500 ms")
    found = finding([0.1, 0.6], limit)
    assert (found.verdict, found.value, found.ci95) == (Verdict.FAIL, 0.6, (0.6, 0.6))


@pytest.mark.parametrize(
    "limit",
    [
        Limit("other.name", maximum=0.0),
        Limit("remap.latency", where={"stack": "vanilla"}, maximum=0.0),
        Limit("remap.latency", on={"lab_kind": "physical"}, maximum=0.0),
    ],
)
def test_a_limit_for_something_else_leaves_the_measurement_unjudged(limit: Limit) -> None:
    found = finding([0.001] * 400, limit, stack="comreset")
    assert (found.verdict, found.limit) == (None, None)
    assert found.value == 0.001


def test_each_limit_that_applies_gives_a_finding() -> None:
    measurement = Measurement("remap.latency", "s", Distribution.of([0.001] * 400), {"stack": "comreset"})
    limits = [at_most(0.002), at_most(0.0005, 0.5), Limit("remap.latency", where={"stack": "vanilla"}, maximum=9.0)]
    assert [found.verdict for found in judge(measurement, limits, MOCK)] == [Verdict.PASS, Verdict.FAIL]
