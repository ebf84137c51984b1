"""Which units are damaged: every pattern of small codes, samples of large ones, and what is said of their coverage."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from rackloop.seed import stream
from rackloop_oracles.recovery import Case, Damage, Mix, Patterns, Place, Stripe
from rackloop_oracles.recovery._patterns import rounds


def stripes(*shapes: tuple[int, int]) -> list[Stripe]:
    made = []
    first = 0
    for number, (data, m) in enumerate(shapes):
        units = tuple(Place(f"d{unit}", number * 4096, 4096) for unit in range(data + m))
        made.append(Stripe(str(number), range(first, first + data), units, data))
        first += data
    return made


def patterns(*shapes: tuple[int, int], budget: int = 1000, seed: int = 1) -> Patterns:
    return Patterns(stripes(*shapes), budget, stream(seed, "test"))


def tried(made: Patterns, cases: list[Case]) -> Patterns:
    for case in cases:
        made.note(case.stripe, case.positions, case.damage)
    return made


def test_small_codes_are_tried_exhaustively_shape_by_shape() -> None:
    made = patterns((4, 2), (4, 2), (1, 2))
    every = [frozenset(pattern) for e in (1, 2) for pattern in combinations(range(6), e)]
    assert {case.positions for case in made.erasures if case.stripe < 2} == set(every)
    assert {case.positions for case in made.erasures if case.stripe == 2} == {
        frozenset(pattern) for e in (1, 2) for pattern in combinations(range(3), e)
    }
    assert made.is_exhaustive
    assert {case.stripe for case in made.erasures} == {0, 1, 2}
    assert tried(made, made.erasures).coverage.left_out() == []


def test_nothing_counts_as_covered_before_it_was_tried() -> None:
    made = patterns((4, 2), (3, 2))
    assert {kind: made.coverage.share(kind) for kind in made.coverage.wanted} == {
        "sizes": 0,
        "mixtures": 0,
        "positions": 0,
        "runs": 0,
        "patterns": 0,
        "stripes": 0,
        "shortened stripes": 0,
    }
    tried(made, [Case(0, frozenset({0, 1}))])
    left = made.coverage.left_out()
    assert "sizes: 3 of 4 not covered (3+2 e=1, 3+2 e=2, 4+2 e=1)" in left
    assert "positions: 9 of 11 not covered (3+2 0, 3+2 1, 3+2 2, 3+2 3, 3+2 4, 4+2 2, 4+2 3, 4+2 4, 4+2 5)" in left
    assert "stripes: 1 of 2 not covered (last)" in left


def test_large_codes_are_sampled_to_cover_all_but_the_patterns() -> None:
    made = patterns((251, 4), (251, 4), (100, 4), budget=400)
    assert not made.is_exhaustive
    assert len(made.erasures) <= 400
    assert "patterns" not in made.coverage.wanted
    assert tried(made, made.erasures).coverage.left_out() == []


def test_a_budget_that_is_too_small_is_kept_and_what_is_left_out_is_said() -> None:
    made = patterns((251, 4), budget=20)
    assert len(made.erasures) == 20
    tried(made, made.erasures)
    assert made.coverage.share("sizes") == 1
    assert made.coverage.share("positions") < 1
    assert any(text.startswith("positions: ") for text in made.coverage.left_out())


def test_no_shortened_stripe_is_said_to_be_absent() -> None:
    assert patterns((4, 2)).coverage.absent == ["shortened stripes"]
    assert patterns((4, 1)).coverage.absent == ["runs", "shortened stripes"]
    assert patterns((4, 1), (3, 2)).coverage.absent == []
    assert patterns((4, 2), (4, 1)).coverage.absent == ["shortened stripes"]


def test_beyond_is_one_more_than_m_and_always_hits_data() -> None:
    for case in patterns((4, 2), (1, 2)).beyond(12):
        assert case.damage is Damage.BEYOND
        assert len(case.positions) == 3
        assert min(case.positions) < (4, 1)[case.stripe]


def test_a_stripe_that_is_hit_along_with_another_is_not_beyond_m() -> None:
    made = patterns((4, 2), (4, 2))
    assert made.beyond(6)
    made.note(1, frozenset({3, 4}), Damage.BEYOND)
    assert made.coverage.share("beyond m") == 0
    made.note(1, frozenset({3, 4, 5}), Damage.BEYOND)
    assert made.coverage.share("beyond m") == 0.5


def test_corruptions_beyond_m_are_one_more_and_always_hit_data() -> None:
    for case in patterns((4, 2)).corruptions_beyond(3):
        assert case.damage is Damage.CORRUPTED
        assert len(case.positions) == 3
        assert min(case.positions) < 4


def test_corruptions_are_of_data_of_parity_and_of_both() -> None:
    made = patterns((4, 2)).corruptions(6)
    assert {Mix.of(case.positions, 4) for case in made} == {Mix.DATA, Mix.PARITY, Mix.MIXED}
    assert all(1 <= len(case.positions) <= 2 for case in made)


def test_the_seed_decides() -> None:
    assert patterns((251, 4), budget=50, seed=1).erasures == patterns((251, 4), budget=50, seed=1).erasures
    assert patterns((251, 4), budget=50, seed=1).erasures != patterns((251, 4), budget=50, seed=2).erasures


SHAPES = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 5)), min_size=1, max_size=5)


@settings(max_examples=100, deadline=None)
@given(SHAPES, st.integers(0, 300), st.integers(0, 9))
def test_cases_fit_their_stripes_and_the_budget(shapes: list[tuple[int, int]], budget: int, seed: int) -> None:
    made = patterns(*shapes, budget=budget, seed=seed)
    assert len(made.erasures) <= budget
    for case in made.erasures:
        data, m = shapes[case.stripe]
        assert 1 <= len(case.positions) <= m
        assert case.positions <= set(range(data + m))
    for case in (*made.beyond(7), *made.corruptions(7)):
        data, m = shapes[case.stripe]
        assert len(case.positions) == m + 1 if case.damage is Damage.BEYOND else len(case.positions) <= m
        assert case.positions <= set(range(data + m))


@given(st.lists(st.integers(0, 5), max_size=40), st.integers(1, 4))
def test_rounds_have_each_case_once_and_no_stripe_twice(numbers: list[int], together: int) -> None:
    cases = [Case(stripe, frozenset({number})) for number, stripe in enumerate(numbers)]
    lots = list(rounds(cases, together))
    assert {case for lot in lots for case in lot} == set(cases)
    assert sum(map(len, lots)) == len(cases)
    for lot in lots:
        assert len(lot) <= together
        assert len({case.stripe for case in lot}) == len(lot)
