"""Drives as blocks, whichever way I/O reaches them: rackd's exports, an nbdkit, a file, a loop device, a server."""

from __future__ import annotations

import mmap
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import numpy as np
import pytest

from rackloop.abilities import BlockUsage, Claim
from rackloop.abilities.blocks import BLOCK_BYTES, FailFastBlocks, IoFailed, PartwiseBlocks
from rackloop.clock import Deadline
from rackloop.errors import BadInput, GuardRefused, LabError, NotConnected, NotSupported
from rackloop.lab import load_profile
from rackloop_drivers.block import DevicePath, HostPath, NbdExport
from rackloop_drivers.block.nbd_session import FailFastNbdSession, NbdSession
from rackloop_drivers.block.path_session import PathSession
from rackloop_drivers.open_blocks import open_blocks
from tests.deadlines import CLOCK
from tests.drive_server import running_drive_server
from tests.nbdkit_process import serving_unix
from tests.rackd_process import RunningRackd, drive, running_rackd, small_rack, tell
from tests.writable_drive import minted

MIB = 1 << 20
EIO = 5
SECTOR = 512


@contextmanager
def an_export(tmp_path: Path) -> Iterator[NbdExport]:
    with running_rackd(tmp_path) as rackd:
        yield NbdExport(rackd.nbd, "drive.d01", 64 * MIB)


@contextmanager
def an_nbdkit(tmp_path: Path) -> Iterator[NbdExport]:
    exports = tmp_path / "exports"
    exports.mkdir()
    (exports / "only").write_bytes(bytes(64 * MIB))
    with serving_unix(tmp_path / "nbd.sock", ["file", f"dir={exports}"]) as path:
        yield NbdExport(path, "only", 64 * MIB)


@contextmanager
def a_file(tmp_path: Path) -> Iterator[DevicePath]:
    path = tmp_path / "drive.img"
    path.touch()
    with path.open("r+b") as file:
        file.truncate(64 * MIB)
    yield DevicePath(path)


@contextmanager
def a_loop_device(tmp_path: Path) -> Iterator[DevicePath]:
    with a_file(tmp_path) as file:
        made = subprocess.run(
            ("losetup", "--find", "--show", str(file.path)), capture_output=True, text=True, check=False
        )
        if made.returncode:
            pytest.skip(f"no loop device can be made here: {made.stderr.strip()}")
        try:
            yield DevicePath(Path(made.stdout.strip()))
        finally:
            subprocess.run(("losetup", "--detach", made.stdout.strip()), check=True)


@contextmanager
def a_servers_drive(tmp_path: Path) -> Iterator[HostPath]:
    with running_drive_server(tmp_path) as server:
        yield server.device


@contextmanager
def a_servers_loop_device(tmp_path: Path) -> Iterator[HostPath]:
    with a_loop_device(tmp_path) as loop, running_drive_server(tmp_path, node=loop.path) as server:
        yield server.device


Device = NbdExport | DevicePath | HostPath
WAYS: dict[str, Callable[[Path], AbstractContextManager[Device]]] = {
    "rackd": an_export,
    "nbdkit": an_nbdkit,
    "file": a_file,
    "loop device": a_loop_device,
    "server": a_servers_drive,
    "server's loop device": a_servers_loop_device,
}


@pytest.fixture(params=WAYS)
def device(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Device]:
    with WAYS[request.param](tmp_path) as device:
        yield device


def content(length: int, seed: int = 1) -> bytes:
    """Bytes that differ from block to block, so that a piece in the wrong place shows."""
    blocks = (bytes([(seed + number) % 251]) * BLOCK_BYTES for number in range(-(-length // BLOCK_BYTES)))
    return b"".join(blocks)[:length]


def spoil(rackd: RunningRackd, *offsets: int) -> None:
    """Have one block at each offset be unreadable until it is written again."""
    for offset in offsets:
        fault = {"kind": "media_error", "lba": offset // SECTOR, "sectors": 8, "mode": "until_rewritten"}
        tell(rackd, "fault", drive="d01", fault=fault)


def test_a_long_write_is_read_back_whole_and_only_where_it_was_put(device: Device) -> None:
    data = content(5 * MIB + 3 * BLOCK_BYTES)
    with minted(device) as permit, open_blocks(permit, CLOCK) as blocks:
        assert blocks.size_bytes == 64 * MIB
        blocks.write(MIB - BLOCK_BYTES, data)
        blocks.flush()
        assert blocks.read(MIB - BLOCK_BYTES, len(data)) == data
        assert blocks.read(MIB - 2 * BLOCK_BYTES, BLOCK_BYTES) == bytes(BLOCK_BYTES)
        assert blocks.read(MIB - BLOCK_BYTES + len(data), BLOCK_BYTES) == bytes(BLOCK_BYTES)
    with open_blocks(device, CLOCK) as again:
        assert again.read(MIB - BLOCK_BYTES, len(data)) == data


@pytest.mark.parametrize("shift", [0, 1, 512])
def test_views_are_written_from_and_read_into_wherever_they_lie(device: Device, shift: int) -> None:
    data = content(2 * MIB)
    with minted(device) as permit, open_blocks(permit, CLOCK) as blocks, mmap.mmap(-1, 3 * MIB) as memory:
        with memoryview(memory) as whole, whole[shift : shift + len(data)] as view:
            view[:] = data
            blocks.write(BLOCK_BYTES, view)
            view[:] = bytes(len(data))
            blocks.read_into(BLOCK_BYTES, view)
            assert bytes(view) == data
        assert blocks.read(BLOCK_BYTES, len(data)) == data


def test_rows_of_sectors_are_written_as_the_bytes_they_are(device: Device) -> None:
    data = content(3 * MIB)
    rows = np.frombuffer(bytearray(data), np.uint8).reshape(-1, BLOCK_BYTES)
    with minted(device) as permit, open_blocks(permit, CLOCK) as blocks:
        blocks.write(MIB, rows.data)
        assert blocks.read(MIB, len(data)) == data
        rows[:] = 0
        blocks.read_into(MIB, rows.data)
        assert rows.tobytes() == data


def test_nothing_is_nothing(device: Device) -> None:
    with minted(device) as permit, open_blocks(permit, CLOCK) as blocks:
        blocks.write(0, b"")
        assert blocks.read(0, 0) == b""


def test_threads_share_a_session(device: Device) -> None:
    with minted(device) as permit, open_blocks(permit, CLOCK) as blocks, ThreadPoolExecutor(4) as threads:
        wanted = {number * 4 * MIB: content(3 * MIB, number) for number in range(8)}
        list(threads.map(blocks.write, wanted, wanted.values()))
        assert list(threads.map(lambda offset: blocks.read(offset, 3 * MIB), wanted)) == list(wanted.values())


def test_without_the_guards_permission_nothing_is_written(device: Device) -> None:
    with open_blocks(device, CLOCK) as blocks:
        with pytest.raises(BadInput, match="WritableDrive"):
            blocks.write(0, content(BLOCK_BYTES))
        assert blocks.read(0, BLOCK_BYTES) == bytes(BLOCK_BYTES)
    permit = minted(device)
    with open_blocks(permit, CLOCK) as blocks:
        permit.close()
        with pytest.raises(LabError, match="given back"):
            blocks.write(0, content(BLOCK_BYTES))
        assert blocks.read(0, BLOCK_BYTES) == bytes(BLOCK_BYTES)


def test_beyond_the_end_is_an_error_and_the_session_goes_on(device: Device) -> None:
    with minted(device) as permit, open_blocks(permit, CLOCK) as blocks:
        with pytest.raises(IoFailed):
            blocks.read(62 * MIB, 4 * MIB)
        assert blocks.read(62 * MIB, 2 * MIB) == bytes(2 * MIB)


def test_a_closed_session_says_so(device: Device) -> None:
    blocks = open_blocks(device, CLOCK)
    blocks.close()
    with pytest.raises(NotConnected, match="closed"):
        blocks.read(0, BLOCK_BYTES)
    blocks.close()


def test_only_what_can_fail_fast_offers_to(device: Device) -> None:
    with open_blocks(device, CLOCK) as blocks:
        is_rackds = isinstance(device, NbdExport) and device.export == "drive.d01"
        assert isinstance(blocks, FailFastBlocks) == is_rackds
        assert isinstance(blocks, PathSession) == isinstance(device, DevicePath)
        assert (type(blocks) is NbdSession) == (not is_rackds and not isinstance(device, DevicePath))


def test_a_path_goes_beside_the_page_cache_and_is_claimed(tmp_path: Path) -> None:
    with a_loop_device(tmp_path) as device, minted(device) as permit, open_blocks(permit, CLOCK) as blocks:
        assert isinstance(blocks, PathSession)
        assert blocks.is_direct
        assert permit.is_claimed
        with pytest.raises(GuardRefused, match="claimed"):
            minted(device)


def test_a_path_that_was_led_elsewhere_is_not_written(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).write_bytes(bytes(MIB))
    path = tmp_path / "by-path"
    path.symlink_to("one")
    with minted(DevicePath(path)) as permit:
        path.unlink()
        path.symlink_to("other")
        with pytest.raises(GuardRefused, match="leads to another device than the one that was claimed"):
            open_blocks(permit, CLOCK)
        with pytest.raises(GuardRefused, match="another device"), (tmp_path / "other").open("rb+") as other:
            permit.require(other.fileno())
    assert (tmp_path / "other").read_bytes() == bytes(MIB)


def test_an_unreadable_block_in_a_long_read_is_an_error_with_its_number(tmp_path: Path) -> None:
    data = content(4 * MIB)
    with running_rackd(tmp_path) as rackd:
        device = NbdExport(rackd.nbd, "drive.d01", 64 * MIB)
        with minted(device) as permit, open_blocks(permit, CLOCK) as blocks:
            assert isinstance(blocks, FailFastNbdSession)
            blocks.write(0, data)
            spoil(rackd, 3 * BLOCK_BYTES, 2 * MIB, 4 * MIB - BLOCK_BYTES)
            for read in (blocks.read, blocks.read_failing_fast):
                with pytest.raises(IoFailed) as failed:
                    read(0, len(data))
                assert failed.value.errno == EIO
                assert read(MIB, MIB) == data[MIB : 2 * MIB]
            for offset in (3 * BLOCK_BYTES, 2 * MIB, 4 * MIB - BLOCK_BYTES):
                blocks.write(offset, data[offset : offset + BLOCK_BYTES])
            assert blocks.read_failing_fast(0, len(data)) == data


def test_a_weak_hard_disk_retries_or_fails_fast_as_it_is_asked(tmp_path: Path) -> None:
    weak = dict(load_profile("sata-hdd").timing)
    weak |= {"write_cache_kib": 0, "read_error_probability": 1.0, "retry_ms": [20, 20]}
    config = small_rack() | {"drives": [drive(1, rotational=True, timing=weak)]}
    with running_rackd(tmp_path, config) as rackd:
        device = NbdExport(rackd.nbd, "drive.d01", 64 * MIB)
        with open_blocks(device, CLOCK) as blocks:
            assert isinstance(blocks, FailFastNbdSession)
            with pytest.raises(IoFailed):
                blocks.read_failing_fast(40 * MIB, BLOCK_BYTES)
            began_ns = CLOCK.now_ns()
            assert blocks.read(40 * MIB, BLOCK_BYTES) == bytes(BLOCK_BYTES)
            # The drive's own wait is at least a retry long, however busy the machine is.
            assert CLOCK.now_ns() - began_ns > 14e6


def test_a_long_read_is_several_requests_in_flight_together(tmp_path: Path) -> None:
    config = small_rack() | {"drives": [drive(1, rotational=True, timing=dict(load_profile("sata-hdd").timing))]}
    with running_rackd(tmp_path, config) as rackd:
        control = rackd.connect()
        control.record_io("d01", Deadline.after(CLOCK, 10))
        with open_blocks(NbdExport(rackd.nbd, "drive.d01", 64 * MIB), CLOCK) as blocks:
            assert blocks.read(MIB, 4 * MIB) == bytes(4 * MIB)
        requests = control.recorded_io("d01", Deadline.after(CLOCK, 10)).requests
        control.close()
    assert sum(request.length for request in requests) == 4 * MIB
    first_answer_ns = min(request.answered_ns for request in requests)
    assert sum(request.arrived_ns < first_answer_ns for request in requests) > 1


class _OutOfReach:
    """A device of a kind that no session knows."""

    size_bytes = MIB

    def fio_options(self) -> dict[str, str]:
        return {}

    def probe_target(self) -> str:
        return "/dev/sda"

    def usage(self) -> BlockUsage:
        return BlockUsage()

    def claim_exclusive(self) -> Claim | None:
        return None


def test_what_cannot_be_reached_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotSupported, match="nothing reaches one from here"):
        open_blocks(_OutOfReach(), CLOCK)
    with pytest.raises(LabError, match="no drive at"):
        open_blocks(DevicePath(tmp_path / "none"), CLOCK)
    with pytest.raises(NotConnected, match="is the lab up"):
        open_blocks(NbdExport(tmp_path / "none.sock", "srv1.p0", MIB), CLOCK)
    with an_export(tmp_path) as export, pytest.raises(NotSupported, match="has no export"):
        open_blocks(NbdExport(export.server, "drive.none", MIB), CLOCK)


def test_parts_that_fail_are_named_and_the_others_are_read(tmp_path: Path) -> None:
    data = content(64 * BLOCK_BYTES)
    with running_rackd(tmp_path) as rackd:
        export = NbdExport(rackd.nbd, "drive.d01", 64 * MIB)
        with minted(export) as permit, open_blocks(permit, CLOCK) as session:
            assert isinstance(session, PartwiseBlocks)
            session.write(0, data)
            spoil(rackd, 9 * BLOCK_BYTES, 40 * BLOCK_BYTES)
            buffer = bytearray(64 * BLOCK_BYTES)
            assert session.read_parts_failing_fast(0, buffer, 4 * BLOCK_BYTES) == [2, 10]
            for part in set(range(16)) - {2, 10}:
                place = slice(part * 4 * BLOCK_BYTES, (part + 1) * 4 * BLOCK_BYTES)
                assert buffer[place] == data[place]
            with pytest.raises(IoFailed) as beyond:
                session.read_parts_failing_fast(session.size_bytes, bytearray(BLOCK_BYTES), BLOCK_BYTES)
            assert beyond.value.errno != EIO
            with pytest.raises(ValueError, match="read-only"):
                session.read_parts_failing_fast(0, memoryview(bytes(BLOCK_BYTES)), BLOCK_BYTES)
            assert session.read_failing_fast(0, BLOCK_BYTES) == data[:BLOCK_BYTES]
