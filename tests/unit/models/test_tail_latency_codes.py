"""Codes for failure probabilities: the paper's table, the redundancy by length, and what cannot be."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import pytest

from rackloop.errors import BadInput
from rackloop_models.tail_latency import (
    FAILURE_PROBABILITIES,
    choose_code,
    decoding_failure,
    metadata_replicas,
    redundancy_by_length,
    redundancy_steps,
    table_of_codes,
)

# Codeword, ph, k, m, how often decoding fails, and how often with one redundancy sector less: exact arithmetic.
TABLE_1 = [
    (255, 1e-4, 252, 3, "1.686e-08", "2.680e-06"),
    (255, 5e-4, 251, 4, "2.433e-07", "9.728e-06"),
    (255, 1e-3, 250, 5, "2.908e-07", "7.017e-06"),
    (255, 5e-3, 246, 9, "8.617e-07", "7.060e-06"),
    (1023, 1e-4, 1019, 4, "8.495e-08", "4.182e-06"),
    (1023, 5e-4, 1016, 7, "7.210e-08", "1.143e-06"),
    (1023, 1e-3, 1014, 9, "1.322e-07", "1.316e-06"),
    (1023, 5e-3, 1004, 19, "4.400e-07", "1.771e-06"),
]


def exact_failure(codeword: int, m: int, ph: Fraction) -> Fraction:
    return sum(
        (math.comb(codeword, e) * ph**e * (1 - ph) ** (codeword - e) for e in range(m + 1, codeword + 1)), Fraction(0)
    )


def test_table_1_of_the_paper() -> None:
    found = [
        (code.codeword, code.ph, code.k, code.m, f"{code.fails:.3e}", f"{code.fails_with_less:.3e}")
        for code in table_of_codes()
    ]
    assert found == TABLE_1


@pytest.mark.parametrize(("codeword", "m"), [(255, 3), (255, 9), (255, 30), (64, 20)])
def test_rare_failures_have_all_their_digits(codeword: int, m: int) -> None:
    exact = exact_failure(codeword, m, Fraction(1, 1000))
    assert decoding_failure(codeword, m, 1e-3) == pytest.approx(float(exact), rel=1e-11)


def test_longer_codewords_need_less_redundancy_in_the_long_run() -> None:
    by_place = {(entry.ph, entry.codeword): entry for entry in redundancy_by_length([64, 256, 1024, 4096])}
    for ph in FAILURE_PROBABILITIES:
        ratios = [by_place[ph, codeword].ratio for codeword in (64, 256, 1024, 4096)]
        assert ratios == sorted(ratios, reverse=True)
    entry = by_place[1e-3, 1024]
    assert decoding_failure(1024, entry.m, 1e-3) <= 1e-8 < decoding_failure(1024, entry.m - 1, 1e-3)


@pytest.mark.parametrize(("ph", "target"), [(1e-4, 1e-8), (5e-3, 1e-8), (0.3, 1e-6)])
def test_steps_are_what_every_length_needs(ph: float, target: float) -> None:
    steps = redundancy_steps(2, 600, (ph,), target)
    needed = {entry.codeword: entry.m for entry in redundancy_by_length(range(2, 601), (ph,), target)}
    stepped = [(length, step.m) for step in steps for length in range(step.shortest, step.longest + 1)]
    assert stepped == sorted(needed.items())
    assert all(step.m < following.m for step, following in pairwise(steps))


def test_lengths_that_no_redundancy_suffices_for_are_left_out() -> None:
    assert redundancy_by_length([2], [0.005], 1e-8) == ()
    with pytest.raises(BadInput, match="no code of 2 sectors fails as rarely as 1e-08"):
        choose_code(2, 0.005, 1e-8)


@pytest.mark.parametrize(
    ("ph", "target", "copies"),
    [(1e-3, 1e-6, 2), (1e-2, 1e-6, 3), (1.001e-2, 1e-6, 4), (5e-3, 1e-6, 3), (1e-4, 1e-6, 2)],
)
def test_metadata_has_as_many_copies_as_it_needs(ph: float, target: float, copies: int) -> None:
    assert metadata_replicas(ph, target) == copies


@pytest.mark.parametrize("ph", [0.0, 1.0, -0.1, 1.5, math.nan, math.inf])
def test_what_is_no_probability_is_told(ph: float) -> None:
    for work_out in (
        lambda: choose_code(255, ph),
        lambda: choose_code(255, 0.001, ph),
        lambda: decoding_failure(255, 3, ph),
        lambda: metadata_replicas(ph),
        lambda: redundancy_by_length([255], [ph]),
    ):
        with pytest.raises(BadInput, match="expected a probability above 0 and below 1"):
            work_out()


@pytest.mark.parametrize("codeword", [1, 0, -5, 65_537])
def test_a_codeword_has_a_length_that_can_be(codeword: int) -> None:
    with pytest.raises(BadInput, match="2 to 65,536 sectors"):
        choose_code(codeword, 0.001)
