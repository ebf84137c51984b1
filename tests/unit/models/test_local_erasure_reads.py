"""Reads of sectors that fail: decoded, with what is cached, and retried only when that is not enough."""

from __future__ import annotations

import errno
from itertools import combinations

import pytest

from rackloop.abilities.blocks import IoFailed
from rackloop.clock import VirtualClock
from rackloop_models.erasure import GF16, UnrecoverableError
from rackloop_models.local_erasure import GroupUnrecoverable, Layout, LocalStore, ReadMode
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


@pytest.mark.parametrize("layout", [LAYOUT, Layout(8, 2, GF16)], ids=["GF8", "GF16"])
def test_a_sector_that_fails_softly_is_decoded_without_a_retry(layout: Layout) -> None:
    content = pattern(20)
    drive, store = with_file(content, layout)
    with store:
        drive.soft = {sectors_of(store, 0)[3], sectors_of(store, 1)[0], sectors_of(store, 1)[7]}
        assert store.open("a").read(0, len(content)) == content
        assert drive.asked("retry") == []
        statistics = store.statistics
        assert (statistics.degraded_reads, statistics.decodes, statistics.decoded_sectors) == (2, 2, 3)
        assert (statistics.failed_sectors, statistics.retried_sectors) == (3, 0)


def test_sectors_in_the_cache_are_not_read_again_to_decode_another() -> None:
    content = pattern(8)
    drive, store = with_file(content)
    with store:
        group = sectors_of(store, 0)
        file = store.open("a")
        for row in range(3):
            file.read(row * SECTOR, SECTOR)
        drive.soft = {group[4]}
        drive.requests.clear()
        assert file.read(4 * SECTOR, SECTOR) == content[4 * SECTOR : 5 * SECTOR]
        # What lies behind it, the redundancy too, comes by the head first.
        assert drive.asked("once") == [group[4], group[5], group[6], group[7], group[8], group[9], group[3]]
        drive.requests.clear()
        assert file.read(0, len(content)) == content
        assert drive.requests == []


def test_what_a_group_has_grown_by_is_not_harmed_by_decoding() -> None:
    drive, store = with_file(pattern(4))
    with store:
        file, new = store.open("a"), pattern(3, seed=2)
        file.write(4 * SECTOR, new)
        drive.soft = {sectors_of(store, 0)[1]}
        assert file.read(0, 4 * SECTOR) == pattern(4)
        assert store.statistics.decodes == 1
        assert file.read(0, 7 * SECTOR) == pattern(4) + new


def test_groups_are_let_go_when_there_are_too_many() -> None:
    content = pattern(80)
    drive, store = with_file(content, cache_bytes=50 * SECTOR)
    with store:
        file = store.open("a")
        for row in [*range(0, 80, 8), 0]:
            assert file.read(row * SECTOR, SECTOR) == content[row * SECTOR : (row + 1) * SECTOR]
        assert drive.asked("once").count(sectors_of(store, 0)[0]) == 2
        # What is new of them is on the drive then, redundancy and all.
        for row in range(1, 80, 8):
            file.write(row * SECTOR, b"!")
        assert on_drive(drive, sectors_of(store, 0)[1:2])[:1] == b"!"
        assert is_protected(drive, store, 0)
    drive, store = with_file(content)
    with store:
        file = store.open("a")
        for row in [*range(0, 80, 8), 0]:
            file.read(row * SECTOR, SECTOR)
        assert drive.asked("once").count(sectors_of(store, 0)[0]) == 1


def test_only_as_many_sectors_are_retried_as_decoding_lacks() -> None:
    content = pattern(8)
    drive, store = with_file(content)
    with store:
        group = sectors_of(store, 0)
        drive.soft = {group[0], group[2], group[5], group[9]}
        assert store.open("a").read(0, len(content)) == content
        assert drive.asked("retry") == [group[0], group[2]]
        assert store.statistics.retried_sectors == 2


def test_what_was_not_asked_for_is_retried_last() -> None:
    content = pattern(8)
    drive, store = with_file(content)
    with store:
        group = sectors_of(store, 0)
        drive.soft = {group[0], group[2], group[6]}
        assert store.open("a").read(6 * SECTOR, SECTOR) == content[6 * SECTOR : 7 * SECTOR]
        assert drive.asked("retry") == [group[6]]


def test_a_group_that_cannot_be_read_by_any_means_is_named() -> None:
    content = pattern(20)
    drive, store = with_file(content)
    with store:
        group = sectors_of(store, 1)
        drive.hard = {group[1], group[4], group[8]}
        with pytest.raises(GroupUnrecoverable, match="file 'a', group 1: 3 sectors cannot be read") as caught:
            store.open("a").read(0, len(content))
        error = caught.value
        assert isinstance(error, UnrecoverableError)
        assert (error.file, error.group, error.m) == ("a", 1, 2)
        assert error.sectors == (group[1], group[4], group[8])
        assert error.erased == (1, 4, 8)
        # The others are not harmed, nor are those of the group that can be read.
        assert store.open("a").read(0, 8 * SECTOR) == content[: 8 * SECTOR]
        assert store.open("a").read(8 * SECTOR, SECTOR) == content[8 * SECTOR : 9 * SECTOR]


def test_a_group_that_is_well_again_is_read() -> None:
    content = pattern(8)
    drive, store = with_file(content)
    with store:
        drive.hard = set(sectors_of(store, 0)[:3])
        with pytest.raises(GroupUnrecoverable):
            store.open("a").read(0, len(content))
        drive.hard.clear()
        assert store.open("a").read(0, len(content)) == content


@pytest.mark.parametrize("rows", [4, 3, 1])
def test_every_pattern_of_losses_up_to_m_is_decoded_and_one_more_is_loud(rows: int) -> None:
    layout = Layout(4, 2)
    content = pattern(rows)
    for count in range(1, 4):
        for lost in combinations(range(rows + 2), count):
            drive, store = with_file(content, layout)
            drive.hard = {sectors_of(store, 0)[position] for position in lost}
            file = store.open("a")
            if count <= layout.m or all(position >= rows for position in lost):
                assert file.read(0, len(content)) == content
            else:
                with pytest.raises(GroupUnrecoverable):
                    file.read(0, len(content))


def test_an_unprotected_group_goes_straight_to_retries() -> None:
    content = bytearray(pattern(8))
    drive, store = with_file(bytes(content))
    new = pattern(1, seed=2)
    store.open("a").write(0, new, sync=True)
    content[:SECTOR] = new
    # As after a crash: nothing of the group is in the cache.
    again = opened(drive, take_over=True)
    assert again.stat("a").unprotected_groups == 1
    drive.soft = {sectors_of(again, 0)[3]}
    assert again.open("a").read(0, len(content)) == bytes(content)
    assert drive.asked("once") == []
    assert again.statistics.decodes == 0
    once = opened(drive, take_over=True)
    for rows in (1, 8):
        assert once.open("a").read(0, rows * SECTOR) == bytes(content[: rows * SECTOR])
    assert drive.asked("once") == []
    drive.hard = {sectors_of(again, 0)[4]}
    third = opened(drive, take_over=True)
    with pytest.raises(GroupUnrecoverable, match="redundancy is not up to date"):
        third.open("a").read(0, len(content))


def test_a_drive_may_be_told_to_retry_at_once() -> None:
    content = pattern(8)
    drive, store = with_file(content, read_mode=ReadMode.RETRY)
    with store:
        drive.soft = {sectors_of(store, 0)[1]}
        assert store.open("a").read(0, len(content)) == content
        assert drive.asked("once") == []
        assert store.statistics.decodes == 0
        drive.hard = {sectors_of(store, 0)[1]}
        assert store.open("a").read(0, len(content)) == content
        assert store.statistics.decodes == 1


def test_plain_blocks_always_retry_and_are_decoded_when_that_fails() -> None:
    class Plain:
        def __init__(self) -> None:
            self.size_bytes = drive.size_bytes
            self.read, self.write, self.flush = drive.read, drive.write, drive.flush

    content = pattern(8)
    drive, store = with_file(content)
    drive.hard = {sectors_of(store, 0)[2]}
    store.close()
    drive.requests.clear()
    with LocalStore(Plain(), VirtualClock()) as plain:
        assert plain.open("a").read(0, len(content)) == content
        assert plain.statistics.decodes == 1
    assert drive.asked("once") == []


@pytest.mark.parametrize("number", [errno.EREMOTEIO, errno.ENODATA, errno.EILSEQ])
def test_other_words_for_unreadable_are_understood(number: int) -> None:
    content = pattern(8)
    drive, store = with_file(content)
    with store:
        drive.errno = number
        drive.soft = {sectors_of(store, 0)[2]}
        assert store.open("a").read(0, len(content)) == content


def test_an_error_of_the_lab_is_no_unreadable_sector() -> None:
    drive, store = with_file(pattern(8))
    with store:
        drive.errno = errno.ENOTCONN
        drive.hard = {sectors_of(store, 0)[2]}
        with pytest.raises(IoFailed):
            store.open("a").read(0, SECTOR * 8)
        drive.hard.clear()


def test_large_reads_are_large_requests_and_failures_are_found_by_halving() -> None:
    layout = Layout(1500, 3, GF16)
    content = pattern(1500)
    drive = formatted(layout, size_bytes=16 << 20)
    with LocalStore(drive, VirtualClock()) as store:
        store.create("a").write(0, content)
    with opened(drive) as store:
        group = sectors_of(store, 0)
        assert store.open("a").read(0, len(content)) == content
        assert drive.requests == [("once", group[0], 1024), ("once", group[1024], 476)]
        drive.requests.clear()
        drive.soft = {group[1200]}
        assert store.open("a").read(0, len(content)) == content
        # 1024 good ones are not read again; the others are halved 9 times, then there is the redundancy.
        assert len(drive.requests) <= 2 + 2 * 9 + 1
        assert drive.asked("once").count(group[0]) == 1
