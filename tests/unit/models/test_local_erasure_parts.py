"""Reads of a drive that says which parts of a range fail: small requests while sectors fail, large ones before."""

from __future__ import annotations

import pytest

from rackloop.abilities.blocks import PartwiseBlocks, PartwisePart, part_of
from rackloop.clock import VirtualClock
from rackloop.seed import stream
from rackloop_models.local_erasure import Layout, LocalStore, format_drive
from tests.unit.models.faulty_drive import PartwiseDrive
from tests.unit.models.local_erasure_case import SECTOR, pattern, sectors_of

LAYOUT = Layout(60, 6)
DRIVE_BYTES = 8 << 20


def stored(content: bytes) -> tuple[PartwiseDrive, LocalStore]:
    """A store without a cache that has the file ``a``, of which nothing has been asked since."""
    drive = PartwiseDrive(DRIVE_BYTES)
    format_drive(drive, LAYOUT, files=8)
    with LocalStore(drive, VirtualClock()) as store:
        store.create("a").write(0, content)
    store = LocalStore(drive, VirtualClock(), cache_bytes=0)
    drive.requests.clear()
    return drive, store


def test_a_drive_whose_sectors_do_not_fail_is_asked_for_much_at_once() -> None:
    content = pattern(180)
    drive, store = stored(content)
    with store:
        assert store.open("a").read(0, len(content)) == content
        assert drive.asked("part") == []
        assert len(drive.requests) == 3


def test_what_shares_a_part_with_a_failed_sector_is_decoded_with_it() -> None:
    content = pattern(180)
    drive, store = stored(content)
    with store:
        group = sectors_of(store, 1)
        drive.soft = {group[5]}
        assert store.open("a").read(0, len(content)) == content
        # Only the part that it is in, of four sectors, was given up; nothing was read one by one or retried.
        assert store.statistics.decoded_sectors == 4
        assert all(count > 1 for kind, _, count in drive.requests if kind == "part")
        assert drive.asked("retry") == []


def test_of_more_than_there_is_redundancy_for_so_many_are_looked_at_one_by_one_that_the_rest_can_be_decoded() -> None:
    content = pattern(180)
    drive, store = stored(content)
    with store:
        group = sectors_of(store, 1)
        drive.soft = {group[5], group[21], group[42]}
        assert store.open("a").read(0, len(content)) == content
        # Two parts of three: a look costs a drive its way round.
        assert [first for kind, first, count in drive.requests if (kind, count) == ("part", 1)] == [
            *group[4:8],
            *group[20:24],
        ]
        assert store.statistics.decoded_sectors == 6
        assert drive.asked("retry") == []


def test_redundancy_that_shares_a_part_with_a_failed_sector_is_done_without_where_the_rest_suffices() -> None:
    content = pattern(180)
    drive, store = stored(content)
    with store:
        group = sectors_of(store, 1)
        drive.soft = {group[59], group[64]}
        assert store.open("a").read(60 * SECTOR, 60 * SECTOR) == content[60 * SECTOR : 120 * SECTOR]
        assert not [count for kind, _, count in drive.requests if kind == "part" and count == 1]
        assert drive.asked("retry") == []


def test_what_failed_behind_the_sectors_asked_for_is_decoded_with_them_for_who_reads_on() -> None:
    content = pattern(60)
    drive = PartwiseDrive(DRIVE_BYTES)
    format_drive(drive, LAYOUT, files=8)
    with LocalStore(drive, VirtualClock()) as store:
        store.create("a").write(0, content)
    with LocalStore(drive, VirtualClock()) as store:
        group = sectors_of(store, 0)
        drive.soft = {group[5], group[42]}
        file = store.open("a")
        assert file.read(0, 20 * SECTOR) == content[: 20 * SECTOR]
        drive.requests.clear()
        assert file.read(20 * SECTOR, 40 * SECTOR) == content[20 * SECTOR :]
        assert drive.requests == []


def test_requests_are_large_again_once_nothing_failed_for_long() -> None:
    content = pattern(360)
    drive, store = stored(content)
    with store:
        file = store.open("a")
        drive.soft = {sectors_of(store, 0)[0]}
        assert file.read(0, SECTOR) == content[:SECTOR]
        drive.soft.clear()
        for _ in range(4096 // 360 + 1):
            assert file.read(0, len(content)) == content
        drive.requests.clear()
        assert file.read(0, len(content)) == content
        assert drive.asked("part") == []


@pytest.mark.parametrize("seed", range(6))
def test_whatever_fails_and_whatever_is_read_every_byte_is_right(seed: int) -> None:
    chance = stream(seed, "parts")
    content = pattern(400, seed)
    drive, store = stored(content)
    with store:
        file = store.open("a")
        groups = [sectors_of(store, group) for group in range(7)]
        for _ in range(40):
            drive.soft = {sector for group in groups for sector in chance.sample(group, chance.randrange(7))}
            offset = chance.randrange(len(content))
            length = chance.randrange(1, 130 * SECTOR)
            assert file.read(offset, length) == content[offset : offset + length]
        assert drive.asked("retry") == []


def test_a_scrub_repairs_the_sectors_that_fail_and_no_other() -> None:
    content = pattern(180)
    drive, store = stored(content)
    with store:
        group = sectors_of(store, 1)
        drive.hard = {group[5], group[6], group[30], group[62]}
        report = store.scrub()
        assert (report.unreadable_sectors, report.repaired_sectors, report.is_clean) == (4, 4, True)
        assert drive.hard == set()
        assert store.open("a").read(0, len(content)) == content


def test_a_stretch_of_such_a_drive_says_so_too() -> None:
    drive = PartwiseDrive(64 * SECTOR)
    drive.memory.content[:] = pattern(64)
    part = part_of(drive, 8 * SECTOR, 32 * SECTOR)
    assert isinstance(part, PartwisePart)
    assert isinstance(part, PartwiseBlocks)
    drive.soft = {13}
    buffer = bytearray(8 * SECTOR)
    assert part.read_parts_failing_fast(0, buffer, 2 * SECTOR) == [2]
    assert buffer[: 4 * SECTOR] == drive.memory.content[8 * SECTOR : 12 * SECTOR]
    with pytest.raises(ValueError, match="not within"):
        part.read_parts_failing_fast(31 * SECTOR, buffer, SECTOR)
