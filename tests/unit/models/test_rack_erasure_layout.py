"""Where the units of stripes lie: on drives of their own, at servers of their own, evenly, and always the same."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rackloop.errors import BadInput
from rackloop_models.rack_erasure import Layout, StripeCode, needed_bytes

codes = st.tuples(st.integers(1, 5), st.integers(1, 3))
homes = st.lists(st.integers(0, 7), min_size=8, max_size=16)


@settings(max_examples=60, deadline=None)
@given(codes, homes, st.integers(1, 12), st.integers(0, 99))
def test_units_of_a_stripe_lie_on_different_drives_and_no_place_is_used_twice(
    code: tuple[int, int], homes: list[int], places: int, seed: int
) -> None:
    layout = Layout(StripeCode(*code), tuple(homes), places, seed)
    used = [(unit.drive, unit.place) for units in layout.stripes for unit in units]
    assert layout.stripes
    assert len(set(used)) == len(used)
    assert all(place < places for _, place in used)
    for units in layout.stripes:
        assert len({unit.drive for unit in units}) == sum(code)


@settings(max_examples=60, deadline=None)
@given(codes, homes, st.integers(0, 99))
def test_no_two_units_of_a_stripe_are_at_one_server_where_there_are_servers_enough(
    code: tuple[int, int], homes: list[int], seed: int
) -> None:
    layout = Layout(StripeCode(*code), tuple(homes), 6, seed)
    counts = Counter(homes)
    # As few at one server as there can be.
    assert sum(min(layout.most_at_a_server, count) for count in counts.values()) >= sum(code)
    assert sum(min(layout.most_at_a_server - 1, count) for count in counts.values()) < sum(code)
    for units in layout.stripes:
        assert max(Counter(homes[unit.drive] for unit in units).values()) <= layout.most_at_a_server


@settings(max_examples=40, deadline=None)
@given(codes, homes, st.integers(0, 99))
def test_it_is_known_how_many_server_failures_are_survived(code: tuple[int, int], homes: list[int], seed: int) -> None:
    layout = Layout(StripeCode(*code), tuple(homes), 4, seed)

    def survives(failed: tuple[int, ...]) -> bool:
        return all(sum(homes[unit.drive] in failed for unit in units) <= code[1] for units in layout.stripes)

    servers = sorted(set(homes))
    survived = layout.server_failures_survived()
    assert all(survives(failed) for failed in combinations(servers, survived))
    if survived < len(servers):
        assert not all(survives(failed) for failed in combinations(servers, survived + 1))


def test_servers_that_took_drives_over_count_as_those_that_they_are_at_now() -> None:
    layout = Layout(StripeCode(2, 1), (0, 1, 2), 4)
    assert layout.server_failures_survived() == 1
    assert layout.server_failures_survived(["a", "a", "b"]) == 0


def test_the_same_seed_gives_the_same_layout_and_another_another() -> None:
    def made(seed: int) -> Layout:
        return Layout(StripeCode(4, 2, 65536), tuple(number % 6 for number in range(12)), 40, seed)

    assert made(3).stripes == made(3).stripes
    assert made(3).stripes != made(4).stripes


def test_stripes_are_spread_over_all_drives_evenly_and_every_two_of_them_meet() -> None:
    drives, code = 12, StripeCode(4, 2)
    layout = Layout(code, tuple(range(drives)), 60)
    assert len(layout.stripes) == drives * 60 // code.units
    assert {len(places) for places in layout.on_drive} == {60}
    # Declustered: a drive's rebuild reads from all others.
    met = {pair for units in layout.stripes for pair in combinations(sorted(unit.drive for unit in units), 2)}
    assert len(met) == drives * (drives - 1) // 2


def test_redundancy_goes_round_so_that_no_drive_has_only_redundancy() -> None:
    layout = Layout(StripeCode(4, 2), tuple(range(6)), 60)
    redundancy = Counter(units[position].drive for units in layout.stripes for position in (4, 5))
    assert set(redundancy.values()) == {20}


def test_places_do_not_overlap_and_fit_the_drive() -> None:
    code = StripeCode(2, 1, 8192)
    layout = Layout(code, (0, 1, 2), 3)
    spans = [(0, 1 << 17)]
    for place in range(3):
        for slot in range(2):
            spans.append((layout.record_offset(place, slot), 4096))
            spans.append((layout.unit_offset(place, slot), 4096 + 8192))
    spans.append((needed_bytes(code, 3) - 65536, 65536))
    spans.sort()
    for (offset, length), (following, _) in pairwise(spans):
        assert offset + length <= following


@pytest.mark.parametrize(
    ("k", "m", "unit_bytes"), [(0, 1, 4096), (1, 0, 4096), (200, 56, 4096), (2, 1, 0), (2, 1, 5000), (2, 1, 32 << 20)]
)
def test_a_code_that_cannot_be_is_refused(k: int, m: int, unit_bytes: int) -> None:
    with pytest.raises(BadInput, match="found"):
        StripeCode(k, m, unit_bytes)


@pytest.mark.parametrize(("drives", "places"), [(2, 4), (3, 0)])
def test_drives_that_do_not_suffice_are_refused(drives: int, places: int) -> None:
    with pytest.raises(BadInput, match=r"as many drives|no room"):
        Layout(StripeCode(2, 1), tuple(range(drives)), places)
