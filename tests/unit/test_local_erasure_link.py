"""A store whose drive's link fails now and then: requests raise, and nothing is wrong when it is well again."""

from __future__ import annotations

import errno
from contextlib import suppress

import pytest

from rackloop.blocks import IoFailed
from rackloop.clock import VirtualClock
from rackloop.errors import ProductFailed
from rackloop.seed import Stream, stream
from rackloop_models.local_erasure import Layout, LocalStore, UpdateMethod, format_drive
from tests.unit.faulty_drive import FaultyDrive
from tests.unit.local_erasure_case import SECTOR


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


def disturbed(seed: int) -> None:
    chance = stream(seed, "link")
    drive = LooseLink(2 << 20, chance)
    format_drive(drive, Layout(*chance.choice(((1, 1), (3, 2), (8, 2)))), files=6)
    cache_bytes = chance.choice((0, 100_000, 1 << 20))
    store = LocalStore(drive, VirtualClock(), cache_bytes=cache_bytes, update=chance.choice(list(UpdateMethod)))
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
