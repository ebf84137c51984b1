"""Every pattern of units that cannot be had, for small codes: up to m it is read right, beyond it says so."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

import pytest

from rackloop.abilities.blocks import BLOCK_BYTES
from rackloop.seed import stream
from rackloop_models.erasure import UnrecoverableError
from rackloop_models.rack_erasure import Health, StripedStore, StripeLost
from tests.unit.models.striped_drives import Case, case

CODES = [(1, 1), (1, 2), (2, 1), (2, 2), (3, 2), (4, 2), (2, 3)]
UNIT_BYTES = 2 * BLOCK_BYTES


def patterns(units: int) -> Iterator[tuple[int, ...]]:
    for count in range(units + 1):
        yield from combinations(range(units), count)


def gone(made: Case, place: tuple[str, int, int]) -> None:
    made.drives[place[0]].is_dead = True


def unreadable(made: Case, place: tuple[str, int, int]) -> None:
    made.drives[place[0]].unreadable.add(place[1])


def damaged(made: Case, place: tuple[str, int, int]) -> None:
    # The last block of the unit, behind the one that says what it is.
    made.drives[place[0]].damage(place[1] + place[2] - BLOCK_BYTES, BLOCK_BYTES)


def lengths(k: int) -> list[int]:
    """A full object, one that ends in a unit, and one of a single unit."""
    return sorted({k * UNIT_BYTES, (k - 1) * UNIT_BYTES + 100, UNIT_BYTES})


@pytest.mark.parametrize("code", CODES, ids=str)
@pytest.mark.parametrize("lose", [gone, unreadable, damaged])
def test_every_pattern_up_to_m_is_read_right_and_every_other_is_an_error_that_names_it(
    code: tuple[int, int], lose: object
) -> None:
    assert callable(lose)
    k, m = code
    for length, pattern in product(lengths(k), patterns(k + m)):
        made = case(k, m, k + m, places=1, unit_bytes=UNIT_BYTES)
        store = made.open()
        data = stream(length, "object").randbytes(length)
        store.put(0, data)
        places = store.places(0)
        for position in pattern:
            lose(made, places[position])
        needed = min(k, -(-length // UNIT_BYTES))
        # A data unit of zeros is not needed, whether its drive is there or not.
        missing = [position for position in pattern if position < needed or position >= k]
        if len(missing) <= m:
            assert store.get(0) == data
            assert store.statistics.degraded_reads == any(position < needed for position in pattern)
        else:
            with pytest.raises(StripeLost) as caught:
                store.get(0)
            # Those that it would have had to read are known, and no other is called lost.
            assert set(caught.value.erased) == set(missing)
            assert caught.value.drives == tuple(places[position][0] for position in caught.value.erased)
            assert isinstance(caught.value, UnrecoverableError)
            assert "object 0" in str(caught.value)


@pytest.mark.parametrize("code", CODES, ids=str)
def test_every_pattern_up_to_m_is_rebuilt_on_spares_byte_by_byte(code: tuple[int, int]) -> None:
    k, m = code
    for pattern in patterns(k + m):
        if len(pattern) > m:
            continue
        made = case(k, m, k + m, places=2, unit_bytes=UNIT_BYTES)
        store = made.open()
        data = [stream(number, "object").randbytes(length) for number, length in enumerate((k * UNIT_BYTES, 100))]
        for number, content in enumerate(data):
            store.put(number, content)
        whole = {position: bytes(made.drives[f"d{position}"].content) for position in pattern}
        for position in pattern:
            spare = type(made.drives["d0"])(made.drives["d0"].size_bytes, made.power)
            store.replace(f"d{position}", f"x{position}", spare)
            made.drives[f"x{position}"] = spare
        report = store.rebuild()
        assert (report.units, report.left, report.lost) == (2 * len(pattern), 0, ())
        assert store.recovery_state().health is Health.HEALTHY
        for position in pattern:
            # All but the labels is what the lost drive had.
            assert made.drives[f"x{position}"].content[1 << 17 : -(1 << 16)] == whole[position][1 << 17 : -(1 << 16)]
        for number, content in enumerate(data):
            assert store.get(number) == content


@pytest.mark.parametrize("code", CODES, ids=str)
def test_what_is_written_with_any_m_drives_gone_is_read_with_any_others_gone_once_it_was_caught_up(
    code: tuple[int, int],
) -> None:
    k, m = code
    for away in combinations(range(k + m), m):
        made = case(k, m, k + m, places=1)
        store = made.open()
        store.put(0, b"old" * 100)
        for position in away:
            made.drives[f"d{position}"].is_dead = True
        store.put(0, b"new" * 100)
        for position in away:
            made.drives[f"d{position}"].is_dead = False
            store.drive_back(f"d{position}", made.drives[f"d{position}"])
        state = store.recovery_state()
        assert set(state.stale) == {f"d{position}" for position in away}
        assert store.rebuild().left == 0
        assert store.recovery_state().health is Health.HEALTHY
        for others in combinations(range(k + m), m):
            assert opened_without(made, others).get(0) == b"new" * 100


def opened_without(made: Case, positions: tuple[int, ...]) -> StripedStore:
    """The store where only these drives are missing; a mirror of which half is gone has to be trusted."""
    return made.open(without=[f"d{position}" for position in positions], trusting=True)
