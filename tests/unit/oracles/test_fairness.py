"""The measures of a fair share, and the intervals of ratios over rounds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rackloop.measurement import Distribution, Limit, Measurement, Verdict, judge
from rackloop_oracles.fairness import (
    Rounds,
    TenantShares,
    Terms,
    compared_shares,
    f_util,
    jain_index,
    min_max_share,
    ratio,
    standalone_maximum,
    utilisation,
    within_objective,
)

SHARES = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=16)
ROUNDS = st.lists(st.tuples(st.floats(0.1, 10), st.floats(0.1, 10)), min_size=5, max_size=12)


def array(*values: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return np.asarray(values, dtype=np.float64)


def test_an_equal_part_of_what_each_tenant_has_alone_is_fair() -> None:
    alone, together = array(3000, 400), array(1500, 200)
    assert f_util(alone, together).tolist() == [1, 1]
    assert utilisation(alone, together) == jain_index(f_util(alone, together)) == 1


def test_a_standalone_maximum_is_of_one_tenant_in_each_round() -> None:
    assert standalone_maximum("t1", {"t1": [300.0, 310.0]}).tolist() == [300, 310]
    assert float(standalone_maximum("t1", {"t1": 300})) == 300


@pytest.mark.parametrize(
    ("served", "said"),
    [
        ({"t1": [300.0], "t2": [300.0]}, "t1 was to be measured, t1, t2 was"),
        ({"t2": [300.0]}, "t1 was to be measured, t2 was"),
        ({}, "t1 was to be measured, nothing was"),
        ({"t1": [300.0, 0.0]}, "the standalone maximum of t1 must be above 0 in every round"),
        ({"t1": [math.nan]}, "must be above 0 in every round"),
    ],
)
def test_what_is_no_standalone_maximum_is_refused(served: dict[str, list[float]], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        standalone_maximum("t1", served)


def test_a_neighbour_that_takes_the_box_is_unfair() -> None:
    # Gimbal's section 2: 4 KiB reads beside 128 KiB reads of eight times the depth.
    shares = f_util(array(1600, 3000), array(411, 1275))
    assert shares.tolist() == pytest.approx([0.514, 0.85], abs=1e-3)
    assert min_max_share(shares) == pytest.approx(0.604, abs=1e-3)
    assert jain_index(array(1, 0, 0, 0)) == 0.25


@given(SHARES)
def test_the_index_lies_between_one_tenant_and_all(shares: list[float]) -> None:
    index = float(jain_index(array(*shares)))
    assert 1 / len(shares) - 1e-9 <= index <= 1 + 1e-9
    assert 0 < float(min_max_share(array(*shares))) <= 1


@given(SHARES, st.floats(1e-3, 1e3))
def test_neither_a_unit_nor_an_order_changes_the_index(shares: list[float], factor: float) -> None:
    for measure in (jain_index, min_max_share):
        value = float(measure(array(*shares)))
        assert float(measure(array(*(share * factor for share in shares)))) == pytest.approx(value)
        assert float(measure(array(*reversed(shares)))) == pytest.approx(value)


@given(st.floats(1e-6, 1e6), st.integers(1, 16))
def test_equal_shares_have_index_1(share: float, tenants: int) -> None:
    assert float(jain_index(array(*[share] * tenants))) == pytest.approx(1)


@given(st.lists(st.tuples(st.floats(1, 1e9), st.floats(0, 1e9)), min_size=1, max_size=16))
def test_the_utilisation_is_the_mean_of_the_shares(pairs: list[tuple[float, float]]) -> None:
    alone, together = (array(*column) for column in zip(*pairs, strict=True))
    assert float(utilisation(alone, together)) == pytest.approx(sum(t / a for a, t in pairs))


@pytest.mark.parametrize("bad", [(0, 1), (math.nan, 1), (-1, 1)])
def test_shares_of_nothing_are_refused(bad: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="above 0 in every round"):
        f_util(array(*bad), array(1, 1))
    with pytest.raises(ValueError, match="above 0 in every round"):
        ratio(array(1, bad[0]))


def test_an_index_of_no_shares_at_all_is_refused() -> None:
    for measure in (jain_index, min_max_share):
        with pytest.raises(ValueError, match="one of them is above 0"):
            measure(array(0, 0))


def test_an_objective_counts_what_is_no_slower() -> None:
    latency = Distribution.from_bins({1e-3: 90, 2e-3: 8, 5e-3: 2})
    assert within_objective(latency, 2e-3) == 98
    assert within_objective(latency, 0.5e-3) == 0


@given(ROUNDS, st.integers(0, 2**32))
def test_an_interval_is_around_the_ratio_of_the_means(rows: list[tuple[float, float]], seed: int) -> None:
    found = Rounds(rows, seed, resamples=500).ratio(ratio)
    over, under = (math.fsum(column) for column in zip(*rows, strict=True))
    low, high = found.mean_ci95()
    assert found.mean == pytest.approx(over / under)
    assert low is not None
    assert high is not None
    assert low <= found.mean * (1 + 1e-9)
    assert found.mean <= high * (1 + 1e-9)
    assert found.minimum * (1 - 1e-9) <= low <= high <= found.maximum * (1 + 1e-9)
    assert found == Rounds(rows, seed, resamples=500).ratio(ratio), "the same seed gives the same interval"


@given(ROUNDS, st.floats(0.1, 10))
def test_what_slows_a_whole_round_is_in_no_ratio(rows: list[tuple[float, float]], kept: float) -> None:
    assume(len({under for _, under in rows}) > 1)
    found = Rounds([(kept * under, under) for _, under in rows], 1, resamples=200).ratio(ratio)
    assert found.interval == pytest.approx((kept, kept))


@pytest.mark.parametrize("rounds", [5, 10, 20])
def test_more_than_9_of_10_intervals_hold_the_ratio(rounds: int) -> None:
    draw = np.random.default_rng(rounds)
    held = 0
    for number in range(300):
        common = draw.lognormal(0, 0.1, rounds)
        rows = np.stack([0.8 * common * draw.lognormal(0, 0.1, rounds), common * draw.lognormal(0, 0.1, rounds)], 1)
        low, high = Rounds(rows.tolist(), number, resamples=1000).ratio(ratio).mean_ci95()
        assert low is not None
        assert high is not None
        held += low <= 0.8 <= high
    assert 0.9 <= held / 300 <= 0.99


def test_too_few_rounds_have_a_ratio_and_no_interval() -> None:
    found = Rounds([(1, 2)] * 4, 1).ratio(ratio)
    assert (found.mean, found.mean_ci95()) == (0.5, (None, None))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "one round at least"),
        ([[]], "one round at least"),
        ([[1.0, math.inf]], "a finite number"),
    ],
)
def test_rounds_that_cannot_be_are_refused(rows: list[list[float]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Rounds(rows, 1)


def shares(rounds: int, together: tuple[float, float]) -> TenantShares:
    slower = [1 + 0.01 * (number % 3) for number in range(rounds)]
    alone = {"t1": [1000 / by for by in slower], "t2": [200 / by for by in slower]}
    return TenantShares(alone, {"t1": [together[0]] * rounds, "t2": [together[1]] * rounds}, seed=3)


def test_tenants_have_their_shares() -> None:
    found = shares(9, (500, 50))
    f_utils = found.f_utils()
    assert {tenant: round(of.mean, 2) for tenant, of in f_utils.items()} == {"t1": 1.01, "t2": 0.5}
    assert round(found.jain().mean, 3) == 0.9
    assert found.min_max().mean == pytest.approx(0.5)
    assert round(found.utilisation().mean, 3) == 0.757


def test_tenants_that_starve_in_turns_have_no_fair_share() -> None:
    found = TenantShares(
        {"t1": [1000.0] * 6, "t2": [1000.0] * 6}, {"t1": [900.0, 100.0] * 3, "t2": [100.0, 900.0] * 3}, seed=3
    )
    assert {of.mean for of in found.f_utils().values()} == {1.0}
    assert found.jain().mean == found.jain().maximum == pytest.approx(1 / (2 * 0.82))
    assert found.min_max().mean_ci95() == pytest.approx((1 / 9, 1 / 9))


@pytest.mark.parametrize("terms", [Terms(), Terms(is_bounded=True), Terms(is_bounded=True, has_rate=True)])
def test_a_round_that_served_no_tenant_is_not_fair(terms: Terms) -> None:
    alone = {"t1": [1000.0] * 5, "t2": [1000.0] * 5}
    together = {"t1": [500.0, 0, 500, 500, 0], "t2": [500.0, 0, 500, 500, 0]}
    found = TenantShares(alone, together, 3, {"t1": terms, "t2": terms})
    assert found.utilisation().minimum == 0
    assert {tenant: of.minimum for tenant, of in found.f_utils().items()} == {"t1": 0, "t2": 0}
    assert (found.jain().mean, found.min_max().mean) == pytest.approx((0.6, 0.6))
    assert (found.jain(idle=1.0).mean, found.min_max(idle=1.0).mean) == pytest.approx((1, 1))
    starved = TenantShares(alone, {"t1": [0.0] * 5, "t2": [0.0] * 5}, 3, {"t1": terms, "t2": terms})
    assert (starved.jain().mean, starved.jain().mean_ci95()) == (0, (0, 0))


BOUNDED = Terms(is_bounded=True)


@pytest.mark.parametrize(
    ("demand", "served", "others", "terms", "jain", "min_max"),
    [
        # A rate that is wholly served, beside others alike: f-Utils 4, 1.33, 1.33, 1.33.
        (2000, 2000, 2000, BOUNDED, 1, 1),
        (2000, 2000, 2000, Terms(), 0.75, 0.333),
        # Pauses, in which the others have what it leaves: an equal share of its own is all it could have.
        (3000, 750, 1750, BOUNDED, 1, 1),
        # Less than an equal share of its demand.
        (2000, 200, 2000, BOUNDED, 0.915, 0.4),
        # A rate that takes the box.
        (5400, 5400, 200, BOUNDED, 0.465, 0.133),
        # The others have less than an equal share: it may have taken that from them.
        (2000, 2000, 750, BOUNDED, 0.893, 0.5),
    ],
)
def test_a_bounded_demand_that_is_served_is_not_served_too_well(
    demand: float, served: float, others: float, terms: Terms, jain: float, min_max: float
) -> None:
    alone = {"t1": [demand] * 5} | {f"t{number}": [6000.0] * 5 for number in (2, 3, 4)}
    together = {"t1": [served] * 5} | {f"t{number}": [others] * 5 for number in (2, 3, 4)}
    found = TenantShares(alone, together, 3, {"t1": terms})
    assert found.f_utils()["t1"].mean == pytest.approx(4 * served / demand)
    assert (found.jain().mean, found.min_max().mean) == pytest.approx((jain, min_max), abs=5e-4)


def test_where_every_demand_is_bounded_each_is_due_an_equal_share() -> None:
    assert compared_shares(array(4, 2, 1, 0.5), [BOUNDED] * 4).tolist() == [1, 1, 1, 0.5]


def test_shares_by_weight_are_fair_where_there_are_weights() -> None:
    alone, together = {"t1": [1000.0] * 5, "t2": [1000.0] * 5}, {"t1": [200.0] * 5, "t2": [800.0] * 5}
    weights = {"t1": Terms(1), "t2": Terms(4)}
    by_weight = TenantShares(alone, together, 3, weights)
    assert {name: round(of.mean, 9) for name, of in by_weight.f_utils().items()} == {"t1": 0.4, "t2": 1.6}
    assert (by_weight.jain().mean, by_weight.min_max().mean) == pytest.approx((1, 1))
    assert TenantShares(alone, together, 3).jain().mean == pytest.approx(0.735, abs=5e-4)
    equal = TenantShares(alone, {"t1": [500.0] * 5, "t2": [500.0] * 5}, 3, weights)
    assert (equal.jain().mean, equal.min_max().mean) == pytest.approx((0.735, 0.25), abs=5e-4)


def test_a_bounded_demand_with_a_weight_is_due_its_part_by_weight() -> None:
    terms = [Terms(4, is_bounded=True), Terms(1)]
    assert compared_shares(array(1.6, 0.4), terms).tolist() == pytest.approx([1, 1])
    assert compared_shares(array(0.8, 0.4), terms).tolist() == pytest.approx([0.5, 1])


def test_a_weight_is_above_0() -> None:
    with pytest.raises(ValueError, match="the weight of a tenant must be above 0, found 0"):
        Terms(0)


def test_tenants_of_which_one_was_not_measured_are_refused() -> None:
    with pytest.raises(ValueError, match="tenants alone are t1, together t2"):
        TenantShares({"t1": [1]}, {"t2": [1]}, 1)
    with pytest.raises(ValueError, match="as many rounds alone as together"):
        TenantShares({"t1": [1, 1]}, {"t1": [1]}, 1)


@pytest.mark.parametrize(
    ("rounds", "least", "verdict", "reason"),
    [
        (9, 0.4, Verdict.PASS, ""),
        (9, 0.6, Verdict.FAIL, "the mean is"),
        (9, 0.505, Verdict.UNKNOWN, "straddles the limit"),
        (4, 0.4, Verdict.UNKNOWN, "4 samples do not carry the mean"),
    ],
)
def test_a_limit_judges_a_ratio_by_its_interval(rounds: int, least: float, verdict: Verdict, reason: str) -> None:
    measurement = Measurement.of("tenant.f_util", "1", shares(rounds, (500, 50)).f_utils()["t2"], {})
    limit = Limit("tenant.f_util", quantile="mean", minimum=least, text=f"min {least}")
    (finding,) = judge(measurement, [limit], {})
    assert finding.verdict is verdict
    assert reason in (finding.reason or "")
