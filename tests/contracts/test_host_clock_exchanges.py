"""The relation of clocks by rackprobe's own sessions: to this machine, to servers, to a clock of another time."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from rackloop.abilities import Completed, Executor
from rackloop.clock import Deadline
from rackloop.errors import DeadlineExceeded
from rackloop.native import find_binary
from rackloop_drivers.block import DevicePath
from rackloop_drivers.host import LocalExecutor, SshHost
from rackloop_drivers.host._local import LocalProcess
from rackloop_drivers.workload import Expected, ProbeTarget, RackProbe, RemapSession, VerifiedRead
from rackloop_labs.mock import MockBench
from tests.deadlines import CLOCK, soon
from tests.writable_drive import minted

SERIAL = "RL000001"
AHEAD_S = 86_400
_ELSEWHERE = ("unshare", "--user", "--map-root-user", "--time", f"--monotonic={AHEAD_S}", "--fork", "--kill-child")


class Elsewhere:
    """This machine, with a CLOCK_MONOTONIC that is a day ahead: a time namespace."""

    def __init__(self, here: LocalExecutor) -> None:
        self._here = here
        self.close, self.find, self.put_text = here.close, here.find, here.put_text

    def run(self, argv: Sequence[str], deadline: Deadline, *, stdin: str = "") -> Completed:
        return self._here.run([*_ELSEWHERE, *argv], deadline, stdin=stdin)

    def start(self, argv: Sequence[str]) -> LocalProcess:
        return self._here.start([*_ELSEWHERE, *argv])


@pytest.fixture
def drive(tmp_path: Path, probe: RackProbe) -> DevicePath:
    """A labelled drive of this machine."""
    path = tmp_path / "drive"
    path.write_bytes(bytes(1 << 20))
    device = DevicePath(path)
    with minted(device, SERIAL) as writable:
        probe.write(writable, soon(30))
    return device


@pytest.fixture
def elsewhere(executor: LocalExecutor) -> Executor:
    """A place with another clock."""
    if subprocess.run([*_ELSEWHERE, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this machine makes no time namespaces")
    return Elsewhere(executor)


def opened(executor: Executor, device: DevicePath) -> RemapSession:
    probe = RackProbe(executor, CLOCK, str(find_binary("rackprobe")))
    return probe.remap_session([ProbeTarget("p0", device.probe_target())], soon(30))


def read_once(session: RemapSession) -> tuple[int, VerifiedRead, int]:
    """A verified read between two stamps of this machine's clock."""
    before_ns = CLOCK.now_ns()
    arm = session.arm("p0", Expected(SERIAL), soon(30))
    read = session.wait_verified(arm, soon(30))
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
    with RackProbe(host, CLOCK).remap_session([ProbeTarget("p0", drive.probe_target())], soon(50)) as session:
        offset = session.host_clock.offset()
        assert session.host_clock.is_own
    assert abs(offset.offset_ns) <= offset.error_ns


def test_a_simulated_server_has_a_boot_of_its_own_and_this_machines_clock(bench: MockBench) -> None:
    device = bench.device("srv1", "p0")
    probe = RackProbe(bench.host("srv1"), CLOCK)
    with probe.watch(device, Expected(SERIAL), soon(50), interval_s=0.05) as watch:
        interval = watch.next_interval(soon(50))
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
    with probe.watch(drive, Expected(SERIAL), soon(30), interval_s=0.02) as watch:
        live = watch.next_interval(soon(30))
        result = watch.result(soon(30))
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
    with probe.watch(drive, Expected(SERIAL), soon(30), interval_s=3600) as watch:
        with pytest.raises(DeadlineExceeded, match="printed no interval in time"):
            watch.next_interval(soon(0.01))
        assert watch.result(soon(30)).completed > 0
