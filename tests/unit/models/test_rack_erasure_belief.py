"""Whom a store believes: no drive that missed something, or took what came to nothing, has it give what is old."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy

import pytest

from rackloop.abilities.blocks import BLOCK_BYTES
from rackloop_models.rack_erasure import Health, StripedStore, StripeLost, TooFewDrives
from rackloop_models.rack_erasure._layout import LABEL_BYTES
from tests.unit.models.striped_drives import Case, Drive, case

OLD, NEW = b"old" * 1000, b"new" * 1300


def records(store: StripedStore, made: Case, slot: int) -> list[tuple[Drive, int]]:
    """Where the drives of object 0 have their records of a slot."""
    drives = list(made.drives.values())
    return [(drives[unit.drive], store.layout.record_offset(unit.place, slot)) for unit in store.layout.stripes[0]]


def replaced(store: StripedStore, made: Case, drive: str) -> None:
    spare = Drive(made.drives[drive].size_bytes, made.power)
    store.replace(drive, f"x{drive}", spare)
    made.drives = {(f"x{name}" if name == drive else name): (spare if name == drive else one)
                   for name, one in made.drives.items()}  # fmt: skip


@pytest.mark.parametrize(("k", "m", "took_it"), [(1, 1, ["d0"]), (1, 2, ["d0", "d2"]), (2, 2, ["d0", "d1"])])
def test_a_write_that_came_to_nothing_is_not_seen_after_that_was_read(k: int, m: int, took_it: list[str]) -> None:
    """k drives took it and said that they did not."""
    made, old = case(k, m, k + m, places=1), OLD * k
    store = made.open()
    store.put(0, old)
    for name, drive in made.drives.items():
        if name in took_it:
            # The unit, then the record, after which the link drops.
            drive.drops_after = 1
        else:
            drive.refuses_writes_at = {offset for slot in (0, 1) for _, offset in records(store, made, slot)}
    with pytest.raises(TooFewDrives, match="or what was written"):
        store.put(0, NEW * k)
    for name, drive in made.drives.items():
        drive.is_dead, drive.refuses_writes_at = False, set()
        if name not in took_it:
            store.drive_back(name, drive)
    assert store.get(0) == old
    again = made.open()
    assert again.get(0) == old
    again.rebuild()
    assert again.recovery_state().health is Health.HEALTHY
    assert made.open().get(0) == old


def test_what_drives_took_that_lack_other_things_is_not_undone_by_those_that_missed_it() -> None:
    """Where one of those that took it does not come back, the others know no better and are not believed."""
    made = case(2, 2, 4, places=3)
    store = made.open()
    for number in range(3):
        store.put(number, OLD * 2)
    for drive in ("d2", "d3"):
        made.drives[drive].is_dead = True
    for number in range(3):
        store.put(number, b"without two" * 600)
    for drive in ("d2", "d3"):
        made.drives[drive].is_dead = False
        store.drive_back(drive, made.drives[drive])
    for drive in ("d0", "d1"):
        made.drives[drive].is_dead = True
    store.put(0, NEW * 2)
    for drive in ("d0", "d1"):
        made.drives[drive].is_dead = False
    for without, number in (("d2", 0), ("d3", 0), ("d0", 1), ("d1", 1)):
        with pytest.raises(StripeLost, match="cannot be told from the drives that are there"):
            deepcopy(made).open(without=[without]).get(number)
    for without in ("d0", "d1"):
        assert deepcopy(made).open(without=[without]).get(0) == NEW * 2
    again = made.open()
    again.rebuild()
    for without in made.drives:
        assert deepcopy(made).open(without=[without]).get(0) == NEW * 2
        assert deepcopy(made).open(without=[without]).get(1) == b"without two" * 600


def test_all_drives_of_a_stripe_may_take_a_write_however_many_lack_something() -> None:
    """An object of which too much was lost is written anew on what came in the place of its drives."""
    made = case(2, 1, 3, places=2)
    store = made.open()
    for number in range(2):
        store.put(number, OLD * 2)
    for drive in ("d0", "d1"):
        replaced(store, made, drive)
    with pytest.raises(StripeLost):
        store.get(0)
    store.put(0, NEW * 2)
    for without in ((), ("d2",), ("xd0",), ("xd1",)):
        assert made.open(without=without).get(0) == NEW * 2


def test_those_that_missed_a_write_are_not_believed_once_those_that_took_it_were_replaced() -> None:
    made = case(2, 2, 4, places=1)
    store = made.open()
    store.put(0, OLD * 2)
    for drive in ("d2", "d3"):
        made.drives[drive].is_dead = True
    store.put(0, NEW * 2)
    for drive in ("d2", "d3"):
        made.drives[drive].is_dead = False
        store.drive_back(drive, made.drives[drive])
    for drive in ("d0", "d1"):
        replaced(store, made, drive)
    for again in (store, made.open()):
        with pytest.raises(StripeLost):
            again.get(0)


def test_those_that_left_last_are_believed_where_too_few_are_in() -> None:
    made = case(2, 2, 4, places=1)
    store = made.open()
    store.put(0, b"first")
    on = [drive for drive, _, _ in store.places(0)]
    for leaving, content in ((on[3], b"second"), (on[1], b"third")):
        made.drives[leaving].is_dead = True
        store.put(0, content)
    for drive in made.drives.values():
        drive.is_dead = False
    # Opened without one of the two that have all, then without the other: it has redundancy, and that suffices.
    assert made.open(without=[on[2]]).get(0) == b"third"
    assert made.open(without=[on[0]]).get(0) == b"third"


def test_an_object_of_which_all_drives_were_replaced_is_lost_and_not_said_never_to_have_been() -> None:
    made = case(2, 1, 3, places=1)
    store = made.open()
    store.put(0, OLD * 2)
    for drive in ("d0", "d1", "d2"):
        replaced(store, made, drive)
    for again in (store, made.open()):
        with pytest.raises(StripeLost):
            again.get(0)


def test_a_write_that_failed_is_settled_when_drives_come_back_and_nothing_is_said_to_be_lost() -> None:
    made = case(3, 2, 5, places=1)
    store = made.open()
    store.put(0, OLD * 3)
    for drive in ("d0", "d1", "d2"):
        made.drives[drive].drops_after = 1
    with pytest.raises(TooFewDrives):
        store.put(0, NEW * 3)
    assert store.recovery_state().lost == (0,)
    made.drives["d0"].is_dead = False
    store.drive_back("d0", made.drives["d0"])
    assert store.recovery_state().lost == ()
    assert store.get(0) in {OLD * 3, NEW * 3}


def test_a_drive_that_comes_back_amid_a_write_it_missed_is_out() -> None:
    made = case(2, 1, 3, places=1)
    store = made.open()
    store.put(0, OLD)
    store.drive_failed("d2")

    class Calls(Drive):
        """Has another drive come back when it is written to."""

        then: Callable[[], None] | None = None

        def write(self, offset: int, data: bytes) -> None:
            super().write(offset, data)
            if self.then is not None:
                then, self.then = self.then, None
                then()

    old = made.drives["d0"]
    calls = Calls(old.size_bytes, made.power)
    calls.content[:] = old.content
    made.drives["d0"] = calls
    old.is_dead = True
    store.drive_back("d0", calls)
    calls.then = lambda: store.drive_back("d2", made.drives["d2"])
    store.put(0, NEW)
    (state,) = [drive for drive in store.recovery_state().drives if drive.name == "d2"]
    assert state.is_up
    assert state.is_out
    store.rebuild()
    assert made.open(without=["d1"]).get(0) == NEW


@pytest.mark.parametrize("is_silent", [True, False])
def test_a_write_of_which_no_drive_has_a_record_any_more_is_lost_and_not_the_one_before(*, is_silent: bool) -> None:
    for others in range(5):
        made = case(2, 2, 4, places=1)
        store = made.open()
        for content in (OLD, NEW):
            store.put(0, content)
        (slot,) = [slot for slot in (0, 1) if _generation(records(store, made, slot)[0]) == 2]
        for drive, offset in records(store, made, slot)[others:]:
            if is_silent:
                drive.damage(offset, BLOCK_BYTES)
            else:
                drive.unreadable.add(offset)
        again = made.open()
        if others:
            assert again.get(0) == NEW
        else:
            with pytest.raises(StripeLost, match=r"4 units of stripe 0 are lost .*cannot be told"):
                again.get(0)


def _generation(record: tuple[Drive, int]) -> int:
    drive, offset = record
    # The checksum, magic, format, store, stripe, position and drive come before it.
    at = offset + 4 + 4 + 2 + 16 + 4 + 2 + 2
    return int.from_bytes(drive.content[at : at + 8], "big")


def test_a_drive_that_comes_back_with_a_unit_and_no_record_of_it_is_asked_for_it() -> None:
    """A write was cut off when one drive had a record of it, and its units went with other drives."""
    made = case(3, 2, 5, places=1)
    store = made.open()
    store.put(0, OLD)
    on = [drive for drive, _, _ in store.places(0)]
    offsets = {offset for slot in (0, 1) for _, offset in records(store, made, slot)}
    for at in (0, 2, 3, 4):
        made.drives[on[at]].refuses_writes_at = offsets
    with pytest.raises(TooFewDrives, match="or what was written"):
        store.put(0, NEW)
    for drive in made.drives.values():
        drive.refuses_writes_at = set()
    # The unit of the write that is here is bad; the data unit and the other redundancy are away.
    slot = store.layout.unit_offset(store.layout.stripes[0][3].place, 0)
    made.drives[on[3]].unreadable.add(slot)
    again = made.open(without=[on[0], on[4]])
    assert again.recovery_state().lost == (0,)
    again.drive_back(on[4], made.drives[on[4]])
    assert again.recovery_state().lost == ()
    assert again.get(0) == NEW


def test_units_that_could_not_be_read_for_a_while_are_not_lost() -> None:
    made = case(3, 2, 5, places=1)
    store = made.open()
    content = bytes(range(256)) * 48
    store.put(0, content)
    for drive, offset, length in store.places(0)[:3]:
        made.drives[drive].unreadable.update(range(offset, offset + length, BLOCK_BYTES))
    with pytest.raises(StripeLost, match="3 units of stripe 0 are lost"):
        store.get(0)
    for blocks in made.drives.values():
        blocks.unreadable.clear()
    assert store.get(0) == content
    assert store.recovery_state().lost == ()
    store.rebuild()
    assert store.recovery_state().health is Health.HEALTHY
    assert store.scrub().repaired == 0


def test_a_drive_of_which_the_first_block_cannot_be_read_costs_no_more_than_the_unit() -> None:
    made = case(3, 2, 5, places=3)
    store = made.open()
    for number in range(3):
        store.put(number, OLD)
    drive, offset, _ = store.places(0)[0]
    made.drives[drive].unreadable.update([0, offset])
    assert store.get(0) == OLD
    assert store.statistics.unreadable == 1
    assert store.recovery_state().missing == ()
    # One that has stopped reads nothing at all.
    labels = (0, LABEL_BYTES, made.drives[drive].size_bytes - LABEL_BYTES)
    units = (offset for number in (1, 2) for name, offset, _ in store.places(number) if name == drive)
    made.drives[drive].unreadable.update([*labels, *units])
    store.scrub(repair=False)
    assert store.recovery_state().missing == (drive,)
