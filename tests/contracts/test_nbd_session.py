"""I/O from within the harness, by libnbd, on rackd and on nbdkit."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event, main_thread

import pytest

from rackloop.abilities.blocks import IoFailed
from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import BadInput, DeadlineExceeded, LabError, NotConnected, NotSupported
from rackloop_drivers.block import DevicePath, NbdExport
from rackloop_drivers.block.nbd_session import NbdSession
from tests.deadlines import CLOCK, soon
from tests.nbdkit_process import serving_unix
from tests.rackd_process import RunningRackd, running_rackd, tell
from tests.writable_drive import minted

MIB = 1 << 20
EIO = 5


def export(rackd: RunningRackd, name: str = "drive.d01") -> NbdExport:
    return NbdExport(rackd.nbd, name, 64 * MIB)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    with running_rackd(tmp_path) as rackd, minted(export(rackd)) as drive, NbdSession(drive, CLOCK) as session:
        assert session.size_bytes == 64 * MIB
        session.write(8192, b"x" * 4096)
        session.flush()
        assert session.read(4096, 12288) == bytes(4096) + b"x" * 4096 + bytes(4096)


def test_zeroes_need_not_be_sent(tmp_path: Path) -> None:
    with running_rackd(tmp_path) as rackd, minted(export(rackd)) as drive, NbdSession(drive, CLOCK) as session:
        session.write(MIB - 4096, b"x" * 12288)
        session.write_zeroes(MIB, 4096)
        assert session.read(MIB - 4096, 12288) == b"x" * 4096 + bytes(4096) + b"x" * 4096
        session.write_zeroes(0, 64 * MIB)
        assert session.read(MIB - 4096, 12288) == bytes(12288)
        with pytest.raises(IoFailed):
            session.write_zeroes(63 * MIB, 2 * MIB)


def test_a_server_that_nobody_here_wrote_answers_too(tmp_path: Path) -> None:
    with serving_unix(tmp_path / "nbd.sock", ["memory", "1M"]) as path:
        device = NbdExport(path, "", MIB)
        with minted(device) as drive, NbdSession(drive, CLOCK) as session:
            session.write(0, b"y" * 4096)
            assert session.read(0, 4096) == b"y" * 4096
            with pytest.raises(IoFailed):
                session.read(MIB, 4096)


def test_without_the_guards_permission_nothing_is_written(tmp_path: Path) -> None:
    with running_rackd(tmp_path) as rackd:
        with NbdSession(export(rackd), CLOCK) as session:
            with pytest.raises(BadInput, match="WritableDrive"):
                session.write(0, b"x" * 4096)
            with pytest.raises(BadInput, match="WritableDrive"):
                session.write_zeroes(0, 4096)
            assert session.read(0, 4096) == bytes(4096)
        drive = minted(export(rackd))
        with NbdSession(drive, CLOCK) as session:
            drive.close()
            with pytest.raises(LabError, match="given back"):
                session.write(0, b"x" * 4096)
            assert session.read(0, 4096) == bytes(4096)


def test_an_error_of_the_drive_comes_with_its_number(tmp_path: Path) -> None:
    with running_rackd(tmp_path) as rackd, NbdSession(export(rackd), CLOCK) as session:
        tell(rackd, "fault", drive="d01", fault={"kind": "dead"})
        with pytest.raises(IoFailed) as failed:
            session.read(0, 4096)
        assert failed.value.errno == EIO
        tell(rackd, "clear_fault", drive="d01")
        assert session.read(0, 4096) == bytes(4096)


def test_a_request_that_nobody_answers_ends_with_the_session(tmp_path: Path) -> None:
    with running_rackd(tmp_path) as rackd, NbdSession(export(rackd, "srv1.p0"), CLOCK, within_s=0.05) as session:
        with pytest.raises(DeadlineExceeded, match=r"srv1\.p0"):
            session.read(0, 4096)
        with pytest.raises(NotConnected, match="closed"):
            session.read(0, 4096)


def test_a_held_request_goes_to_the_drive_that_comes(tmp_path: Path) -> None:
    with running_rackd(tmp_path) as rackd:
        tell(rackd, "map", pairs=[[1, 101]], full=False)
        with NbdSession(export(rackd, "srv1.p0"), CLOCK) as session:
            assert session.read(0, 4096) == bytes(4096)


def test_what_is_no_export_or_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotConnected, match="is the lab up"):
        NbdSession(NbdExport(tmp_path / "none.sock", "srv1.p0", MIB), CLOCK)
    with pytest.raises(NotSupported, match="no NBD export"):
        NbdSession(DevicePath(Path("/dev/null")), CLOCK)


def test_an_export_that_the_server_has_not_is_not_supported(tmp_path: Path) -> None:
    with running_rackd(tmp_path) as rackd, pytest.raises(NotSupported, match="nothing"):
        NbdSession(export(rackd, "nothing"), CLOCK)


class _SteppingClock(VirtualClock):
    """A clock on which a look takes ten seconds."""

    def now_ns(self) -> int:
        """The virtual time, ten seconds later than when it was last asked for."""
        self.advance(10)
        return super().now_ns()


def test_a_server_that_does_not_greet_is_not_waited_for_without_end(tmp_path: Path) -> None:
    path = tmp_path / "silent.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        with pytest.raises(DeadlineExceeded, match=r"its greeting .* was not answered in 5 s"):
            NbdSession(NbdExport(path, "srv1.p0", MIB), _SteppingClock(), within_s=1)


def test_a_session_that_is_closed_lets_a_request_in_flight_go(tmp_path: Path) -> None:
    with running_rackd(tmp_path) as rackd:
        session = NbdSession(export(rackd, "srv1.p0"), CLOCK, within_s=600)
        with ThreadPoolExecutor(1) as thread:
            held = thread.submit(session.read, 0, 4096)
            assert soon().poll(lambda: holds_a_request(rackd), every_s=0.01)
            session.close()
            with pytest.raises(NotConnected, match="closed meanwhile"):
                held.result(timeout=60)


def holds_a_request(rackd: RunningRackd) -> bool:
    """Whether the rack has a request that waits for a drive."""
    with closing(rackd.connect()) as control:
        return bool(control.request("stats", soon())["held"])


@contextmanager
def interrupting(rackd: RunningRackd, then: Callable[[Event], None]) -> Iterator[None]:
    """Interrupt the block once rackd holds a request; ``then`` gets what tells the block's end, once it was noticed."""
    noticed, ended = Event(), Event()

    def interrupted(_signal: int, _frame: object) -> None:
        noticed.set()
        raise KeyboardInterrupt

    def interrupt() -> None:
        control = rackd.connect()
        while not control.request("stats", Deadline.after(CLOCK, 10))["held"]:
            pass
        control.close()
        signal.pthread_kill(main_thread().ident or 0, signal.SIGUSR1)
        noticed.wait()
        then(ended)

    before = signal.signal(signal.SIGUSR1, interrupted)
    try:
        with ThreadPoolExecutor(1) as thread:
            done = thread.submit(interrupt)
            yield
            ended.set()
        done.result()
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_an_interrupt_waits_for_what_is_in_flight_and_the_session_goes_on(tmp_path: Path) -> None:
    with running_rackd(tmp_path) as rackd, NbdSession(export(rackd, "srv1.p0"), CLOCK, within_s=60) as session:

        def join(_ended: Event) -> None:
            tell(rackd, "map", pairs=[[1, 101]], full=False)

        with interrupting(rackd, join), pytest.raises(KeyboardInterrupt):
            session.read(0, MIB)
        assert session.read(0, 4096) == bytes(4096)


def test_an_interrupt_that_nothing_answers_ends_the_session(tmp_path: Path) -> None:
    clock = VirtualClock()

    def let_time_pass(ended: Event) -> None:
        while not ended.is_set():
            clock.advance(1)

    with running_rackd(tmp_path) as rackd, NbdSession(export(rackd, "srv1.p0"), clock) as session:
        with interrupting(rackd, let_time_pass), pytest.raises(KeyboardInterrupt):
            session.read(0, MIB)
        with pytest.raises(NotConnected, match="closed"):
            session.read(0, 4096)
