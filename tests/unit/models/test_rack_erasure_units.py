"""Units and records that are not what they should be: each kind is told, counted, read around and repaired."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rackloop.abilities.blocks import BLOCK_BYTES
from rackloop_models.rack_erasure import Health, NoStripedStore, StripedStore, StripeLost
from rackloop_models.rack_erasure._layout import LABEL_BYTES
from tests.unit.models.striped_drives import Case, Drive, case

FIRST, SECOND = b"first" * 1500, b"second" * 1300


def written() -> tuple[Case, StripedStore]:
    """Two objects, the second written three times."""
    made = case(2, 1, 3, places=4)
    store = made.open()
    store.put(0, FIRST)
    for content in (b"a" * 7800, b"b" * 7800, SECOND):
        store.put(1, content)
    return made, store


def place(store: StripedStore, number: int, position: int = 0) -> tuple[str, int, int]:
    return store.places(number)[position]


def unreadable(made: Case, store: StripedStore) -> None:
    drive, offset, _ = place(store, 1)
    made.drives[drive].unreadable.add(offset + BLOCK_BYTES)


def flipped(made: Case, store: StripedStore) -> None:
    drive, offset, _ = place(store, 1)
    made.drives[drive].damage(offset + BLOCK_BYTES, BLOCK_BYTES)


def headless(made: Case, store: StripedStore) -> None:
    drive, offset, _ = place(store, 1)
    made.drives[drive].damage(offset, BLOCK_BYTES)


def never_written(made: Case, store: StripedStore) -> None:
    """The drive said that it wrote, and did not: what was there before, of two writes ago, is there."""
    drive, offset, length = place(store, 1)
    blocks = made.drives[drive]
    now = bytes(blocks.content[offset : offset + length])
    store.put(1, SECOND)
    store.put(1, SECOND)
    assert place(store, 1) == (drive, offset, length)
    blocks.content[offset : offset + length] = now


def elsewhere(made: Case, store: StripedStore) -> None:
    """The drive wrote the unit of another stripe there."""
    drive, offset, length = place(store, 1)
    blocks = made.drives[drive]
    other = next(at for name, at, _ in store.places(0) if name == drive)
    blocks.content[offset : offset + length] = blocks.content[other : other + length]


KINDS = [
    (unreadable, "unreadable"),
    (flipped, "damaged"),
    (headless, "damaged"),
    (never_written, "stale"),
    (elsewhere, "misplaced"),
]


@pytest.mark.parametrize(("spoil", "kind"), KINDS)
def test_a_unit_that_is_wrong_is_told_and_read_around(spoil: Callable[[Case, StripedStore], None], kind: str) -> None:
    made, store = written()
    spoil(made, store)
    assert store.get(1) == SECOND
    counted = store.statistics
    assert {name: getattr(counted, name) for name in ("unreadable", "damaged", "stale", "misplaced")} == {
        name: int(name == kind) for name in ("unreadable", "damaged", "stale", "misplaced")
    }
    assert (counted.degraded_reads, counted.decodes) == (1, 1)
    state = store.recovery_state()
    assert (state.health, state.degraded, state.by_survivors) == (Health.DEGRADED, 1, {2: 1})
    # It is not asked for again, and rebuilt.
    assert store.get(1) == SECOND
    assert getattr(store.statistics, kind) == 1
    assert store.rebuild().units == 1
    assert store.recovery_state().health is Health.HEALTHY
    assert store.get(1) == SECOND
    assert store.statistics.degraded_reads == 2


@pytest.mark.parametrize(("spoil", "kind"), KINDS)
def test_a_scrub_finds_a_unit_that_is_wrong_and_repairs_it(
    spoil: Callable[[Case, StripedStore], None], kind: str
) -> None:
    made, store = written()
    spoil(made, store)
    looked = store.scrub(repair=False)
    assert (getattr(looked, kind), looked.repaired, looked.lost) == (1, 0, ())
    told: list[tuple[int, int]] = []
    repaired = store.scrub(lambda done, total: told.append((done, total)))
    assert (repaired.lacking, repaired.repaired) == (1, 1)
    assert told == [(number + 1, store.objects) for number in range(store.objects)]
    after = store.scrub()
    assert (after.objects, after.units, after.repaired, after.lacking) == (2, 6, 0, 0)
    assert made.open().scrub().repaired == 0


@pytest.mark.parametrize(("spoil", "kind"), KINDS)
def test_one_wrong_and_one_gone_of_a_code_that_recovers_one_is_an_error(
    spoil: Callable[[Case, StripedStore], None], kind: str
) -> None:
    made, store = written()
    spoil(made, store)
    made.drives[place(store, 1, 1)[0]].is_dead = True
    with pytest.raises(StripeLost, match=r"object 1: 2 units of stripe 1 are lost") as caught:
        store.get(1)
    assert set(caught.value.erased) == {0, 1}
    assert kind in str(caught.value)
    assert store.recovery_state().health is Health.LOST
    assert store.recovery_state().lost == (1,)
    assert store.get(0) == FIRST


@pytest.mark.parametrize("slot", [0, 1])
def test_a_record_that_is_damaged_is_told_by_a_scrub_and_costs_no_content(slot: int) -> None:
    made, store = written()
    unit = store.layout.stripes[1][0]
    drive = made.drives[f"d{unit.drive}"]
    drive.damage(store.layout.record_offset(unit.place, slot), BLOCK_BYTES)
    again = made.open()
    assert again.get(1) == SECOND
    again.scrub()
    assert made.open().recovery_state().health is Health.HEALTHY
    assert made.open().get(1) == SECOND


def test_records_that_cannot_be_read_cost_no_content() -> None:
    made, store = written()
    unit = store.layout.stripes[1][0]
    made.drives[f"d{unit.drive}"].unreadable.add(store.layout.record_offset(unit.place, 1))
    again = made.open()
    assert (again.get(0), again.get(1)) == (FIRST, SECOND)
    # They were written again when they were found.
    assert not made.drives[f"d{unit.drive}"].unreadable
    assert made.open().recovery_state().health is Health.HEALTHY


def test_any_copy_of_a_label_suffices() -> None:
    for kept in range(3):
        made, _ = written()
        drive = made.drives["d0"]
        copies = [0, LABEL_BYTES, drive.size_bytes - LABEL_BYTES]
        for number, offset in enumerate(copies):
            if number != kept:
                drive.damage(offset, LABEL_BYTES)
        assert made.open().recovery_state().health is Health.HEALTHY
        drive.damage(copies[kept], LABEL_BYTES)
        with pytest.raises(NoStripedStore, match="d0 carries no striped store"):
            made.open()
        # It can be left out, and put back as a spare of itself.
        store = made.open(without=["d0"])
        assert store.get(1) == SECOND
        store.replace("d0", "d0", drive)
        assert store.rebuild().left == 0
        assert made.open().recovery_state().health is Health.HEALTHY


def test_a_drive_that_refuses_writes_is_gone_and_the_write_is_done_without_it() -> None:
    made, store = written()
    made.drives["d1"].refuses_writes = True
    store.put(0, SECOND)
    assert store.statistics.degraded_writes == 1
    assert store.recovery_state().missing == ("d1",)
    assert store.get(0) == SECOND


def test_a_path_that_fails_late_does_not_take_the_new_one_with_it() -> None:
    made, store = written()
    old = made.drives["d0"]
    new = Drive(old.size_bytes, made.power)
    new.content[:] = old.content
    old.is_dead = True
    store.drive_back("d0", new)
    assert store.recovery_state().health is Health.HEALTHY
    assert store.get(1) == SECOND
    assert store.statistics.degraded_reads == 0
