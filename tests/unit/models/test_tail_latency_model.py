"""The tail latency model: it adds up, and agrees with patterns of failures enumerated, with trials, and the paper."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rackloop.errors import BadInput
from rackloop_models.tail_latency import (
    PUBLISHED_REDUCTIONS,
    Charge,
    LatencyPmf,
    LocalErasure,
    PublishedReduction,
    Reading,
    agreement,
    choose_code,
    distribution,
    hardware_decoding,
    latency_with_code,
    latency_without_code,
    software_decoding,
    trials_with_code,
    trials_without_code,
)

TINY = [(2, 1, 5), (2, 2, 4), (3, 1, 7), (1, 1, 5), (4, 2, 9), (2, 1, 6), (5, 2, 3)]


def tiny(k: int, m: int) -> LocalErasure:
    return LocalErasure(k, m, tuple(0.001 * 1.7**missing for missing in range(1, m + 1)))


def enumerated(reading: Reading, erasure: LocalErasure) -> dict[int, float]:
    """Latencies in ns with their probabilities, from every pattern of sectors that fail."""
    k, m = erasure.k, erasure.m
    whole = (reading.sectors - 1) // k
    last = reading.sectors - whole * k
    found: dict[int, float] = defaultdict(float)
    for pattern in itertools.product((0, 1), repeat=whole * (k + m) + last + m):
        groups = [sum(pattern[at * (k + m) : (at + 1) * (k + m)]) for at in range(whole)]
        rest = pattern[whole * (k + m) :]
        of_user, of_last = sum(rest[:last]), sum(rest)
        failing = [failed for failed in groups if failed > m]
        seconds = reading.sectors * reading.sector_s + whole * m * reading.sector_s
        for failed in failing:
            seconds += erasure.decode_s[-1] + (failed - m) * reading.retry_s
        if of_user or failing:
            seconds += m * reading.sector_s
            if of_last:
                seconds += erasure.decode_s[min(of_last, m) - 1] + max(0, of_last - m) * reading.retry_s
        ones = sum(pattern)
        found[round(seconds * 1e9)] += reading.ph**ones * (1 - reading.ph) ** (len(pattern) - ones)
    return found


def assert_same(pmf: LatencyPmf, expected: dict[int, float]) -> None:
    found: dict[int, float] = defaultdict(float)
    for seconds, mass in zip(pmf.seconds.tolist(), pmf.masses.tolist(), strict=True):
        # Sums in another order may be rounded to the next nanosecond.
        ns = round(seconds * 1e9)
        found[next((near for near in (ns, ns - 1, ns + 1) if near in expected), ns)] += mass
    assert found.keys() == expected.keys()
    for ns, mass in expected.items():
        assert found[ns] == pytest.approx(mass, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize(("k", "m", "sectors"), TINY)
def test_every_pattern_of_failures_is_in_the_model(k: int, m: int, sectors: int) -> None:
    reading = Reading(sectors, 0.07, 0.020)
    assert_same(latency_with_code(reading, tiny(k, m)), enumerated(reading, tiny(k, m)))


def test_a_model_that_forgets_a_case_is_found_out() -> None:
    reading = Reading(5, 0.07, 0.020)
    expected = enumerated(reading, tiny(2, 1))
    expected.pop(max(expected))
    with pytest.raises(AssertionError):
        assert_same(latency_with_code(reading, tiny(2, 1)), expected)


@settings(deadline=None, max_examples=60)
@given(
    sectors=st.integers(1, 200_000),
    ph=st.floats(1e-6, 8e-3),
    codeword=st.sampled_from([63, 255, 511, 1023]),
    charge=st.sampled_from(("missing", "most")),
)
def test_the_probabilities_add_up_to_one(sectors: int, ph: float, codeword: int, charge: Charge) -> None:
    code = choose_code(codeword, ph)
    erasure = LocalErasure(code.k, code.m, software_decoding(code.k, code.m), charge)
    reading = Reading(sectors, ph, 0.02)
    for pmf in (latency_without_code(reading), latency_with_code(reading, erasure)):
        assert abs(pmf.total - 1) < 1e-9
        assert 0 <= pmf.truncated < 1e-9
        assert (np.diff(pmf.seconds) > 0).all()
        assert pmf.quantile(0.5) <= pmf.quantile(0.99) <= pmf.quantile(0.999)


def test_a_weak_code_has_its_failing_groups_in_the_tail() -> None:
    # One redundancy sector in 100: half of the groups of a read need a retry now and then.
    weak, reading = LocalErasure(99, 1, (0.001,)), Reading(2_000, 0.002, 0.040)
    pmf = latency_with_code(reading, weak)
    assert abs(pmf.total - 1) < 1e-9
    assert pmf.quantile(0.99) > pmf.quantile(0.5) + 0.040
    assert agreement(trials_with_code(reading, weak, 200_000, seed=11), pmf).is_given


@pytest.mark.parametrize("charge", ["missing", "most"])
@pytest.mark.parametrize(
    ("sectors", "ph", "codeword"), [(10_000, 1e-3, 255), (10_000, 5e-3, 1023), (100_000, 1e-4, 1023)]
)
def test_trials_agree_with_the_model(sectors: int, ph: float, codeword: int, charge: Charge) -> None:
    code, reading = choose_code(codeword, ph), Reading(sectors, ph, 0.02)
    erasure = LocalErasure(code.k, code.m, software_decoding(code.k, code.m), charge)
    plain, coded = latency_without_code(reading), latency_with_code(reading, erasure)
    of_plain, of_coded = trials_without_code(reading, 20_000, 5), trials_with_code(reading, erasure, 20_000, 6)
    for trials, pmf in ((of_plain, plain), (of_coded, coded)):
        assert agreement(trials, pmf).is_given
        low, high = distribution(trials).quantile_ci95(0.99)
        assert low is not None
        assert high is not None
        assert low - 1e-8 <= pmf.quantile(0.99) <= high + 1e-8
        assert trials.mean() == pytest.approx(pmf.mean, abs=5 * trials.std() / math.sqrt(trials.size))


@pytest.mark.parametrize("off_s", [-0.001, 0.001])
def test_trials_that_are_all_off_by_less_than_a_retry_do_not_agree(off_s: float) -> None:
    reading = Reading(1_000, 1e-3, 0.02)
    trials, pmf = trials_without_code(reading, 20_000, 5), latency_without_code(reading)
    assert agreement(trials, pmf).is_given
    assert not agreement(trials + off_s, pmf).is_given


@pytest.mark.parametrize(("k", "m", "sectors"), [(4, 1, 5), (4, 1, 8), (3, 2, 10), (6, 2, 13)])
def test_trials_agree_with_the_model_where_groups_fail_all_the_time(k: int, m: int, sectors: int) -> None:
    reading, erasure = Reading(sectors, 0.2, 0.02), LocalErasure(k, m, software_decoding(k, m))
    found = agreement(trials_with_code(reading, erasure, 50_000, seed=3), latency_with_code(reading, erasure))
    assert found.is_given
    assert found.bound == pytest.approx(math.sqrt(math.log(2 / 1e-6) / 100_000))


def test_trials_of_another_model_disagree() -> None:
    reading, other = Reading(10_000, 1e-3, 0.02), Reading(10_000, 1.1e-3, 0.02)
    trials = trials_without_code(reading, 20_000, 5)
    assert not agreement(trials, latency_without_code(other)).is_given
    code = choose_code(1023, 1e-3)
    erasure = LocalErasure(code.k, code.m, software_decoding(code.k, code.m))
    wrong = LocalErasure(code.k, code.m, hardware_decoding(code.k, code.m))
    assert not agreement(trials_with_code(reading, erasure, 20_000, 5), latency_with_code(reading, wrong)).is_given


def test_a_seed_gives_the_trials() -> None:
    reading = Reading(1_000, 1e-3, 0.02)
    assert (trials_without_code(reading, 100, 1) == trials_without_code(reading, 100, 1)).all()
    assert (trials_without_code(reading, 100, 1) != trials_without_code(reading, 100, 2)).any()


@pytest.mark.parametrize("published", PUBLISHED_REDUCTIONS, ids=lambda one: f"{one.sectors}-{one.ph}-{one.retry_s}")
def test_the_papers_reductions_come_out(published: PublishedReduction) -> None:
    """To a tenth of a percent with the reading that the paper's figures have; to one percent as eq. 7 is printed."""
    reading = Reading(published.sectors, published.ph, published.retry_s)
    code = choose_code(1023, published.ph)
    times = software_decoding(code.k, code.m)
    plain_s = latency_without_code(reading).quantile(0.99)
    charged = latency_with_code(reading, LocalErasure(code.k, code.m, times, "most")).quantile(0.99)
    printed = latency_with_code(reading, LocalErasure(code.k, code.m, times)).quantile(0.99)
    assert 1 - charged / plain_s == pytest.approx(published.reduction, abs=1.1e-3)
    assert 1 - printed / plain_s == pytest.approx(published.reduction, abs=1e-2)


def test_the_paper_s_own_example_by_hand() -> None:
    # 18 retries of 20 ms are the 99th percentile of Binomial(10,000, 0.001), and 333 ms the reading.
    assert latency_without_code(Reading(10_000, 1e-3, 0.02)).quantile(0.99) == pytest.approx(18 * 0.02 + 1 / 3)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ((0, 1e-3, 0.02), "read 1 to 10,000,000 consecutive sectors, found 0"),
        ((10**8, 1e-3, 0.02), "found 100,000,000"),
        ((10, 0.0, 0.02), "ph: expected a probability"),
        ((10, 1e-3, 0.0), "retry: expected a time"),
        ((10, 1e-3, 61.0), "retry: expected a time"),
        ((10, 1e-3, math.nan), "retry: expected a time"),
    ],
)
def test_what_cannot_be_read_is_told(arguments: tuple[int, float, float], part: str) -> None:
    with pytest.raises(BadInput, match=part):
        Reading(*arguments)


def test_what_is_no_code_is_told() -> None:
    with pytest.raises(BadInput, match="at least 1 user sector"):
        LocalErasure(0, 1, (0.0,))
    with pytest.raises(BadInput, match="expected 2 decode times"):
        LocalErasure(5, 2, (0.0,))
    with pytest.raises(BadInput, match="take more redundancy or a smaller ph"):
        latency_with_code(Reading(100_000, 0.5, 0.02), LocalErasure(99, 1, (0.001,)))


def test_a_quantile_beyond_what_was_left_out_is_refused() -> None:
    pmf = LatencyPmf(np.array([1.0, 2.0]), np.array([0.9, 0.05]), 0.05)
    assert pmf.quantile(0.9) == 1.0
    assert pmf.quantile(0.94) == 2.0
    with pytest.raises(ValueError, match="left out"):
        pmf.quantile(0.99)
    with pytest.raises(ValueError, match="between 0 and 1"):
        pmf.quantile(1.0)
