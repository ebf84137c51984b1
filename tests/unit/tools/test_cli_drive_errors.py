"""What a drive's errors say to the user of a command, and which of them are about sectors."""

from __future__ import annotations

from errno import EIO, ENOSPC
from threading import Event

import pytest

from rackloop.abilities.blocks import BLOCK_BYTES, IoFailed, PartwiseBlocks
from rackloop.clock import VirtualClock
from rackloop.errors import DeadlineExceeded, LabError, NotConnected
from rackloop_cli.store.drive_errors import DriveAtPort, named
from tests.memory_blocks import MemoryBlocks

URI = "nbd+unix:///srv1.p0?socket=/somewhere"


class Failing(MemoryBlocks):
    """Blocks of which some cannot be read, or that fail as they are told to."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(64 * BLOCK_BYTES)
        self.clock = clock
        self.bad: set[int] = set()
        self.fails_with: Exception | None = None
        self.takes_s = 0.0

    def read(self, offset: int, length: int) -> bytes:
        self._answer(set(range(offset // BLOCK_BYTES, (offset + length) // BLOCK_BYTES)) & self.bad)
        return super().read(offset, length)

    def write(self, offset: int, data: bytes) -> None:
        self._answer(set())
        super().write(offset, data)

    def _answer(self, bad: set[int]) -> None:
        self.clock.advance(self.takes_s)
        if self.fails_with:
            raise self.fails_with
        if bad:
            raise IoFailed(f"read at {URI}: Input/output error", EIO)


class Partwise(Failing):
    """Blocks that say which parts of a range fail."""

    def read_failing_fast(self, offset: int, length: int) -> bytes:
        return self.read(offset, length)

    def read_parts_failing_fast(self, offset: int, buffer: bytearray | memoryview, part_bytes: int) -> list[int]:
        failed = []
        for number, at in enumerate(range(0, memoryview(buffer).nbytes, part_bytes)):
            try:
                memoryview(buffer)[at : at + part_bytes] = self.read(offset + at, part_bytes)
            except IoFailed:
                failed.append(number)
        return failed


@pytest.fixture
def drive() -> Failing:
    return Failing(VirtualClock())


def at_port(blocks: Failing) -> DriveAtPort:
    return named(blocks, blocks.clock, "drive d05 at srv3.p0", "`rackloop fabric mock show` says more")


def test_a_sector_that_cannot_be_read_stays_one_and_names_the_drive(drive: Failing) -> None:
    drive.bad = {0, 3}
    blocks = at_port(drive)
    with pytest.raises(IoFailed, match=r"^drive d05 at srv3\.p0: read failed: Input/output error$") as raised:
        blocks.read(0, 4 * BLOCK_BYTES)
    assert raised.value.is_unreadable
    assert not blocks.is_gone


def test_what_is_no_matter_of_sectors_keeps_its_number(drive: Failing) -> None:
    drive.fails_with = IoFailed(f"write at {URI}", ENOSPC)
    with pytest.raises(IoFailed, match=r"drive d05 at srv3\.p0: write failed: No space left") as raised:
        at_port(drive).write(0, bytes(BLOCK_BYTES))
    assert raised.value.errno == ENOSPC


def test_a_drive_that_answers_nothing_but_errors_has_failed(drive: Failing) -> None:
    drive.fails_with = IoFailed(f"read at {URI}: Input/output error", EIO)
    blocks = at_port(drive)
    with pytest.raises(LabError, match=r"drive d05 at srv3\.p0 answers nothing but errors.*fabric mock show") as raised:
        blocks.write(0, bytes(BLOCK_BYTES))
    assert not isinstance(raised.value, IoFailed)
    assert blocks.is_gone
    drive.fails_with = None
    blocks.read(0, BLOCK_BYTES)
    assert not blocks.is_gone


def test_a_request_that_was_held_until_it_failed_is_no_bad_sector(drive: Failing) -> None:
    drive.fails_with, drive.takes_s = IoFailed(f"read at {URI}: Input/output error", EIO), 30.0
    with pytest.raises(NotConnected, match=r"drive d05 at srv3\.p0 did not answer a read in 30 s; `rackloop fabric"):
        at_port(drive).read(0, BLOCK_BYTES)


@pytest.mark.parametrize("error", [NotConnected(f"{URI}: gone"), DeadlineExceeded(f"{URI}: late")])
def test_a_drive_out_of_reach_is_named_as_the_lab_names_it(drive: Failing, error: LabError) -> None:
    drive.fails_with = error
    blocks = at_port(drive)
    with pytest.raises(NotConnected, match=r"drive d05 at srv3\.p0 ") as raised:
        blocks.read(0, BLOCK_BYTES)
    assert URI not in str(raised.value)
    assert blocks.is_gone


def test_blocks_that_fail_in_parts_do_so_under_a_name_too() -> None:
    drive = Partwise(VirtualClock())
    drive.bad = {1, 2}
    blocks = at_port(drive)
    assert isinstance(blocks, PartwiseBlocks)
    assert blocks.read_parts_failing_fast(0, bytearray(4 * BLOCK_BYTES), BLOCK_BYTES) == [1, 2]
    with pytest.raises(IoFailed, match="drive d05"):
        blocks.read_failing_fast(0, 4 * BLOCK_BYTES)
    drive.takes_s = 15.0
    with pytest.raises(NotConnected, match="did not answer a read in 60 s"):
        blocks.read_parts_failing_fast(0, bytearray(4 * BLOCK_BYTES), BLOCK_BYTES)


def test_plain_blocks_are_not_taken_for_ones_that_fail_fast(drive: Failing) -> None:
    assert not isinstance(at_port(drive), PartwiseBlocks)


def test_silence_is_told_once_and_only_while_it_lasts(drive: Failing) -> None:
    told, is_told = [], Event()

    def tell(text: str) -> None:
        told.append(text)
        is_told.set()

    class Silent(Failing):
        def read(self, offset: int, length: int) -> bytes:
            self.clock.advance(10.0)
            assert is_told.wait(60)
            return super().read(offset, length)

    blocks = at_port(Silent(drive.clock))
    with blocks.looked_after(tell):
        blocks.read(0, BLOCK_BYTES)
    assert told == ["drive d05 at srv3.p0 does not answer; `rackloop fabric mock show` says more"]
