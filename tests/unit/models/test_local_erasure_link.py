"""A store whose drive's link fails now and then: requests raise, and nothing is wrong when it is well again."""

from __future__ import annotations

import errno
from contextlib import suppress

import pytest

from rackloop.abilities.blocks import IoFailed
from rackloop.clock import VirtualClock
from rackloop.errors import ProductFailed
from rackloop.seed import Stream, stream
from rackloop_models.local_erasure import Layout, LocalStore, UpdateMethod, format_drive
from tests.unit.models.faulty_drive import FaultyDrive
from tests.unit.models.local_erasure_case import SECTOR


class LooseLink(FaultyDrive):
    """A drive one in twenty of whose requests fails while ``is_loose``, and is not carried out."""

    def __init__(self, size_bytes: int, chance: Stream) -> None:
        super().__init__(size_bytes)
        self.is_loose = False
        self._chance = chance

    def read(self, offset: int, length: int) -> bytes:
        self._fail_sometimes()
        return super().read(offset, length)

    def read_failing_fast(self, offset: int, length: int) -> bytes:
        self._fail_sometimes()
        return super().read_failing_fast(offset, length)

    def write(self, offset: int, data: bytes) -> None:
        self._fail_sometimes()
        super().write(offset, data)

    def flush(self) -> None:
        self._fail_sometimes()
        super().flush()

    def _fail_sometimes(self) -> None:
        if self.is_loose and self._chance.random() < 0.05:
            raise IoFailed("the link is loose", self._chance.choice((errno.ENOTCONN, errno.EIO)))


class Stumbling(FaultyDrive):
    """A drive that cannot write ``refused`` sectors: what is before the first of them in a request is carried out."""

    refused: frozenset[int] = frozenset()

    def write(self, offset: int, data: bytes) -> None:
        first = offset // SECTOR
        refused = min(self.refused & set(range(first, first + len(data) // SECTOR)), default=None)
        if refused is None:
            super().write(offset, data)
            return
        if refused > first:
            super().write(offset, memoryview(data)[: (refused - first) * SECTOR])  # type: ignore[arg-type]
        raise IoFailed("the link is loose", errno.ENOTCONN)


def stumbling() -> tuple[Stumbling, LocalStore, dict[bytes, frozenset[int]]]:
    """A store, and which sectors its metadata have, by their kind."""
    drive = Stumbling(2 << 20)
    format_drive(drive, Layout(4, 2, replicas=1), files=6)
    store = LocalStore(drive, VirtualClock(), cache_bytes=0)
    kinds: dict[bytes, frozenset[int]] = {}
    for (place,) in store.metadata_places():
        kind = bytes(drive.memory.content[place + 4 : place + 8])
        kinds[kind] = kinds.get(kind, frozenset()) | {place // SECTOR}
    return drive, store, kinds


def after_power_is_back(drive: FaultyDrive) -> LocalStore:
    return LocalStore(drive, VirtualClock(), take_over=True)


def test_a_commit_that_failed_may_be_on_the_drive_and_what_it_describes_stays() -> None:
    drive, store, kinds = stumbling()
    store.create("a").write(0, b"a" * (4 * SECTOR))
    drive.refused = kinds[b"PAGE"]
    with pytest.raises(IoFailed):
        store.sync()
    store.remove("a")
    for turn in range(4):
        with suppress(IoFailed):
            store.create(f"b{turn}").write(0, b"b" * (60 * SECTOR))
    drive.refused = frozenset()
    with after_power_is_back(drive) as again:
        assert again.names() == ["a"]
        assert again.open("a").read(0, 5 * SECTOR) == b"a" * (4 * SECTOR)


def test_a_group_is_recorded_while_the_drive_may_say_another_length() -> None:
    drive, store, kinds = stumbling()
    file = store.create("a")
    file.write(0, b"a" * SECTOR)
    store.flush()
    file.write(SECTOR, b"b" * SECTOR)
    drive.refused = kinds[b"PAGE"] | kinds[b"JRNL"]
    with pytest.raises(IoFailed):
        store.sync()
    drive.refused = frozenset()
    store.protect()
    with after_power_is_back(drive) as again:
        assert again.stat("a").unprotected_groups == 1
        report = again.scrub()
        assert (report.is_clean, report.corrected_sectors) == (True, 0)
        assert again.open("a").read(0, 9 * SECTOR) == b"a" * SECTOR


def test_a_write_that_is_synchronous_after_a_commit_failed_is_committed() -> None:
    drive, store, kinds = stumbling()
    file = store.create("a")
    file.truncate(40 * SECTOR)
    store.flush()
    drive.refused = kinds[b"JRNL"]
    with pytest.raises(IoFailed):
        file.write(8 * SECTOR, b"b" * SECTOR, sync=True)
    drive.refused = frozenset()
    file.write(8 * SECTOR, b"c" * SECTOR, sync=True)
    with after_power_is_back(drive) as again:
        assert again.open("a").read(8 * SECTOR, SECTOR) == b"c" * SECTOR


def test_pages_that_a_failed_commit_wrote_in_part_are_completed_before_the_next() -> None:
    drive, store, kinds = stumbling()
    store.create("a").write(0, b"a")
    store.create("c")
    store.create("b").write(0, b"b")
    store.flush()
    first, *_, last = sorted(kinds[b"PAGE"])
    store.rename("a", "b")
    pages = {name: file.pages[0] for name, file in ((file.name, file) for file in store._volume.table)}
    assert pages["b"] != pages["c"]
    drive.refused = frozenset(sector for sector in kinds[b"PAGE"] if sector != first + pages["b"])
    with pytest.raises(IoFailed):
        store.sync()
    # Power goes while the next transaction is written to the journal: its first sector is, and no other.
    drive.refused = frozenset(sorted(kinds[b"JRNL"])[1:])
    store.create("d")
    with pytest.raises(IoFailed):
        store.sync()
    drive.refused = frozenset()
    assert last > first
    with after_power_is_back(drive) as again:
        assert again.names() == ["b", "c"]
        assert again.open("b").read(0, 9) == b"a"


def test_what_a_failed_write_put_there_is_part_of_the_file_and_does_not_turn_up_later() -> None:
    drive, store, _ = stumbling()
    file = store.create("a")
    file.write(0, b"a" * 100)
    store.flush()
    free = store._volume.allocator.free_sectors
    drive.refused = frozenset(range(drive.size_bytes // SECTOR))
    with pytest.raises(IoFailed):
        file.write(8 * SECTOR + 5, b"b" * (4 * SECTOR - 5))
    drive.refused = frozenset()
    content = file.read(0, file.size_bytes)
    file.truncate(20 * SECTOR)
    assert file.read(0, 20 * SECTOR) == content.ljust(20 * SECTOR, b"\0")
    file.truncate(100)
    store.flush()
    assert store._volume.allocator.free_sectors >= free


def test_a_record_that_could_not_be_written_is_written_before_its_group_changes() -> None:
    drive, store, kinds = stumbling()
    file = store.create("a")
    file.write(0, b"a" * (4 * SECTOR))
    store.flush()
    drive.refused = kinds[b"UNPR"]
    with pytest.raises(IoFailed):
        file.write(0, b"b", sync=True)
    drive.refused = frozenset()
    store.protect()
    drive.requests.clear()
    file.write(0, b"c", sync=True)
    written = drive.asked("write")
    assert written[0] in kinds[b"UNPR"]
    with after_power_is_back(drive) as again:
        assert again.stat("a").unprotected_groups == 1


def disturbed(seed: int, *, in_flight_bytes: int = 0) -> None:
    chance = stream(seed, "link")
    drive = LooseLink(2 << 20, stream(seed, "failures"))
    format_drive(drive, Layout(*chance.choice(((1, 1), (3, 2), (8, 2)))), files=6)
    cache_bytes = chance.choice((0, 100_000, 1 << 20))
    store = LocalStore(
        drive,
        VirtualClock(),
        cache_bytes=cache_bytes,
        update=chance.choice(list(UpdateMethod)),
        in_flight_bytes=in_flight_bytes,
    )
    kept = chance.randbytes(50_000)
    store.create("kept").write(0, kept)
    file = store.create("file")
    store.flush()
    drive.is_loose = True
    for _ in range(80):
        place, data = chance.randrange(90_000), chance.randbytes(chance.choice((1, 5_000, 40_000)))
        kind = chance.choice(("write", "write", "write", "sync", "cut", "flush", "protect", "read"))
        with suppress(IoFailed, ProductFailed):
            if kind in {"write", "sync"}:
                file.write(place, data, sync=kind == "sync")
            elif kind == "cut":
                file.truncate(place)
            elif kind == "flush":
                store.flush()
            elif kind == "protect":
                store.protect()
            else:
                file.read(0, 25 * SECTOR)
    drive.is_loose = False
    store.flush()
    content = file.read(0, file.size_bytes)
    report = store.scrub()
    assert report.is_clean, report
    assert report.corrected_sectors == 0
    store.close()
    with LocalStore(drive, VirtualClock()) as again:
        assert again.open("file").read(0, len(content) + 1) == content
        assert again.open("kept").read(0, len(kept) + 1) == kept


@pytest.mark.parametrize("first", [0, 40, 80, 120])
def test_requests_that_fail_leave_nothing_wrong_behind(first: int) -> None:
    for seed in range(first, first + 40):
        disturbed(seed)


@pytest.mark.parametrize("in_flight_bytes", [10 * SECTOR, 1 << 20])
def test_requests_that_fail_behind_the_caller_leave_nothing_wrong_behind(in_flight_bytes: int) -> None:
    for seed in range(60):
        disturbed(seed, in_flight_bytes=in_flight_bytes)
