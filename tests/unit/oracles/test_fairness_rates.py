"""Indices of tenants with rates: what each is due by max-min fairness, whatever part of its demand that is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackloop_oracles.fairness import TenantShares, Terms, compared_shares

RATE, PAUSES, ALWAYS = Terms(is_bounded=True, has_rate=True), Terms(is_bounded=True), Terms()
PARTS = st.lists(st.floats(0.01, 1), min_size=2, max_size=8)


def indices(alone: Sequence[float], together: Sequence[float], terms: Sequence[Terms]) -> tuple[float, float]:
    """Jain's index and the min/max share of rounds that are all alike."""
    names = [f"t{number}" for number in range(len(alone))]
    before, after = ({name: [float(one)] * 5 for name, one in zip(names, of, strict=True)} for of in (alone, together))
    found = TenantShares(before, after, 3, dict(zip(names, terms, strict=True)))
    return found.jain().mean, found.min_max().mean


@pytest.mark.parametrize(
    ("alone", "together", "rates", "jain", "min_max"),
    [
        # Of four rates one is served whole, the others at an equal share of their own demand.
        ([1000] * 4, [1000, 250, 250, 250], 4, 0.645, 0.25),
        # Beside three readers that have the box among them a small rate is cut to a quarter.
        ([1000, *[400e3] * 3], [250, *[133e3] * 3], 1, 0.862, 0.25),
        # One rate of sixteen is cut on a box that serves all the others.
        ([1000] * 16, [*[1000] * 15, 62.5], 16, 0.945, 0.0625),
        # A rate that is served whole: beside readers that share what it leaves, and beside rates.
        ([2000, *[6000] * 3], [2000] * 4, 1, 1, 1),
        ([1000, 10], [1000, 10], 2, 1, 1),
        # As much as the box does: an equal share is all that is due, also where that is a little less than the others'.
        ([5400, *[6000] * 3], [1500] * 4, 1, 1, 1),
        ([5400, *[6000] * 3], [1455, *[1515] * 3], 1, 1, 0.960),
        # Less than that.
        ([5400, *[6000] * 3], [750, *[1750] * 3], 1, 0.923, 0.429),
        # A rate that takes the box, and one beside others that have less than an equal share.
        ([5400, *[6000] * 3], [5400, 200, 200, 200], 1, 0.465, 0.133),
        ([2000, *[6000] * 3], [2000, 750, 750, 750], 1, 0.893, 0.5),
        # Rates among themselves, beside a reader that has an equal share.
        ([1000] * 3 + [6000], [1000, 250, 250, 1500], 3, 0.9, 0.5),
        # Starved.
        ([1000, *[6000] * 3], [0, *[2000] * 3], 1, 0.75, 0),
        ([1000] * 2, [1000, 0], 2, 0.5, 0),
    ],
)
def test_a_rate_is_due_its_demand_or_an_equal_share_if_that_is_less(
    alone: Sequence[float], together: Sequence[float], rates: int, jain: float, min_max: float
) -> None:
    terms = [RATE] * rates + [ALWAYS] * (len(alone) - rates)
    assert indices(alone, together, terms) == pytest.approx((jain, min_max), abs=2e-3)


@pytest.mark.parametrize(
    ("alone", "together", "jain", "min_max"),
    [
        # A large rate has as much as the reader, and small ones beside it all that they ask for.
        ([2000, 16000, 20000], [2000, 9000, 9000], 1, 1),
        ([200, 200, 200, 12000, 20000], [200, 200, 200, 9700, 9700], 1, 1),
        # It takes three fifths of the box, and the reader has less than is left to both by the small ones.
        ([200, 200, 200, 12000, 20000], [200, 200, 200, 12000, 7400], 0.990, 0.763),
        # It has half of what the reader has, or a small one half of its demand.
        ([2000, 16000, 20000], [2000, 6000, 12000], 0.926, 0.5),
        ([2000, 16000, 20000], [1000, 9500, 9500], 0.926, 0.5),
    ],
)
def test_rates_beside_a_reader_are_due_by_what_each_asks_for(
    alone: Sequence[float], together: Sequence[float], jain: float, min_max: float
) -> None:
    terms = [RATE] * (len(alone) - 1) + [ALWAYS]
    assert indices(alone, together, terms) == pytest.approx((jain, min_max), abs=2e-3)


@given(PARTS, st.integers(1, 4), st.lists(st.floats(0.25, 4), min_size=12, max_size=12))
def test_a_box_that_is_dealt_out_max_min_fairly_has_equal_shares(
    demands: list[float], always: int, weights: list[float]
) -> None:
    demands += [1.0] * always
    weights = weights[: len(demands)]
    levels = sorted(demand / weight for demand, weight in zip(demands, weights, strict=True))
    low, high = 0.0, levels[-1]
    for _ in range(100):
        level = (low + high) / 2
        dealt = [min(demand, level * weight) for demand, weight in zip(demands, weights, strict=True)]
        low, high = (low, level) if sum(dealt) > 1 else (level, high)
    rated = len(demands) - always
    terms = [Terms(weight, is_bounded=place < rated, has_rate=place < rated) for place, weight in enumerate(weights)]
    assert indices([20000 * one for one in demands], [20000 * one for one in dealt], terms) == pytest.approx((1, 1))


def test_a_tenant_in_bursts_has_the_box_only_while_it_asks() -> None:
    alone, together = [3000, 6000, 6000, 6000], [750, 1750, 1750, 1750]
    assert indices(alone, together, [PAUSES, ALWAYS, ALWAYS, ALWAYS]) == pytest.approx((1, 1))
    # To a rate beside it an equal share is left.
    assert indices([3000, 1000], [1500, 500], [PAUSES, RATE]) == pytest.approx((1, 1))
    assert indices([3000, 1000], [3000, 250], [PAUSES, RATE]) == pytest.approx((0.9, 0.5))


def test_rates_are_dealt_out_by_weight_up_to_their_demand() -> None:
    heavy, light = Terms(4, is_bounded=True, has_rate=True), RATE
    assert indices([1000, 1000], [800, 200], [heavy, light]) == pytest.approx((1, 1))
    assert indices([1000, 1000], [1000, 1000], [heavy, light]) == pytest.approx((1, 1))
    assert indices([1000, 1000], [500, 500], [heavy, light])[0] < 0.8
    # What the heavy one cannot use is the light one's.
    assert indices([1000, 1000], [1000, 600], [heavy, light]) == pytest.approx((1, 1))


@given(PARTS)
def test_rates_alone_are_compared_by_the_part_of_their_demand(parts: list[float]) -> None:
    found = compared_shares(np.asarray([part * len(parts) for part in parts]), [RATE] * len(parts))
    assert (found / found.max()).tolist() == pytest.approx([part / max(parts) for part in parts])


@given(PARTS, st.integers(1, 7))
def test_no_rate_counts_as_more_than_what_the_others_have(parts: list[float], always: int) -> None:
    always = min(always, len(parts) - 1)
    terms = [ALWAYS] * always + [RATE] * (len(parts) - always)
    f_utils = np.asarray([part * len(parts) for part in parts])
    compared = compared_shares(f_utils, terms)
    level = max(1.0, float(f_utils[:always].mean()))
    assert compared[:always].tolist() == f_utils[:always].tolist()
    for part, share in zip(parts[always:], compared[always:].tolist(), strict=True):
        assert level * part * (1 - 1e-9) <= share <= level * (1 + 1e-9)


def test_a_rate_is_a_bounded_demand() -> None:
    with pytest.raises(ValueError, match="a tenant with a rate asks for no more than that"):
        Terms(has_rate=True)
