"""Scrubbing: what cannot be read, what is silently wrong, what is unprotected, and what nobody can mend."""

from __future__ import annotations

import pytest

from rackloop_models.erasure import GF16
from rackloop_models.local_erasure import GroupName, Layout, LocalStore
from tests.unit.models.faulty_drive import FaultyDrive
from tests.unit.models.local_erasure_case import (
    LAYOUT,
    SECTOR,
    formatted,
    is_protected,
    on_drive,
    opened,
    pattern,
    sectors_of,
    with_file,
)


def everything(drive: FaultyDrive, store: LocalStore) -> bytes:
    return b"".join(on_drive(drive, sectors_of(store, group)) for group in range(store.stat("a").groups))


def test_a_well_store_is_clean_and_all_of_it_was_read() -> None:
    drive, store = with_file(pattern(20))
    with store:
        seen: list[tuple[int, int]] = []
        report = store.scrub(lambda done, total: seen.append((done, total)))
        assert report.is_clean
        assert report.unreadable_sectors == report.repaired_sectors == report.metadata_repairs == 0
        read = set(drive.asked("once"))
        assert read >= {place // SECTOR for places in store.metadata_places() for place in places}
        assert read >= {sector for group in range(3) for sector in sectors_of(store, group)}
        assert not drive.asked("retry")
        assert report.checked_sectors == sum(len(places) for places in store.metadata_places()[1:]) + 20 + 6
        assert [done for done, _ in seen] == sorted(done for done, _ in seen)
        assert len(seen) == 3


@pytest.mark.parametrize("layout", [LAYOUT, Layout(8, 2, GF16, 3)], ids=["GF8", "GF16"])
def test_unreadable_sectors_are_written_again(layout: Layout) -> None:
    content = pattern(20)
    drive, store = with_file(content, layout)
    with store:
        before = everything(drive, store)
        groups = [sectors_of(store, group) for group in range(3)]
        drive.hard = {groups[0][0], groups[0][9], groups[1][3], groups[2][4]}
        drive.soft = {groups[1][4]}
        for sector in drive.hard | drive.soft:
            drive.memory.write(sector * SECTOR, bytes(SECTOR))
        report = store.scrub()
        assert report.is_clean
        assert (report.unreadable_sectors, report.repaired_sectors) == (5, 5)
        assert not drive.hard
        assert not drive.soft
        assert everything(drive, store) == before


def test_more_soft_failures_than_redundancy_are_retried() -> None:
    content = pattern(8)
    drive, store = with_file(content)
    with store:
        drive.soft = set(sectors_of(store, 0)[:5])
        report = store.scrub()
        assert report.is_clean
        assert report.repaired_sectors == 5
        assert store.statistics.retried_sectors == 3
        assert store.open("a").read(0, len(content)) == content


def test_what_cannot_be_mended_is_named() -> None:
    drive, store = with_file(pattern(20))
    with store:
        drive.hard = set(sectors_of(store, 1)[2:5])
        report = store.scrub()
        assert not report.is_clean
        assert report.unrecoverable == [GroupName("a", 1)]
        assert report.repaired_sectors == 0
        assert len(drive.hard) == 3
        drive.hard.clear()
        assert store.scrub().is_clean


@pytest.mark.parametrize("layout", [LAYOUT, Layout(8, 2, GF16), Layout(8, 3)], ids=["GF8", "GF16", "m=3"])
@pytest.mark.parametrize("position", [0, 4, 7, 8, 9])
def test_one_sector_that_is_silently_wrong_is_found_and_corrected(layout: Layout, position: int) -> None:
    drive, store = with_file(pattern(20), layout)
    with store:
        before = everything(drive, store)
        # What a reader has in the cache is as wrong as what the drive carries.
        drive.corrupt(sectors_of(store, 1)[position])
        store.open("a").read(9 * SECTOR, SECTOR)
        store.open("a").read(12 * SECTOR, SECTOR)
        report = store.scrub()
        assert report.is_clean
        assert report.corrected_sectors == 1
        assert everything(drive, store) == before
        assert store.open("a").read(0, 20 * SECTOR) == pattern(20)


def test_reads_do_not_notice_silent_corruption_and_the_store_says_so() -> None:
    drive, store = with_file(pattern(8))
    with store:
        assert store.covers_silent_corruption is False
        drive.corrupt(sectors_of(store, 0)[1])
        assert store.open("a").read(0, 8 * SECTOR) != pattern(8)


@pytest.mark.parametrize(("m", "wrong"), [(1, [0]), (2, [0, 3]), (3, [1, 2, 9])])
def test_what_cannot_be_told_apart_is_reported_and_left_alone(m: int, wrong: list[int]) -> None:
    drive, store = with_file(pattern(8), Layout(8, m))
    with store:
        for position in wrong:
            drive.corrupt(sectors_of(store, 0)[position], bits=0x11 + position)
        before = everything(drive, store)
        report = store.scrub()
        assert report.mismatches == [GroupName("a", 0)]
        assert report.corrected_sectors == 0
        assert everything(drive, store) == before


def test_a_wrong_sector_does_not_spoil_the_repair_of_another() -> None:
    drive, store = with_file(pattern(8), Layout(8, 3))
    with store:
        before = everything(drive, store)
        group = sectors_of(store, 0)
        drive.corrupt(group[2])
        drive.soft = {group[5]}
        report = store.scrub()
        assert report.is_clean
        assert (report.repaired_sectors, report.corrected_sectors) == (1, 1)
        assert everything(drive, store) == before


@pytest.mark.parametrize("m", [2, 3])
def test_a_wrong_sector_beside_a_lost_one_is_not_guessed_at(m: int) -> None:
    drive, store = with_file(pattern(8), Layout(8, m))
    with store:
        group = sectors_of(store, 0)
        drive.corrupt(group[2])
        drive.hard = {group[5]}
        report = store.scrub()
        assert report.mismatches == [GroupName("a", 0)]
        assert report.corrected_sectors == 0
        assert drive.hard == {group[5]}


def test_unprotected_groups_are_protected() -> None:
    drive, store = with_file(pattern(20))
    with store:
        store.open("a").write(0, b"x", sync=True)
        store.open("a").write(19 * SECTOR, b"x", sync=True)
        store.open("a").write(9 * SECTOR, b"not on the drive yet")
        report = store.scrub()
        assert report.is_clean
        assert report.protected_groups == 2
        assert all(is_protected(drive, store, group) for group in range(3))


def test_an_unprotected_group_that_cannot_be_read_is_unrecoverable_until_it_can() -> None:
    drive, store = with_file(pattern(8))
    store.open("a").write(0, b"x", sync=True)
    drive.hard = {sectors_of(store, 0)[3]}
    with opened(drive, take_over=True) as again:
        report = again.scrub()
        assert report.unrecoverable == [GroupName("a", 0)]
        assert report.unprotected == [GroupName("a", 0)]
        drive.soft, drive.hard = drive.hard, set()
        report = again.scrub()
        assert report.is_clean
        assert report.protected_groups == 1


def test_metadata_replicas_are_repaired() -> None:
    drive, store = with_file(pattern(3))
    with store:
        places = [[place // SECTOR for place in replicas] for replicas in store.metadata_places()]
        for number, replicas in enumerate(places):
            drive.corrupt(replicas[number % 2])
        report = store.scrub()
        assert report.is_clean
        assert report.metadata_repairs == len(places)
        assert all(len({on_drive(drive, [sector]) for sector in replicas}) == 1 for replicas in places[:2])
        assert store.scrub().metadata_repairs == 0


def test_metadata_that_the_drive_has_lost_are_written_from_memory() -> None:
    drive, store = with_file(pattern(3))
    with store:
        places = [[place // SECTOR for place in replicas] for replicas in store.metadata_places()]
        for replicas in places[1:]:
            for sector in replicas:
                drive.corrupt(sector)
        assert store.scrub(repair=False).metadata_lost == len(places) - 1
        assert store.scrub().is_clean
        assert store.scrub().metadata_repairs == 0
    with opened(drive) as again:
        assert again.open("a").read(0, 3 * SECTOR) == pattern(3)


def test_more_metadata_than_the_journal_holds_are_written_from_memory() -> None:
    drive = formatted(Layout(8, 2, replicas=1), files=90)
    with opened(drive) as store:
        for number in range(80):
            store.create(f"f{number}").write(0, b"%d" % number)
        store.flush()
        for (place,) in store.metadata_places()[1:]:
            drive.corrupt(place // SECTOR)
        assert store.scrub().is_clean
    with opened(drive) as again:
        assert [again.open(f"f{number}").read(0, 9) for number in range(80)] == [b"%d" % number for number in range(80)]


def test_without_repair_nothing_is_written() -> None:
    drive, store = with_file(pattern(20))
    store.open("a").write(0, b"x", sync=True)
    store.open("a").write(19 * SECTOR, b"not on the drive yet")
    drive.soft = {sectors_of(store, 1)[2], store.metadata_places()[2][0] // SECTOR}
    drive.requests.clear()
    report = store.scrub(repair=False)
    assert not drive.asked("write")
    assert report.unprotected == [GroupName("a", 0), GroupName("a", 2)]
    assert report.unreadable_sectors == 1
    assert report.repaired_sectors == 0


def test_files_may_come_and_go_meanwhile() -> None:
    _, store = with_file(pattern(30))
    with store:
        store.create("b").write(0, pattern(9))

        def disturb(done: int, total: int) -> None:
            assert done <= total
            if "a" in store.names():
                store.remove("a")
                store.create("c").write(0, pattern(40))

        assert store.scrub(disturb).is_clean
