"""Quantiles and their intervals: against exact binomial sums and by coverage."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackloop.measurement import Distribution
from rackloop.seed import stream


def exact_cdf(k: int, n: int, q: float) -> float:
    return math.fsum(math.comb(n, i) * q**i * (1 - q) ** (n - i) for i in range(k + 1))


@pytest.mark.parametrize(("n", "claimed"), [(367, False), (368, True), (400, True)])
def test_p99_is_bounded_above_from_368_samples_on(n: int, claimed: bool) -> None:
    _, high = Distribution.of(float(i) for i in range(n)).quantile_ci95(0.99)
    assert (high is not None) is claimed


@given(n=st.integers(1, 400), q=st.sampled_from([0.05, 0.5, 0.9, 0.99, 0.999]))
def test_interval_ranks_are_the_tightest_that_hold_95_percent(n: int, q: float) -> None:
    low, high = Distribution.of(float(rank) for rank in range(1, n + 1)).quantile_ci95(q)
    if low is None:
        assert exact_cdf(0, n, q) > 0.025
    else:
        assert exact_cdf(int(low) - 1, n, q) <= 0.025 + 1e-12
        assert exact_cdf(int(low), n, q) > 0.025 - 1e-12
    if high is None:
        assert exact_cdf(n - 1, n, q) < 0.975
    else:
        assert exact_cdf(int(high) - 1, n, q) >= 0.975 - 1e-12
        assert high == 1 or exact_cdf(int(high) - 2, n, q) < 0.975 + 1e-12


def test_intervals_cover_the_true_quantile_as_often_as_they_claim() -> None:
    draws = stream(20261120, "coverage")
    hits = 0
    for _ in range(400):
        low, high = Distribution.of(draws.random() for _ in range(200)).quantile_ci95(0.9)
        hits += (low is None or low <= 0.9) and (high is None or high >= 0.9)
    assert hits >= 0.93 * 400


@given(st.lists(st.integers(0, 50), min_size=1))
def test_bins_and_samples_say_the_same(samples: list[int]) -> None:
    exact = Distribution.of(float(sample) for sample in samples)
    ordered = sorted(samples)
    assert exact.n == len(samples)
    assert [exact.order_statistic(rank) for rank in range(1, exact.n + 1)] == ordered
    assert exact.quantile(0.5) == ordered[max(0, math.ceil(len(samples) / 2) - 1)]


@given(st.lists(st.lists(st.integers(0, 9), min_size=1), min_size=1))
def test_pooled_parts_are_the_samples_of_all_of_them(parts: list[list[int]]) -> None:
    pooled = Distribution.pooled(Distribution.of(map(float, part)) for part in parts)
    assert pooled == Distribution.of(float(sample) for part in parts for sample in part)


def test_a_million_samples_are_bounded_quickly() -> None:
    low, high = Distribution.of(float(i) for i in range(1_000_000)).quantile_ci95(0.999)
    assert low is not None
    assert high is not None
    assert low < 999_000 < high
    assert high - low < 200


@pytest.mark.parametrize("bad", [((), ()), ((1.0,), ()), ((2.0, 1.0), (1, 1)), ((1.0,), (0,))])
def test_what_is_no_distribution_is_refused(bad: tuple[tuple[float, ...], tuple[int, ...]]) -> None:
    with pytest.raises(ValueError, match=r"distribution|count"):
        Distribution(*bad)


def test_mean_interval_is_students() -> None:
    low, high = Distribution.of([1.0, 2.0, 3.0, 4.0]).mean_ci95()
    assert low == pytest.approx(2.5 - 3.18245 * 1.290994 / 2, rel=1e-4)
    assert high == pytest.approx(2.5 + 3.18245 * 1.290994 / 2, rel=1e-4)
    assert Distribution.of([1.0]).mean_ci95() == (None, None)


@pytest.mark.parametrize("size", [2, 16])
def test_the_mean_of_clusters_of_one_value_is_bounded_as_that_of_so_many_samples(size: int) -> None:
    """Of two clusters of 16 the interval was 0.72 times as wide as that of two samples."""
    alone = Distribution.of([1.0, 2.0, 4.0])
    together = Distribution.of([value for value in alone.values for _ in range(size)], clusters=3)
    assert together.mean_ci95() == pytest.approx(alone.mean_ci95())


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_no_finite_number_is_no_sample(bad: float) -> None:
    """Sorted with a NaN among them, [5, NaN, 1] had a maximum of 1."""
    with pytest.raises(ValueError, match="finite"):
        Distribution.of([5.0, bad, 1.0])


@given(n=st.integers(1, 60), size=st.integers(1, 5), q=st.sampled_from([0.1, 0.5, 0.9]))
def test_clusters_of_one_value_are_bounded_as_that_many_samples(n: int, size: int, q: float) -> None:
    alone = Distribution.of(map(float, range(n)))
    together = Distribution.of([float(value) for value in range(n) for _ in range(size)], clusters=n)
    assert together.quantile_ci95(q) == alone.quantile_ci95(q)


def test_the_interval_of_clusters_covers_where_that_of_samples_does_not() -> None:
    draws = stream(20261122, "clusters")
    hits = {None: 0, 100: 0}
    for _ in range(300):
        values = [value + draws.random() / 100 for value in [draws.random() for _ in range(100)] for _ in range(4)]
        for clusters in hits:
            low, high = Distribution.of(values, clusters).quantile_ci95(0.9)
            hits[clusters] += (low is None or low <= 0.905) and (high is None or high >= 0.905)
    assert hits[100] >= 0.93 * 300
    assert hits[None] < 0.85 * 300
