"""The relation of clocks by rackprobe's own sessions: to this machine, to servers, to a clock of another time."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from rackloop.abilities import Completed, Executor, Process
from rackloop.clock import Deadline
from rackloop.errors import DeadlineExceeded
from rackloop.native import find_binary
from rackloop_drivers.block import DevicePath
from rackloop_drivers.clock_access import ClockAccess
from rackloop_drivers.host import LocalExecutor, SshHost
from rackloop_drivers.workload import Expected, ProbeTarget, RackProbe, RemapSession, VerifiedRead
from rackloop_labs.mock import MockBench
from tests.deadlines import CLOCK, soon
from tests.writable_drive import minted

SERIAL = "RL000001"
AHEAD_S = 86_400
_ELSEWHERE = ("unshare", "--user", "--map-root-user", "--time", f"--monotonic={AHEAD_S}", "--fork", "--kill-child")


class Elsewhere:
    """This machine, with a CLOCK_MONOTONIC that is a day ahead: a time namespace. ``told`` is what probes were told."""

    def __init__(self, here: LocalExecutor, pid: int) -> None:
        self._here = here
        self._enter = ("nsenter", f"--target={pid}", "--user", "--time", "--preserve-credentials")
        self.close, self.find, self.put_text = here.close, here.find, here.put_text
        self.clock_access: ClockAccess | None = None
        self.told: list[str] = []

    def run(self, argv: Sequence[str], deadline: Deadline, *, stdin: str = "") -> Completed:
        return self._here.run([*self._enter, *argv], deadline, stdin=stdin)

    def start(self, argv: Sequence[str]) -> Process:
        return Told(self._here.start([*self._enter, *argv]), self.told)


class Told:
    """A process whose lines are noted."""

    def __init__(self, process: Process, told: list[str]) -> None:
        self._process = process
        self._told = told
        self.read_line, self.wait, self.kill = process.read_line, process.wait, process.kill

    def write_line(self, line: str) -> None:
        self._told.append(line)
        self._process.write_line(line)


@pytest.fixture
def drive(tmp_path: Path, probe: RackProbe) -> DevicePath:
    """A labelled drive of this machine."""
    path = tmp_path / "drive"
    path.write_bytes(bytes(1 << 20))
    device = DevicePath(path)
    with minted(device, SERIAL) as writable:
        probe.write(writable, soon())
    return device


@pytest.fixture
def elsewhere(executor: LocalExecutor) -> Iterator[Elsewhere]:
    """A place with another clock."""
    argv = [*_ELSEWHERE, "sh", "-c", "echo $$; read _"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as there:
        if there.stdout is None or not (pid := there.stdout.readline()):
            pytest.skip("this machine makes no time namespaces")
        yield Elsewhere(executor, int(pid))
        there.communicate("\n")


@pytest.fixture
def port(elsewhere: Elsewhere) -> Iterator[socket.socket]:
    """The TCP port for the clock elsewhere, taken until it is closed."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        elsewhere.clock_access = ClockAccess("127.0.0.1", number, listens_at=number)
        yield taken


def opened(executor: Executor, device: DevicePath) -> RemapSession:
    probe = RackProbe(executor, CLOCK, str(find_binary("rackprobe")))
    return probe.remap_session([ProbeTarget("p0", device.probe_target())], soon())


def read_once(session: RemapSession) -> tuple[int, VerifiedRead, int]:
    """A verified read between two stamps of this machine's clock."""
    before_ns = CLOCK.now_ns()
    arm = session.arm("p0", Expected(SERIAL), soon())
    read = session.wait_verified(arm, soon())
    return before_ns, read, CLOCK.now_ns()


def test_a_probe_on_this_machine_has_its_clock(executor: LocalExecutor, drive: DevicePath) -> None:
    with opened(executor, drive) as session:
        before_ns, read, after_ns = read_once(session)
        offset = session.host_clock.offset()
        assert session.host_clock.is_own
    assert before_ns < read.armed_ns <= read.submit_ns < read.t_ns < after_ns
    assert read.clock_error_ns == 0
    assert abs(offset.offset_ns) <= offset.error_ns


def test_a_server_of_this_machine_has_its_clock(host: SshHost, drive: DevicePath) -> None:
    with RackProbe(host, CLOCK).remap_session([ProbeTarget("p0", drive.probe_target())], soon()) as session:
        offset = session.host_clock.offset()
        assert session.host_clock.is_own
    assert abs(offset.offset_ns) <= offset.error_ns


def test_a_simulated_server_has_a_boot_of_its_own_and_this_machines_clock(bench: MockBench) -> None:
    device = bench.device("srv1", "p0")
    probe = RackProbe(bench.host("srv1"), CLOCK)
    with probe.watch(device, Expected(SERIAL), soon(), interval_s=0.05) as watch:
        interval = watch.next_interval(soon())
        offset = watch.host_clock.offset()
        assert watch.host_clock.is_own
    assert interval is not None
    assert interval.clock_error_ns == 0
    assert abs(offset.offset_ns) <= offset.error_ns


def test_stamps_of_another_clock_are_related_to_the_runs(elsewhere: Executor, drive: DevicePath) -> None:
    with opened(elsewhere, drive) as session:
        before_ns, read, after_ns = read_once(session)
        offset = session.host_clock.offset()
        assert not session.host_clock.is_own
    assert abs(offset.offset_ns - AHEAD_S * 1_000_000_000) <= offset.error_ns
    assert read.clock_error_ns > 0
    assert read.armed_ns <= read.submit_ns < read.t_ns
    assert before_ns < read.submit_ns + read.clock_error_ns
    assert read.t_ns - read.clock_error_ns < after_ns


def test_a_watch_of_another_clock_tells_the_runs_time(elsewhere: Executor, drive: DevicePath) -> None:
    probe = RackProbe(elsewhere, CLOCK, str(find_binary("rackprobe")))
    before_ns = CLOCK.now_ns()
    with probe.watch(drive, Expected(SERIAL), soon(), interval_s=0.02) as watch:
        live = watch.next_interval(soon())
        result = watch.result(soon())
        intervals, started_ns = watch.intervals, watch.started_ns
    after_ns = CLOCK.now_ns()
    assert live is not None
    error_ns = max(result.clock_error_ns, live.clock_error_ns)
    assert error_ns > 0
    assert before_ns - error_ns < started_ns <= result.t_ns < after_ns + error_ns
    assert all(started_ns - error_ns < interval.t_ns <= result.t_ns + error_ns for interval in intervals)
    assert intervals[0].completed == live.completed


def test_a_watch_that_says_nothing_in_time_is_not_waited_for(executor: LocalExecutor, drive: DevicePath) -> None:
    probe = RackProbe(executor, CLOCK)
    with probe.watch(drive, Expected(SERIAL), soon(), interval_s=3600) as watch:
        with pytest.raises(DeadlineExceeded, match="printed no interval in time"):
            watch.next_interval(soon(0.01))
        assert watch.result(soon()).completed > 0


def asked_by_line(place: Elsewhere) -> bool:
    return any('"clock"' in line for line in place.told)


def test_a_clock_that_is_reached_by_tcp_is_asked_for_there_by_all_sessions(
    elsewhere: Elsewhere, drive: DevicePath, port: socket.socket
) -> None:
    port.close()
    with opened(elsewhere, drive) as session, opened(elsewhere, drive) as other:
        before_ns, read, after_ns = read_once(other)
        offset = session.host_clock.offset()
        assert other.host_clock is session.host_clock
    assert sum("show_clock" in line for line in elsewhere.told) == 1
    assert not asked_by_line(elsewhere)
    assert abs(offset.offset_ns - AHEAD_S * 1_000_000_000) <= offset.error_ns
    assert read.clock_error_ns > 0
    assert before_ns < read.submit_ns + read.clock_error_ns
    assert read.t_ns - read.clock_error_ns < after_ns


def test_a_session_goes_on_by_its_own_lines_where_the_one_that_showed_the_clock_has_ended(
    elsewhere: Elsewhere, drive: DevicePath, port: socket.socket
) -> None:
    port.close()
    with opened(elsewhere, drive) as first, opened(elsewhere, drive) as other:
        assert not asked_by_line(elsewhere)
        first.close()
        assert read_once(other)[1].clock_error_ns > 0
        assert asked_by_line(elsewhere)
    with opened(elsewhere, drive) as again:
        assert read_once(again)[1].clock_error_ns > 0
    assert sum("show_clock" in line for line in elsewhere.told) == 2


@pytest.mark.usefixtures("port")
def test_a_port_that_another_has_leaves_the_exchanges_to_the_session(elsewhere: Elsewhere, drive: DevicePath) -> None:
    with opened(elsewhere, drive) as session:
        assert read_once(session)[1].clock_error_ns > 0
        assert "in use" in str(session.clock_refusal)
    assert asked_by_line(elsewhere)
