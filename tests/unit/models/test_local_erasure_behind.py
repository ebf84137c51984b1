"""Writes behind the caller: in order, within bounds, none lost, and nothing sure before it was flushed."""

from __future__ import annotations

from threading import Event

import pytest

from rackloop_models.local_erasure import Layout
from rackloop_models.local_erasure._write_behind import WriteBehind
from tests.unit.models.local_erasure_case import SECTOR, formatted, is_protected, on_drive, opened, pattern, sectors_of

IN_FLIGHT = 80 * SECTOR


class SlowDrive:
    """Takes writes once ``is_free`` is set, as long as ``error`` is none."""

    def __init__(self) -> None:
        self.is_free = Event()
        self.error: Exception | None = None
        self.written: list[tuple[int, bytes]] = []

    def write(self, offset: int, content: memoryview) -> None:
        assert self.is_free.wait(60)
        if self.error:
            raise self.error
        self.written.append((offset, bytes(content)))


def test_writes_are_carried_out_in_order_from_memory_of_their_own() -> None:
    drive = SlowDrive()
    behind = WriteBehind(drive.write, 100)
    content = bytearray(b"a" * 10)
    for offset in range(0, 100, 10):
        behind.write(offset, memoryview(content))
        content[:] = b"b" * 10
    drive.is_free.set()
    behind.drain()
    assert drive.written == [(at, (b"b" if at else b"a") * 10) for at in range(0, 100, 10)]
    behind.end()


def test_no_more_waits_than_there_is_memory_for() -> None:
    drive = SlowDrive()
    drive.is_free.set()
    behind = WriteBehind(drive.write, 25)
    for number in range(50):
        behind.write(number * 10, memoryview(bytes(10)))
        assert 10 * (number + 1 - len(drive.written)) <= 25
    behind.write(500, memoryview(bytes(60)))
    behind.drain()
    assert len(drive.written) == 51
    behind.end()


def test_a_write_that_fails_is_kept_and_tried_again_and_the_caller_is_told() -> None:
    drive = SlowDrive()
    drive.is_free.set()
    drive.error = OSError("the link is gone")
    behind = WriteBehind(drive.write, 100)
    behind.write(0, memoryview(b"one"))
    for ask in (behind.drain, lambda: behind.write(10, memoryview(b"two")), lambda: behind.settle(1, 1)):
        with pytest.raises(OSError, match="link is gone"):
            ask()
    behind.settle(50, 10)
    drive.error = None
    behind.write(10, memoryview(b"two"))
    behind.drain()
    assert drive.written == [(0, b"one"), (10, b"two")]
    behind.end()


def test_what_is_discarded_is_not_written() -> None:
    drive = SlowDrive()
    drive.is_free.set()
    drive.error = OSError("the store is another's")
    behind = WriteBehind(drive.write, 100)
    behind.write(0, memoryview(b"one"))
    with pytest.raises(OSError, match="another"):
        behind.drain()
    behind.discard()
    drive.error = None
    behind.drain()
    assert drive.written == []
    behind.end()


def test_a_group_that_was_let_go_is_read_as_it_was_written() -> None:
    drive = formatted(Layout(8, 2))
    with opened(drive, cache_bytes=0, in_flight_bytes=IN_FLIGHT) as store:
        file = store.create("a")
        for number in range(30):
            content = pattern(8, number)
            file.write(number * 8 * SECTOR, content)
            assert file.read(number * 8 * SECTOR, 8 * SECTOR) == content
        store.flush()
        assert all(is_protected(drive, store, group) for group in range(30))


def test_what_was_synced_is_on_the_drive() -> None:
    drive = formatted(Layout(8, 2))
    with opened(drive, in_flight_bytes=IN_FLIGHT) as store:
        content = pattern(80)
        file = store.create("a")
        file.write(0, content)
        file.sync()
        assert b"".join(on_drive(drive, sectors_of(store, group)[:8]) for group in range(10)) == content


def test_groups_that_are_overwritten_in_sequence_are_recorded_once() -> None:
    drive = formatted(Layout(8, 2))
    with opened(drive) as store:
        store.create("a").write(0, pattern(50 * 8))
    with opened(drive, in_flight_bytes=IN_FLIGHT) as store:
        file = store.open("a")
        for group in range(50):
            file.write(group * 8 * SECTOR, pattern(8, group))
        flushes = drive.requests.count(("flush", 0, 0))
        assert flushes == 1
        assert store.stat("a").unprotected_groups == 0
    with opened(drive) as store:
        assert store.statistics.recovered_groups == 0
        assert store.open("a").read(49 * 8 * SECTOR, 8 * SECTOR) == pattern(8, 49)


def test_who_asks_for_protection_without_need_has_the_drive_flush_nothing() -> None:
    with opened(drive := formatted(Layout(8, 2))) as store:
        file = store.create("a")
        file.write(0, pattern(80))
        file.sync()
        drive.requests.clear()
        assert store.protect(at_most_groups=4) == 0
        assert drive.requests == []
