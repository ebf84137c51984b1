"""What a harness had a server do ends with it, however it ends: on OpenSSH's sshd and on a mock server."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from rackloop.errors import NotConnected
from rackloop.lab import parts_of
from rackloop.safety import end_orphans
from rackloop.safety.leases import Leases, holding
from rackloop.safety.store import open_lab_store
from rackloop.safety.undo import Journal
from rackloop.seed import stream
from rackloop_drivers.host import SshAccess, SshHost
from rackloop_labs import open_leased, ssh_accesses
from rackloop_labs.bench_view import BenchInService
from tests.deadlines import CLOCK, soon
from tests.fio_process import FioProcesses, fio_processes, labelled
from tests.mock_rack import MockRack, running_mock_rack
from tests.sshd_process import Sshd, running_sshd
from tests.tcp_relay import relaying

_POLL_S = 0.02
_LOOP = 'echo "$$"; while :; do :; done'

needs_fio = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")


def await_none(working_for: str) -> None:
    """Return once nothing runs for this lab and lease any more."""
    left = soon().poll(lambda: labelled(working_for), lambda left: not left, every_s=_POLL_S)
    assert not left, [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in left]


@contextmanager
def openssh(_folder: Path) -> Iterator[SshAccess]:
    with running_sshd() as sshd:
        yield sshd.access()


@contextmanager
def mock(folder: Path) -> Iterator[SshAccess]:
    with running_mock_rack(folder) as rack:
        yield ssh_accesses(rack.lab, rack.endpoints)["srv1"]


@pytest.fixture(scope="module", params=[openssh, mock], ids=["sshd", "mock"])
def access(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshAccess]:
    with request.param(tmp_path_factory.mktemp("rack")) as arm:
        yield arm


@pytest.fixture(scope="module")
def processes() -> Iterator[FioProcesses]:
    with fio_processes() as running:
        yield running


def rage(processes: FioProcesses, access: SshAccess, kills: int, seed: int) -> None:
    """Kill harnesses one after the other, most of them while fio writes, and see that nothing runs on."""
    chance, begun = stream(seed, "kills"), 0
    for number in range(kills):
        working_for = f"storm/{os.getpid()}-{number}"
        file = f"/tmp/rackloop-storm-{os.getpid()}"
        begun += processes.kill_after(access, working_for, file, chance.uniform(0.0, 0.8))
        await_none(working_for)
    with SshHost(access, CLOCK) as host:
        host.run(("rm", "-f", file), soon())
    assert begun > kills // 4


@needs_fio
def test_harnesses_killed_at_any_instant_leave_no_writer(processes: FioProcesses, access: SshAccess) -> None:
    rage(processes, access, 8, seed=5)


@needs_fio
@pytest.mark.nightly
def test_a_storm_of_kills_leaves_no_writer(processes: FioProcesses, access: SshAccess) -> None:
    rage(processes, access, 200, seed=6)


def test_commands_end_with_the_sshd_that_they_came_by(sshd: Sshd) -> None:
    with SshHost(sshd.access(), CLOCK, "lab/alone") as host:
        process = host.start(("sh", "-c", _LOOP))
        shell = process.read_line(soon())
        wrapper = Path(f"/proc/{shell}/stat").read_text().rpartition(")")[2].split()[1]
        parent = Path(f"/proc/{wrapper}/stat").read_text().rpartition(")")[2].split()[1]
        assert Path(f"/proc/{parent}/comm").read_text().startswith("sshd")
        os.kill(int(parent), signal.SIGKILL)
        await_none("lab/alone")


def test_a_network_that_is_cut_ends_commands_before_a_lease_can_be_anothers(sshd: Sshd, tmp_path: Path) -> None:
    access = sshd.access()
    with relaying((access.host, access.port)) as relay:
        known = tmp_path / "known_hosts"
        known.write_text(access.known_hosts.read_text().replace(f":{access.port}", f":{relay.port}"))
        host = SshHost(replace(access, port=relay.port, known_hosts=known), CLOCK, "lab/cut-off")
        process = host.start(("sh", "-c", _LOOP))
        assert process.read_line(soon())
        with relay.cut():
            await_none("lab/cut-off")
        host.close()


def test_commands_over_a_connection_that_was_given_up_begin_over_another(access: SshAccess) -> None:
    with SshHost(access, CLOCK, "lab/stood-still") as host:
        running = host.start(("sh", "-c", _LOOP))
        assert running.read_line(soon())
        # What its watchdog does first where it does not hear of the harness.
        gone = 'printf %s "$RACKLOOP_COMMAND" && mkdir "${TMPDIR:-/tmp}/rackloop-gone-${RACKLOOP_COMMAND##*/}"'
        label = host.run(("sh", "-c", gone), soon()).stdout
        with pytest.raises(NotConnected, match="it was not begun"):
            host.start(("sh", "-c", "echo begun; read -r line")).read_line(soon())
        with pytest.raises(NotConnected, match="the connection was lost while it ran"):
            running.read_line(soon())
        later = host.run(("sh", "-c", 'printf %s "$RACKLOOP_COMMAND"'), soon())
        assert (later.status, later.stderr) == (0, "")
        assert later.stdout not in {"", label}


def test_what_was_not_begun_is_run_over_another_connection(access: SshAccess) -> None:
    with SshHost(access, CLOCK, "lab/stood-still") as host:
        gone = 'mkdir "${TMPDIR:-/tmp}/rackloop-gone-${RACKLOOP_COMMAND##*/}"'
        assert host.run(("sh", "-c", gone), soon()).status == 0
        assert host.run(("cat",), soon(), stdin="all of its input").stdout == "all of its input"


def test_what_runs_over_a_later_connection_is_not_ended_with_an_earlier_one(host: SshHost) -> None:
    labels = []
    for _ in range(10):
        labels.append(host.run(("sh", "-c", 'printf %s "$RACKLOOP_COMMAND"'), soon()).stdout)
        host.give_up()
    assert [(one, other) for one in labels for other in labels if one != other and other.startswith(one)] == []


@contextmanager
def left(*labels: str) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Processes of this machine with these labels, each with a child that it waits for."""
    script = "sleep 1000 & wait"
    running = [
        subprocess.Popen(("sh", "-c", script), env={**os.environ, "RACKLOOP_COMMAND": label}) for label in labels
    ]
    try:
        yield running
    finally:
        for process in running:
            process.kill()
            process.wait()


def test_commands_of_leases_that_are_over_are_ended_and_named(host: SshHost) -> None:
    lab = f"lab{os.getpid()}"
    with left(f"{lab}/over/1.1", f"{lab}/held/2.1", f"{lab}x/over/3.1") as (over, held, another):
        ended, problems = end_orphans(lab, [host], lambda: ["held"], soon())
        assert {(orphan.server, orphan.lease) for orphan in ended} == {("srv1", "over")}
        assert over.pid in {orphan.pid for orphan in ended}
        assert "sleep 1000" in " ".join(map(str, ended))
        assert problems == []
        assert over.wait(30) == -signal.SIGKILL
        assert (held.poll(), another.poll()) == (None, None)
        assert labelled(f"{lab}/over") == []
        assert end_orphans(lab, [host], lambda: ["held"], soon()) == ((), [])
        end_orphans(lab, [host], list, soon())
        end_orphans(f"{lab}x", [host], list, soon())
        assert (held.wait(30), another.wait(30)) == (-signal.SIGKILL, -signal.SIGKILL)


def test_commands_of_the_lease_that_asks_are_none_of_a_lease_that_is_over(sshd: Sshd, host: SshHost) -> None:
    lab = f"lab{os.getpid()}"
    with left(f"{lab}/mine/1.1", f"{lab}/over/1.1") as (mine, over):
        with SshHost(sshd.access(), CLOCK, f"{lab}/mine") as asking:
            ended, _ = end_orphans(lab, [asking], list, soon())
        assert {orphan.lease for orphan in ended} == {"over"}
        assert over.wait(30) == -signal.SIGKILL
        assert mine.poll() is None
        end_orphans(lab, [host], list, soon())
        assert mine.wait(30) == -signal.SIGKILL


def test_a_server_that_cannot_be_asked_is_passed_over(sshd: Sshd) -> None:
    nobody = SshHost(replace(sshd.access("gone"), port=1), CLOCK)
    assert end_orphans("lab", [nobody], list, soon()) == ((), [])


def test_heal_ends_what_a_run_left_and_leaves_what_is_its_own(rack: MockRack) -> None:
    with (
        closing(open_lab_store(rack.lab, rack.state, CLOCK)) as store,
        holding(Leases(store, rack.lab.name), parts_of(rack.lab)) as held,
        open_leased(rack.lab, CLOCK, rack.state, held) as opened,
    ):
        rack.says("srv2", "RACKLOOP_COMMAND=mock/0badcafe/1.1 nohup sleep 1000 >/dev/null 2>&1 & echo")
        own = opened.host("srv2").start(("sh", "-c", "echo up; read -r line; echo still here"))
        assert own.read_line(soon()) == "up"
        report = BenchInService(opened, ()).heal(Journal(store), held)
        assert [(orphan.server, orphan.lease) for orphan in report.ended] == [("srv2", "0badcafe")]
        assert (report.problems, report.found_in_order) == ((), False)
        own.write_line("go on")
        assert own.read_line(soon()) == "still here"
