"""The power is cut after each write and flush in turn: an object has what it had or what was written, and keeps it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import combinations

import pytest

from rackloop.abilities.blocks import BLOCK_BYTES
from rackloop.seed import stream
from rackloop_models.rack_erasure import Health, NoStripedStore, NoSuchObject, StripedStore, TooFewDrives
from tests.unit.models.striped_drives import Case, Drive, PowerCut, case

Content = bytes | None
OLD, NEW = b"old" * 1000, b"new" * 2000


def content(store: StripedStore) -> Content:
    try:
        return store.get(0)
    except NoSuchObject:
        return None


def put(store: StripedStore, _made: Case) -> None:
    store.put(0, NEW)


def update(store: StripedStore, _made: Case) -> None:
    store.update(0, 0, NEW)


def remove(store: StripedStore, _made: Case) -> None:
    store.remove(0)


def put_without_a_drive(store: StripedStore, made: Case) -> None:
    made.drives["d0"].is_dead = True
    store.put(0, NEW)


def rebuild(store: StripedStore, made: Case) -> None:
    made.drives["d1"].is_dead = True
    store.put(0, NEW)
    made.drives["d1"].is_dead = False
    store.drive_back("d1", made.drives["d1"])
    store.rebuild()


def replace(store: StripedStore, made: Case) -> None:
    spare = Drive(made.drives["d2"].size_bytes, made.power)
    made.drives["x"] = spare
    store.replace("d2", "x", spare)
    store.put(0, NEW)
    store.rebuild()


Way = Callable[[StripedStore, Case], None]
WAYS: list[Way] = [put, update, remove, put_without_a_drive, rebuild, replace]
AFTER: dict[Way, Content] = {way: None if way is remove else NEW for way in WAYS}


def member_drives(made: Case) -> Case:
    """The case without drives that were replaced, or did not come in; a spare that half came in is put in again."""
    for out in ([], ["x"], ["d2"], ["d2", "x"]):
        found = {name: drive for name, drive in made.drives.items() if name not in out}
        now = Case(made.code, found, made.servers, made.power)
        try:
            store = now.open()
        except NoStripedStore:
            continue
        if out == ["d2", "x"]:
            store.replace("x", "x", made.drives["x"])
            found["x"] = made.drives["x"]
        return now
    raise AssertionError("the store is gone")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(3))
def test_what_is_found_is_old_or_new_and_stays_that(way: Way, seed: int) -> None:
    cut, ended = 0, False
    while not ended:
        made = case(2, 1, 3, places=1)
        store = made.open()
        store.put(0, OLD)
        made.power.left = cut
        try:
            way(store, made)
            ended = True
        except PowerCut:
            pass
        made.cut_power(stream(seed, "cut", str(cut)))
        for drive in made.drives.values():
            drive.is_dead = False
        now = member_drives(made)
        settled = now.open()
        found = content(settled)
        assert found in ({AFTER[way]} if ended else {OLD, AFTER[way]}), f"after {cut}"
        if way in (put, update, remove):
            assert settled.recovery_state().health is Health.HEALTHY
        else:
            settled.rebuild()
        # It is the same whoever is there next time.
        for missing in (*combinations(now.drives, 1), ()):
            assert content(now.open(without=missing)) == found, f"after {cut}, without {missing}"
        again = now.open()
        again.rebuild()
        assert again.recovery_state().health is Health.HEALTHY
        assert not again.scrub().repaired
        cut += 1
    assert cut > 8


@pytest.mark.parametrize("seed", range(4))
def test_what_was_read_without_a_drive_is_not_undone_by_what_only_that_drive_has(seed: int) -> None:
    for cut in range(40):
        for missing in ("d0", "d1", "d2"):
            made = case(2, 1, 3, places=1)
            store = made.open()
            store.put(0, OLD)
            made.power.left = cut
            try:
                store.put(0, NEW)
            except PowerCut:
                pass
            else:
                return
            made.cut_power(stream(seed, "cut", str(cut)))
            read = made.open(without=[missing]).get(0)
            assert read in (OLD, NEW)
            # Also when that drive is in again.
            for _ in range(2):
                again = made.open()
                assert again.get(0) == read
                again.rebuild()
            back = made.open(without=[missing])
            back.drive_back(missing, made.drives[missing])
            assert back.get(0) == read
            back.rebuild()
            assert back.recovery_state().health is Health.HEALTHY


def test_a_first_write_that_was_cut_leaves_nothing_or_all() -> None:
    seen = set()
    for cut in range(60):
        made = case(3, 2, 5, places=1)
        store = made.open()
        made.power.left = cut
        with suppress(PowerCut):
            store.put(0, NEW)
        made.cut_power(stream(cut, "cut"))
        found = content(made.open())
        assert found in (None, NEW)
        seen.add(found)
        made.open().put(0, OLD)
        assert made.open().get(0) == OLD
    assert seen == {None, NEW}


def test_what_is_there_is_not_written_over_after_a_write_that_came_to_nothing() -> None:
    for cut in range(40):
        made = case(2, 1, 3, places=1)
        store = made.open()
        store.put(0, OLD)
        record = store.layout.record_offset(0, 0)
        for drive in made.drives.values():
            drive.refuses_writes_at = {record, record + BLOCK_BYTES}
        with pytest.raises(TooFewDrives, match="or what was written"):
            store.put(0, NEW)
        for name, drive in made.drives.items():
            drive.refuses_writes_at = set()
            store.drive_back(name, drive)
        assert store.get(0) == OLD
        assert store.statistics.undone_writes == 1
        made.power.left = cut
        with suppress(PowerCut):
            store.put(0, NEW)
        made.cut_power(stream(cut, "cut"))
        assert made.open().get(0) in (OLD, NEW)


def test_labels_survive_a_cut_while_they_are_written() -> None:
    for cut in range(30):
        made = case(2, 1, 4, places=2)
        store = made.open()
        store.put(0, OLD)
        made.drives["d3"].is_dead = True
        made.power.left = cut
        with suppress(PowerCut):
            store.put(1, NEW)
        made.cut_power(stream(cut, "cut"))
        again = made.open()
        assert again.get(0) == OLD
        assert len(again.recovery_state().drives) == 4


def test_a_torn_unit_is_not_taken_for_a_whole_one() -> None:
    made = case(2, 1, 3, places=1, unit_bytes=4 * BLOCK_BYTES)
    store = made.open()
    store.put(0, OLD * 8)
    (drive, offset, length) = store.places(0)[0]
    # Its last block is that of another write.
    made.drives[drive].damage(offset + length - BLOCK_BYTES, BLOCK_BYTES)
    assert store.get(0) == OLD * 8
    assert store.statistics.damaged == 1
