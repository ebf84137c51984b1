"""Groups of files that are read in sequence are read ahead: what is right stays right, within bounds, until it ends."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numpy as np
import pytest

from rackloop.clock import VirtualClock
from rackloop.seed import stream
from rackloop_models.local_erasure import GroupUnrecoverable, Layout, LocalStore, ReadMode, StoreInUse
from rackloop_models.local_erasure._read_ahead import Found, ReadAhead
from rackloop_models.local_erasure._streams import Stream
from tests.unit.models.faulty_drive import FaultyDrive, PartwiseDrive
from tests.unit.models.local_erasure_case import LAYOUT, SECTOR, opened, pattern, sectors_of, with_file

# Eight groups of ten sectors.
IN_FLIGHT = 80 * SECTOR


class HeldDrive:
    """Gives sectors that hold their numbers, once ``is_free`` is set; ``asked`` are the (first, count) of reads."""

    def __init__(self) -> None:
        self.is_free = Event()
        self.asked: list[tuple[int, int]] = []
        self.error: Exception | None = None
        self.counted = 0

    def read(self, first: int, count: int) -> Found | None:
        self.asked.append((first, count))
        assert self.is_free.wait(60)
        if self.error:
            raise self.error
        return Found(np.arange(first, first + count).reshape(-1, 1))  # type: ignore[arg-type]

    def count(self, found: Found) -> None:
        self.counted += len(found.rows)

    def ahead(self, most_sectors: int) -> ReadAhead:
        return ReadAhead(self.read, most_sectors, count=self.count)


def in_turn(store: LocalStore, sectors: int, each: int = 4) -> bytes:
    file = store.open("a")
    return b"".join(file.read(at * SECTOR, each * SECTOR) for at in range(0, sectors, each))


@pytest.mark.parametrize("mode", ReadMode)
def test_what_is_read_in_sequence_is_read_ahead(mode: ReadMode) -> None:
    content = pattern(400)
    _, store = with_file(content, in_flight_bytes=IN_FLIGHT, read_mode=mode)
    with store:
        assert in_turn(store, 400) == content
        assert store.statistics.ahead_sectors > 300


def test_requests_that_come_in_another_order_are_a_stream_too() -> None:
    content = pattern(400)
    _, store = with_file(content, in_flight_bytes=IN_FLIGHT)
    with store:
        file = store.open("a")
        found = {at: file.read(at * SECTOR, 4 * SECTOR) for pair in range(0, 400, 8) for at in (pair + 4, pair)}
        assert b"".join(found[at] for at in sorted(found)) == content
        assert store.statistics.ahead_sectors > 300


def test_reads_at_random_have_nothing_read_ahead() -> None:
    content = pattern(400)
    drive, store = with_file(content, in_flight_bytes=IN_FLIGHT, cache_bytes=0)
    with store:
        file, places = store.open("a"), list(range(0, 396, 8))
        stream(1).shuffle(places)
        for at in places:
            assert file.read(at * SECTOR, 4 * SECTOR) == content[at * SECTOR : (at + 4) * SECTOR]
        assert store.statistics.ahead_sectors == 0
        assert len(drive.asked("once")) == 4 * len(places)


def test_nothing_is_read_ahead_unless_that_is_wished_for() -> None:
    _, store = with_file(pattern(100))
    with store:
        in_turn(store, 100)
        assert store.statistics.ahead_sectors == 0


@pytest.mark.parametrize("seed", range(8))
def test_what_was_read_ahead_is_never_older_than_what_was_written(seed: int) -> None:
    chance = stream(seed, "ahead")
    content = bytearray(pattern(400, seed))
    cache_bytes = chance.choice((0, 40 * SECTOR, 1 << 20))
    _, store = with_file(bytes(content), in_flight_bytes=IN_FLIGHT, cache_bytes=cache_bytes)
    with store:
        file = store.open("a")
        for _ in range(3):
            for at in range(0, 400, 4):
                assert file.read(at * SECTOR, 4 * SECTOR) == content[at * SECTOR : (at + 4) * SECTOR]
                if chance.random() < 0.3:
                    offset = chance.randrange(at, min(at + 80, 397)) * SECTOR + chance.choice((0, 5))
                    data = chance.randbytes(chance.choice((1, SECTOR, 3 * SECTOR)))
                    file.write(offset, data, sync=chance.random() < 0.5)
                    content[offset : offset + len(data)] = data
        store.flush()
        assert file.read(0, 500 * SECTOR) == content


def test_a_file_that_is_cut_replaced_or_moved_ahead_of_its_reader_is_read_as_it_is() -> None:
    content = pattern(400)
    _, store = with_file(content, in_flight_bytes=IN_FLIGHT)
    with store:
        file = store.open("a")
        for at in range(0, 40, 4):
            file.read(at * SECTOR, 4 * SECTOR)
        file.truncate(44 * SECTOR)
        other = store.create("b")
        other.write(0, b"b" * (300 * SECTOR))
        store.flush()
        file.truncate(80 * SECTOR)
        assert file.read(40 * SECTOR, 4 * SECTOR) == content[40 * SECTOR : 44 * SECTOR]
        assert file.read(44 * SECTOR, 400 * SECTOR) == bytes(36 * SECTOR)


@pytest.mark.parametrize("kind", [FaultyDrive, PartwiseDrive])
def test_a_sector_ahead_that_cannot_be_read_fails_nobody_who_does_not_want_it(kind: type[FaultyDrive]) -> None:
    content = pattern(400)
    kept, store = with_file(content)
    gone, soft = sectors_of(store, 20), sectors_of(store, 15)[3]
    store.close()
    drive = kind(kept.size_bytes)
    drive.memory = kept.memory
    drive.hard, drive.soft = set(gone), {soft}
    with opened(drive, in_flight_bytes=IN_FLIGHT) as again:
        file = again.open("a")
        for at in range(0, 160, 4):
            assert file.read(at * SECTOR, 4 * SECTOR) == content[at * SECTOR : (at + 4) * SECTOR]
        assert again.statistics.decoded_sectors
        with pytest.raises(GroupUnrecoverable):
            file.read(160 * SECTOR, 4 * SECTOR)
        assert file.read(168 * SECTOR, 232 * SECTOR) == content[168 * SECTOR :]


def test_no_more_is_held_than_there_is_memory_for() -> None:
    drive = HeldDrive()
    ahead = drive.ahead(40)
    assert [ahead.want("one", first, 10) for first in range(0, 60, 10)] == [True] * 4 + [False] * 2
    assert ahead.held_sectors == 40
    # Another stream gets its share of what the first has furthest ahead.
    assert ahead.want("other", 1000, 10)
    assert ahead.held_sectors == 40
    assert ahead.firsts("one") == [0, 10, 20]
    for number in range(20):
        ahead.want(number, 2000 + 10 * number, 5)
        assert ahead.held_sectors <= 40
    drive.is_free.set()
    ahead.end()


def test_pieces_that_follow_each_other_are_read_as_one_and_taken_by_parts() -> None:
    drive = HeldDrive()
    ahead = drive.ahead(100)
    with ahead.giving_way():
        for first in (0, 10, 20, 40):
            ahead.want("one", first, 10)
    drive.is_free.set()
    found = ahead.take(12, 3)
    assert found is not None
    assert found.rows.ravel().tolist() == [12, 13, 14]
    assert ahead.take(8, 4) is None
    assert ahead.take(40, 10) is not None
    assert drive.asked == [(0, 30), (40, 10)]
    assert drive.counted == 40
    ahead.end()


def test_a_read_that_is_under_way_when_its_sectors_change_is_not_used() -> None:
    drive = HeldDrive()
    ahead = drive.ahead(100)
    ahead.want("one", 0, 10)
    ahead.forget(9, 1)
    drive.is_free.set()
    assert ahead.take(0, 4) is None
    ahead.end()


def test_any_error_ahead_is_left_to_who_reads_there() -> None:
    drive = HeldDrive()
    drive.error = OSError("the link is gone")
    drive.is_free.set()
    ahead = drive.ahead(100)
    ahead.want("one", 0, 10)
    assert ahead.take(0, 4) is None
    assert ahead.held_sectors == 0
    ahead.end()


def test_nothing_more_is_read_once_a_stream_ends() -> None:
    drive = HeldDrive()
    ahead = drive.ahead(100)
    with ahead.giving_way():
        ahead.want("one", 0, 10)
        ahead.want("other", 50, 10)
        ahead.give_up("one")
    drive.is_free.set()
    assert ahead.take(50, 10) is not None
    ahead.end()
    assert drive.asked == [(50, 10)]
    assert not ahead.want("other", 60, 10)


def test_who_waits_for_what_is_given_up_goes_on() -> None:
    drive = HeldDrive()
    ahead = drive.ahead(100)
    with ThreadPoolExecutor() as pool, ahead.giving_way():
        ahead.want("one", 0, 10)
        future = ahead.under_way(0, 1)
        assert future is not None
        waiter = pool.submit(future.cancelled)
        ahead.give_up("one")
        assert future.done()
        waiter.result()
    ahead.end()


def test_a_closed_file_and_a_closed_store_have_nothing_read_ahead() -> None:
    content = pattern(400)
    drive, store = with_file(content, in_flight_bytes=IN_FLIGHT)
    file = store.open("a")
    for at in range(0, 40, 4):
        file.read(at * SECTOR, 4 * SECTOR)
    file.close()
    assert file.read(40 * SECTOR, SECTOR) == content[40 * SECTOR : 41 * SECTOR], "it can be used all the same"
    store.close()
    asked = len(drive.requests)
    with LocalStore(drive, VirtualClock()):
        pass
    assert not {count for kind, _, count in drive.requests[asked:] if kind == "once"} & {10, 20, 40}


def test_an_owner_that_was_robbed_reads_nothing_ahead() -> None:
    content = pattern(400)
    drive, store = with_file(content, in_flight_bytes=IN_FLIGHT)
    with LocalStore(drive, VirtualClock(), take_over=True) as thief:
        thief.open("a").write(0, b"new", sync=True)
        with pytest.raises(StoreInUse):
            store.create("b").sync()
        in_turn(store, 400)
        assert store.statistics.ahead_sectors == 0


def test_a_stream_is_one_for_as_long_as_it_goes_on() -> None:
    reads = Stream()
    assert [reads.goes_on(at, at + 10) for at in (0, 20, 10, 30, 50, 40)] == [False, False, True, True, False, True]
    assert reads.tail <= 30
    assert not reads.goes_on(10_000, 10_010)
    assert not reads.goes_on(50, 60)


def test_layouts_whose_groups_are_larger_than_the_memory_are_read_all_the_same() -> None:
    content = pattern(200)
    _, store = with_file(content, Layout(40, 2, LAYOUT.field, replicas=1), in_flight_bytes=20 * SECTOR)
    with store:
        assert in_turn(store, 200) == content
        assert store.statistics.ahead_sectors == 0
