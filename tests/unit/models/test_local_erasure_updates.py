"""Redundancy as files grow and change: progressively, directly, by difference, and in the background."""

from __future__ import annotations

import pytest

from rackloop_models.erasure import GF16
from rackloop_models.local_erasure import Layout, UpdateMethod
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

WIDE = Layout(20, 2)


@pytest.mark.parametrize("layout", [LAYOUT, Layout(8, 2, GF16)], ids=["GF8", "GF16"])
def test_a_group_that_grows_keeps_its_redundancy_behind_it_and_reads_nothing(layout: Layout) -> None:
    drive = formatted(layout)
    with opened(drive) as store:
        file = store.create("a")
        content = pattern(8)
        for first, stop in ((0, 3), (3, 4), (4, 8)):
            file.write(first * SECTOR, content[first * SECTOR : stop * SECTOR])
            file.sync()
            group = sectors_of(store, 0)
            assert len(group) == stop + 2
            assert is_protected(drive, store, 0)
            assert on_drive(drive, group[:stop]) == content[: stop * SECTOR]
        assert store.statistics.progressive_updates == 2
        assert store.statistics.read_sectors == 0


def test_unaligned_writes_end_up_as_one_codeword() -> None:
    drive = formatted()
    content = pattern(5)[:-700]
    with opened(drive) as store:
        file = store.create("a")
        for at in range(0, len(content), 1_777):
            file.write(at, content[at : at + 1_777])
            if at % 5 == 0:
                file.sync()
        store.flush()
        assert file.read(0, len(content)) == content
        assert is_protected(drive, store, 0)


@pytest.mark.parametrize("changed", range(1, 20))
def test_the_method_that_reads_fewer_sectors_is_chosen(changed: int) -> None:
    content = pattern(20)
    drive, store = with_file(content, WIDE)
    with store:
        store.open("a").write(0, pattern(changed, seed=2))
        store.flush()
        statistics = store.statistics
        direct, indirect = 20 - changed, changed + 2
        # At the crossover, k1 = (k - m) / 2, either will do.
        if direct != indirect:
            assert statistics.direct_updates == (direct < indirect)
            assert statistics.indirect_updates == (direct > indirect)
        assert statistics.update_read_sectors == min(direct, indirect)
        assert is_protected(drive, store, 0)


@pytest.mark.parametrize(("method", "reads"), [(UpdateMethod.DIRECT, 16), (UpdateMethod.INDIRECT, 6)])
def test_a_method_can_be_forced(method: UpdateMethod, reads: int) -> None:
    drive, store = with_file(pattern(20), WIDE)
    with store:
        store.update_method = method
        assert store.update_method is method
        file = store.open("a")
        file.write(2 * SECTOR, pattern(3, seed=2))
        file.write(9 * SECTOR, pattern(1, seed=3))
        store.flush()
        assert store.statistics.update_read_sectors == reads
        assert store.statistics.direct_updates == (method is UpdateMethod.DIRECT)
        assert store.statistics.indirect_updates == (method is UpdateMethod.INDIRECT)
        assert is_protected(drive, store, 0)


def test_what_is_cached_counts_as_read() -> None:
    drive, store = with_file(pattern(20), WIDE)
    with store:
        file = store.open("a")
        # Ten of the eighteen that stay are cached: reading the others is less than three and the redundancy.
        for row in range(4, 20):
            file.read(row * SECTOR, SECTOR)
        file.write(0, pattern(3, seed=2))
        store.flush()
        assert store.statistics.direct_updates == 1
        assert store.statistics.update_read_sectors == 1
        assert is_protected(drive, store, 0)


def test_what_was_cached_before_it_changed_needs_no_reading() -> None:
    drive, store = with_file(pattern(20), WIDE)
    with store:
        file = store.open("a")
        file.read(0, 3 * SECTOR)
        file.write(0, pattern(3, seed=2))
        store.flush()
        assert store.statistics.indirect_updates == 1
        assert store.statistics.update_read_sectors == 2
        assert is_protected(drive, store, 0)


def test_a_part_of_a_sector_is_changed_without_its_neighbours() -> None:
    content = bytearray(pattern(20))
    drive, store = with_file(bytes(content), WIDE)
    with store:
        store.open("a").write(5 * SECTOR + 100, b"changed")
        content[5 * SECTOR + 100 : 5 * SECTOR + 107] = b"changed"
        store.flush()
        assert store.open("a").read(0, len(content)) == bytes(content)
        # The sector itself, and the redundancy.
        assert store.statistics.read_sectors == 3 + 20 - 1
        assert is_protected(drive, store, 0)


@pytest.mark.parametrize("method", list(UpdateMethod))
def test_a_synchronous_write_puts_data_down_first_and_redundancy_later(method: UpdateMethod) -> None:
    drive, store = with_file(pattern(20), WIDE, update=method)
    with store:
        group = sectors_of(store, 0)
        old = on_drive(drive, group)
        new = pattern(2, seed=2)
        store.open("a").write(4 * SECTOR, new, sync=True)
        assert on_drive(drive, group) == old[: 4 * SECTOR] + new + old[6 * SECTOR :]
        assert store.stat("a").unprotected_groups == 1
        assert store.statistics.redundancy_writes == 0
        assert store.protect() == 0
        assert is_protected(drive, store, 0)
        assert store.stat("a").unprotected_groups == 0
        assert store.statistics.indirect_updates == (method is UpdateMethod.INDIRECT)
        assert store.open("a").read(4 * SECTOR, 2 * SECTOR) == new


def test_that_a_group_is_unprotected_is_on_the_drive_before_it_changes() -> None:
    drive, store = with_file(pattern(20), WIDE)
    group = sectors_of(store, 0)
    record = {place // SECTOR for place in store.metadata_places()[1]}
    store.open("a").write(0, pattern(1, seed=2), sync=True)
    steps = [request for request in drive.requests if request[0] in {"write", "flush"}]
    assert [(kind, first in record, first in group) for kind, first, _ in steps] == [
        ("write", True, False),
        ("flush", False, False),
        ("write", False, True),
        ("flush", False, False),
    ]
    # A second write to a group that is unprotected already is one request and a flush.
    drive.requests.clear()
    store.open("a").write(SECTOR, pattern(1, seed=3), sync=True)
    assert [kind for kind, _, _ in drive.requests] == ["write", "flush"]
    again = opened(drive, take_over=True)
    assert again.statistics.recovered_groups == 1
    assert again.stat("a").unprotected_groups == 1
    assert again.protect() == 0
    assert is_protected(drive, again, 0)
    again.close()
    with opened(drive) as third:
        assert third.statistics.recovered_groups == 0


def test_protection_can_be_had_a_few_groups_at_a_time() -> None:
    drive, store = with_file(pattern(80), WIDE)
    with store:
        for group in range(4):
            store.open("a").write(group * 20 * SECTOR, b"x", sync=True)
        left = [store.protect(at_most_groups=1) for _ in range(4)]
        assert left == [3, 2, 1, 0]
        assert all(is_protected(drive, store, group) for group in range(4))


def test_a_sector_that_was_decoded_to_cut_its_group_is_kept_until_that_is_protected() -> None:
    drive, store = with_file(pattern(8), cache_bytes=0)
    with store:
        drive.hard = {sectors_of(store, 0)[1]}
        store.open("a").truncate(4 * SECTOR)
        other = store.create("other")
        for row in range(0, 40, 8):
            other.write(row * SECTOR, pattern(2, seed=2))
        assert store.open("a").read(0, 9 * SECTOR) == pattern(4)
        store.flush()
        assert store.open("a").read(0, 9 * SECTOR) == pattern(4)
        assert store.scrub().is_clean


def test_a_group_that_is_cut_is_protected_again() -> None:
    drive, store = with_file(pattern(20), WIDE)
    with store:
        store.open("a").truncate(7 * SECTOR + 1)
        assert store.stat("a").unprotected_groups == 1
        store.flush()
        assert len(sectors_of(store, 0)) == 8 + 2
        assert is_protected(drive, store, 0)


def test_a_group_that_was_just_written_stays_recorded_when_it_changes_again() -> None:
    drive = formatted()
    store = opened(drive)
    file = store.create("a")
    file.write(0, pattern(16))
    file.sync()
    for group in range(2):
        file.write(group * 8 * SECTOR, b"x", sync=True)
    assert opened(drive, take_over=True).stat("a").unprotected_groups == 2


def test_a_group_that_changes_again_stays_recorded_when_another_is() -> None:
    drive, store = with_file(pattern(24))
    file = store.open("a")
    file.write(0, pattern(8, seed=2))
    # Written as a whole with its redundancy: what is on the drive of the record could go.
    file.sync()
    assert store.stat("a").unprotected_groups == 0
    for group in (0, 2):
        file.write(group * 8 * SECTOR, b"x", sync=True)
    assert opened(drive, take_over=True).stat("a").unprotected_groups == 2


def test_a_group_that_was_cut_is_recorded_before_the_drive_knows_that_it_was() -> None:
    drive, store = with_file(pattern(20), WIDE)
    file = store.open("a")
    file.truncate(7 * SECTOR + 1)
    file.sync()
    assert not is_protected(drive, store, 0)
    again = opened(drive, take_over=True)
    assert again.stat("a").unprotected_groups == 1
    assert again.scrub().is_clean
    assert is_protected(drive, again, 0)


def test_more_groups_can_be_unprotected_than_are_recorded_at_once() -> None:
    layout = Layout(2, 1, replicas=1)
    drive = formatted(layout, size_bytes=1_400 * SECTOR)
    # A record sector has room for 500, and one is all that 466 groups of three sectors get; these have two.
    count = 501
    with opened(drive, cache_bytes=1 << 20) as store:
        file = store.create("a")
        for group in range(count):
            file.write(group * 2 * SECTOR, b"y")
            store.flush()
        for group in range(count):
            file.write(group * 2 * SECTOR, b"x", sync=True)
        assert 0 < store.stat("a").unprotected_groups < count
        store.flush()
        assert all(is_protected(drive, store, group) for group in range(0, count, 7))


def test_a_group_that_has_no_room_to_grow_is_moved() -> None:
    drive = formatted()
    with opened(drive) as store:
        one, other = store.create("a"), store.create("b")
        one.write(0, pattern(1))
        store.flush()
        other.write(0, pattern(1, seed=2))
        store.flush()
        before = sectors_of(store, 0)
        one.write(SECTOR, pattern(6, seed=3))
        store.flush()
        assert store.statistics.moved_groups == 1
        assert sectors_of(store, 0) != before
        assert one.read(0, 7 * SECTOR) == pattern(1) + pattern(6, seed=3)
        assert other.read(0, SECTOR) == pattern(1, seed=2)
        assert is_protected(drive, store, 0)
