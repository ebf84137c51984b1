"""Judging: pass, fail and unknown come from the interval, never from the point estimate alone."""

from collections.abc import Hashable

import pytest

from rackloop.measurement import Cause, Distribution, Finding, Limit, Measurement, Verdict, judge

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
    assert "straddles the limit max 0.002 s: take more samples" in str(found.reason)
    assert str(found.reason).endswith(", some 1,500 samples in all if the rest are like these")
    # As large a share outside of 1,600.
    assert finding(samples * 4, at_most(0.002)).verdict is Verdict.PASS


@pytest.mark.parametrize(("q", "fewest"), [(0.5, 6), (0.9, 36), (0.1, 36), (0.99, 368), (0.999, 3688)])
def test_the_fewest_samples_that_are_advised_are_enough_and_one_less_is_not(q: float, fewest: int) -> None:
    assert Distribution.fewest_draws(q) == fewest
    few, enough = ([float(number) for number in range(count)] for count in (fewest - 1, fewest))
    assert None in Distribution.of(few).quantile_ci95(q)
    assert None not in Distribution.of(enough).quantile_ci95(q)


@pytest.mark.parametrize("outliers", range(8))
def test_an_interval_ends_before_the_outliers_that_the_draws_bear(outliers: int) -> None:
    enough = Distribution.draws_to_bear(0.99, outliers)
    for n, ends_before in ((enough, True), (enough - 1, False)):
        _, end = Distribution.of([float(rank) for rank in range(n)]).quantile_ci95(0.99)
        assert (end is not None and end < n - outliers) == ends_before


def test_too_few_samples_for_a_p99_are_unknown_however_good_they_are() -> None:
    found = finding([0.001] * 100, at_most(0.002))
    assert found.verdict is Verdict.UNKNOWN
    assert found.p99 is None
    assert str(found.reason) == "100 samples do not carry p99: take more, 368 samples at least"


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
    assert (found.verdict, found.value, found.ci95) == (Verdict.FAIL, 0.6, None)


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


def late(
    samples: list[float], errors: float | list[float], limit: Limit, clusters: list[Hashable] | None = None
) -> Finding:
    taken = Measurement.of("remap.latency", "s", samples, {}, errors=errors, clusters=clusters)
    (found,) = judge(taken, [limit], MOCK)
    return found


def test_what_the_machine_added_is_not_held_against_the_product() -> None:
    """Four of a hundred map changes, of four samples each, in which the machine was late: the findings' own case."""
    samples = [0.003] * 1584 + [0.141] * 16
    errors = [0.0005] * 1584 + [0.138] * 16
    clusters: list[Hashable] = [index // 4 for index in range(1600)]
    assert finding(samples, at_most(0.020)).verdict is Verdict.UNKNOWN
    found = late(samples, errors, at_most(0.020), clusters)
    assert (found.verdict, found.cause) == (Verdict.UNKNOWN, Cause.HARNESS)
    assert str(found.reason).endswith(
        "the measuring machine may have added up to 138 ms in 4 of 400 changes: run it on a quieter machine"
    )


def test_what_raw_samples_alone_would_fail_is_unknown_where_the_machine_may_be_why() -> None:
    samples = [0.003] * 360 + [0.030] * 40
    assert finding(samples, at_most(0.020)).verdict is Verdict.FAIL
    found = late(samples, [0.0] * 360 + [0.028] * 40, at_most(0.020))
    assert (found.verdict, found.cause) == (Verdict.UNKNOWN, Cause.HARNESS)
    assert "in 40 of 400 samples" in str(found.reason)


def test_a_product_that_is_too_slow_even_without_the_machine_fails() -> None:
    found = late([0.030] * 400, [0.005] * 400, at_most(0.020))
    assert (found.verdict, found.cause) == (Verdict.FAIL, Cause.PRODUCT)


def test_a_lateness_makes_no_pass() -> None:
    samples = [0.003] * 396 + [0.030] * 4
    assert late(samples, [0.0] * 396 + [0.029] * 4, at_most(0.020)).verdict is Verdict.UNKNOWN
    assert late(samples, 1.0, at_most(0.020)).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize(("unit", "verdict"), [("1", Verdict.UNKNOWN), ("s", Verdict.PASS)])
def test_a_share_that_is_cut_may_be_negative_where_a_time_cannot(unit: str, verdict: Verdict) -> None:
    """Reads that took 1.3 times as long, and 0.9 times if the machine was late with them: a cut of -0.3 to 0.1."""
    measured = Measurement.of("tail.cut", unit, [0.1] * 6, {}, errors=0.4)
    (found,) = judge(measured, [Limit("tail.cut", quantile=0.5, minimum=0.0, text="min 0")], MOCK)
    assert found.verdict is verdict
    assert found.ci95 == ((pytest.approx(-0.3) if unit == "1" else 0.0), 0.1)
    assert found.cause is (Cause.HARNESS if verdict is Verdict.UNKNOWN else None)


@pytest.mark.parametrize(
    ("limit", "verdict"),
    [
        (Limit("a.ratio", quantile=0.5, maximum=4.0, text="max 4"), Verdict.UNKNOWN),
        (Limit("a.ratio", quantile=0.5, maximum=6.0, text="max 6"), Verdict.PASS),
        (Limit("a.ratio", quantile=0.5, minimum=2.5, text="min 2.5"), Verdict.PASS),
        (Limit("a.ratio", quantile=0.5, minimum=4.0, text="min 4"), Verdict.UNKNOWN),
        (Limit("a.ratio", quantile="max", maximum=4.0, text="max 4"), Verdict.UNKNOWN),
    ],
)
def test_what_the_machine_may_have_taken_from_a_sample_makes_no_pass(limit: Limit, verdict: Verdict) -> None:
    taken = Measurement.of("a.ratio", "1", [3.0] * 9, {}, shortfalls=[2.0] * 9)
    (found,) = judge(taken, [limit], MOCK)
    assert (found.verdict, found.value) == (verdict, 3.0)
    if verdict is Verdict.UNKNOWN:
        assert found.cause is Cause.HARNESS
        assert "the measuring machine may have changed it by up to 2 in 9 of 9 samples" in str(found.reason)


@pytest.mark.parametrize(("errors", "shortfalls"), [([-1.0], None), (None, [-1.0]), (None, [1.0, 1.0])])
def test_an_error_is_told_for_each_sample_and_is_not_negative(
    errors: list[float] | None, shortfalls: list[float] | None
) -> None:
    with pytest.raises(ValueError, match=r"give as many|is 0 or more"):
        Measurement.of("a.ratio", "1", [3.0], {}, errors=errors, shortfalls=shortfalls)


def test_too_few_samples_are_the_tests_however_late_the_machine() -> None:
    found = late([0.001] * 100, 0.0005, at_most(0.002))
    assert (found.verdict, found.cause) == (Verdict.UNKNOWN, Cause.TEST)
    assert "take more" in str(found.reason)


def test_the_interval_begins_with_the_corrected_samples_and_ends_with_the_raw_ones() -> None:
    found = late([float(number) for number in range(2, 402)], 1.0, at_most(500.0, 0.5))
    plain = Distribution.of(float(number) for number in range(2, 402)).quantile_ci95(0.5)
    assert found.ci95 == (plain[0] - 1.0 if plain[0] else None, plain[1])
    assert found.value == 201.0


@pytest.mark.parametrize(
    ("limit", "error", "verdict", "cause"),
    [
        (Limit("remap.latency", quantile="max", maximum=1.0, text="max 1 s"), 0.0, Verdict.FAIL, Cause.PRODUCT),
        (Limit("remap.latency", quantile="max", maximum=1.0, text="max 1 s"), 0.1, Verdict.FAIL, Cause.PRODUCT),
        (Limit("remap.latency", quantile="max", maximum=1.0, text="max 1 s"), 0.3, Verdict.UNKNOWN, Cause.HARNESS),
        (Limit("remap.latency", quantile="max", maximum=1.3, text="max 1.3 s"), 0.3, Verdict.PASS, None),
        (Limit("remap.latency", quantile="min", minimum=1.0, text="min 1 s"), 0.1, Verdict.PASS, None),
        (Limit("remap.latency", quantile="min", minimum=1.0, text="min 1 s"), 0.3, Verdict.UNKNOWN, Cause.HARNESS),
        (Limit("remap.latency", quantile="min", minimum=1.5, text="min 1.5 s"), 0.3, Verdict.FAIL, Cause.PRODUCT),
        (Limit("remap.latency", quantile="mean", maximum=1.0, text="max 1 s"), 0.3, Verdict.UNKNOWN, Cause.HARNESS),
    ],
)
def test_extremes_means_and_minimum_limits_are_judged_with_the_error(
    limit: Limit, error: float, verdict: Verdict, cause: Cause | None
) -> None:
    found = late([1.2, 1.2, 1.2], error, limit)
    assert (found.verdict, found.cause) == (verdict, cause)


def test_a_machine_that_was_starved_makes_a_rate_too_low() -> None:
    limit = Limit("remap.latency", quantile="max", minimum=100.0, text="min 100 B/s")
    rate = Measurement.of("remap.latency", "B/s", [90.0], {})
    verdicts = {share: judge(rate.slowed_by(share), [limit], {})[0] for share in (0.0, 0.05, 0.2)}
    assert [(found.verdict, found.cause) for found in verdicts.values()] == [
        (Verdict.FAIL, Cause.PRODUCT),
        (Verdict.FAIL, Cause.PRODUCT),
        (Verdict.UNKNOWN, Cause.HARNESS),
    ]
    assert "short of cores for up to 20.0% of the time" in str(verdicts[0.2].reason)


def test_samples_taken_together_are_one_draw() -> None:
    """Three late changes of a hundred are twelve samples of 400: no independent ones, and no failure."""
    samples = [0.001] * 388 + [0.009] * 12
    assert finding(samples, at_most(0.002)).verdict is Verdict.FAIL
    clustered = late(samples, 0.0, at_most(0.002), [index // 4 for index in range(400)])
    assert (clustered.verdict, clustered.cause) == (Verdict.UNKNOWN, Cause.TEST)
    assert str(clustered.reason) == "400 samples of 100 changes do not carry p99: take more, 368 changes at least"


def test_a_cluster_that_has_most_samples_is_worth_few_draws() -> None:
    taken = Measurement.of("a.b", "s", [1.0] * 400, {}, clusters=[*range(100), *[100] * 300])
    assert taken.samples.clusters == 1


@pytest.mark.parametrize(
    ("samples", "errors", "clusters"),
    [([1.0, 2.0], [0.0], None), ([1.0], -1.0, None), ([1.0], [float("nan")], None), ([1.0, 2.0], None, [1])],
)
def test_errors_and_clusters_that_do_not_fit_are_refused(
    samples: list[float], errors: float | list[float] | None, clusters: list[Hashable] | None
) -> None:
    with pytest.raises(ValueError, match=r"a\.b: "):
        Measurement.of("a.b", "s", samples, {}, errors=errors, clusters=clusters)


def test_statistics_that_are_asked_for_are_told_beside_what_limits_ask_for() -> None:
    taken = Measurement.of("a.iops", "IOPS", [1.0, 2.0, 6.0], {})
    mean_and_median = [("mean", 3.0, None), (0.5, 2.0, None)]
    told = judge(taken, [], {}, statistics=("mean", 0.5))
    assert [(one.statistic, one.value, one.verdict) for one in told] == mean_and_median
    limit = Limit("a.iops", quantile="max", maximum=9.0, text="max 9 IOPS", unit="IOPS")
    told = judge(taken, [limit], {}, statistics=("mean", "max"))
    assert [(one.statistic, one.verdict) for one in told] == [("max", Verdict.PASS), ("mean", None)]
