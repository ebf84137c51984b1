"""How the fio driver judges what fio and its surroundings do wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from rackloop.abilities import Completed
from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import DeadlineExceeded, ToolError
from rackloop_drivers.block import NbdExport
from rackloop_drivers.workload import Fio, FioJob, FioRun, ReadWrite

RECORDED = Path(__file__).parent / "data" / "fio"
CLOCK = VirtualClock(start_ns=10**9)
SOON = Deadline.after(CLOCK, 10)


EXPORT = NbdExport(("rack", 10809), "srv1.p0", 1 << 20)
RUN = FioRun(jobs=(FioJob(name="slow", device=EXPORT, rw=ReadWrite.READ),), seed=1)


ASKED = ("sh", "-c", "command -v fio >/dev/null || exit 99; fio --version && fio --enghelp")


@dataclass(eq=False)
class Host:
    """An Executor that tells a prepared story of one fio, and remembers what it was asked to run."""

    version: str = "fio-3.33"
    engines: str = "Available IO engines:\n\tpsync\n\tnbd\n"
    is_installed: bool = True
    first_line: str | None = "4711 1795212555700000000"
    status: int = 0
    report: str = ""
    complaint: str = ""
    is_late: bool = False
    is_mute: bool = False
    ran: list[tuple[str, ...]] = field(default_factory=list)
    killed: int = 0

    def find(self, program: str) -> str | None:
        raise AssertionError("fio is looked for where its version is asked")

    def put_text(self, name: str, text: str) -> str:
        assert text.startswith("[global]\n")
        return f"/private/{name}"

    def run(self, argv: Sequence[str], deadline: Deadline, *, stdin: str = "") -> Completed:
        self.ran.append(tuple(argv))
        match argv:
            case ("sh", "-c", script) if script == ASKED[-1]:
                if not self.is_installed:
                    return Completed(tuple(argv), 99, "", "")
                printed = f"{self.version}\n{self.engines}"
            case ("sh", "-c", 'kill -INT "$1"', *_):
                printed = ""
            case ("sh", *_):
                printed = f"@\n{self.report}"
            case _:
                raise AssertionError(f"unexpected {argv}")
        return Completed(tuple(argv), 0, printed, "")

    def start(self, argv: Sequence[str]) -> Host:
        self.ran.append(tuple(argv))
        return self

    def write_line(self, line: str) -> None:
        raise AssertionError("fio reads no lines")

    def read_line(self, deadline: Deadline) -> str | None:
        if self.is_mute:
            raise DeadlineExceeded("fio: it printed no line in time")
        return self.first_line

    def wait(self, deadline: Deadline) -> Completed:
        if self.is_late:
            raise DeadlineExceeded("fio: it did not end in time")
        return Completed(("fio",), self.status, "", self.complaint)

    def kill(self) -> None:
        self.killed += 1

    def close(self) -> None:
        raise AssertionError("the executor belongs to who made it")


def recorded(name: str) -> str:
    return (RECORDED / name).read_text()


def run(host: Host) -> None:
    Fio(host, CLOCK).run(RUN, SOON)


def test_a_missing_fio_says_how_to_get_it() -> None:
    with pytest.raises(ToolError, match=r"fio was not found.*install 3\.31 or later \(apt install fio\)"):
        run(Host(is_installed=False))


@pytest.mark.parametrize("version", ["fio-3.30", "fio-3.7", "fio-2.99", "fio-3.30-42-gabcdef"])
def test_an_old_fio_is_refused(version: str) -> None:
    with pytest.raises(ToolError, match=rf"{version} is too old: install 3\.31 or later"):
        run(Host(version=version))


@pytest.mark.parametrize(("printed", "version"), [("fio-3.31", "3.31"), ("fio-4.0", "4.0"), ("fio-3.36-5-gab", "3.36")])
def test_the_version_is_asked_once(printed: str, version: str) -> None:
    host = Host(version=printed)
    fio = Fio(host, CLOCK)
    assert fio.version(SOON) == fio.version(SOON) == Fio(host, CLOCK).version(SOON) == version
    assert fio.engines(SOON) == {"psync", "nbd"}
    assert host.ran == [ASKED]


def test_another_program_called_fio_is_refused() -> None:
    with pytest.raises(ToolError, match="printed 'fio: unknown flag', not a version"):
        run(Host(version="fio: unknown flag"))


def test_a_missing_engine_is_named() -> None:
    host = Host(engines="Available IO engines:\n\tpsync\n\tlibaio\n")
    with pytest.raises(ToolError, match=r"fio 3\.33 has no engine nbd"):
        run(host)
    assert host.ran == [ASKED], "nothing was started"
    with pytest.raises(ToolError, match="has no engine nbd"):
        run(host)
    assert host.ran == [ASKED, ASKED], "another may have been installed meanwhile"


@pytest.mark.parametrize(
    ("complaint", "said"), [("sh: 5: awk: not found\n", "sh: 5: awk: not found"), ("", "status 2")]
)
def test_what_kept_fio_from_being_started_is_said(complaint: str, said: str) -> None:
    host = Host(first_line=None, status=2, complaint=complaint)
    with pytest.raises(ToolError, match=f"fio was not started on this machine: {said}"):
        run(host)
    assert host.killed == 1


@pytest.mark.parametrize("line", ["", "4711 1795%N", "date: invalid"])
def test_a_host_without_a_fine_clock_is_refused(line: str | None) -> None:
    host = Host(first_line=line)
    with pytest.raises(ToolError, match="not nanoseconds"):
        run(host)
    assert host.killed == 1


def test_a_fio_that_does_not_start_in_time_is_killed() -> None:
    host = Host(is_mute=True)
    with pytest.raises(DeadlineExceeded):
        Fio(host, CLOCK).start(RUN, SOON)
    assert host.killed == 1


def test_io_errors_are_a_result_and_not_a_failure_of_fio() -> None:
    result = Fio(Host(report=recorded("eio.json")), CLOCK).run(RUN, SOON)
    assert result.total_err == result.jobs[0].total_err > 0


def test_an_io_error_that_ends_its_job_is_a_result_too() -> None:
    result = Fio(Host(report=recorded("enospc.json"), status=1), CLOCK).run(RUN, SOON)
    assert (result.total_err, result.jobs[0].error_text) == (1, "No space left on device")


def test_a_refused_connection_is_not_a_run_without_errors() -> None:
    with pytest.raises(ToolError, match=r"gave up on .*: fio ended with status 1 and said: nbd_connect_uri: refused"):
        run(Host(report=recorded("refused.json"), status=1, complaint="nbd_connect_uri: refused\n"))


@pytest.mark.parametrize("error", ["107", "4294967295"])
def test_a_closed_connection_is_not_an_error_of_the_drive(error: str) -> None:
    report = recorded("closed.json").replace('"error" : 107', f'"error" : {error}')
    assert f'"error" : {error}' in report
    with pytest.raises(ToolError, match="gave up"):
        run(Host(report=report, status=1))


@pytest.mark.parametrize("report", ["", recorded("interrupted.json")[:3000]])
def test_a_killed_fio_is_told_with_its_signal(report: str) -> None:
    with pytest.raises(ToolError, match="was killed by signal 9"):
        run(Host(report=report, status=-9))


@pytest.mark.parametrize("name", ["interrupted.json", "eio.json"])
def test_a_status_report_does_not_stand_for_a_killed_fio(name: str) -> None:
    with pytest.raises(ToolError, match=r"gave up on .*: fio was killed by signal 9"):
        run(Host(report=recorded(name), status=-9))


def test_a_fio_that_a_servers_watchdog_may_have_ended_says_so() -> None:
    with pytest.raises(
        ToolError, match=r"fio gave up on .*: fio ended with status 137 and said: Killed; .*server's watchdog"
    ):
        run(Host(report=recorded("eio.json"), status=137, complaint="Killed\n"))


def test_json_that_breaks_off_is_told() -> None:
    with pytest.raises(ToolError, match=r"breaks off.*disk full.*fio ended with status 0"):
        run(Host(report=recorded("eio.json")[:5000]))


def test_a_report_that_never_came_is_told_with_fios_words() -> None:
    with pytest.raises(ToolError, match=r"no JSON; fio ended with status 1 and said: Bad option <foo=1>"):
        run(Host(status=1, complaint="Bad option <foo=1>\n"))


def test_an_interrupt_that_nobody_asked_for_is_no_result() -> None:
    with pytest.raises(ToolError, match="ended with status 128"):
        run(Host(report=recorded("interrupted.json"), status=128))


def test_stopping_interrupts_the_fio_that_was_started() -> None:
    host = Host(report=recorded("interrupted.json"), status=128)
    with Fio(host, CLOCK).start(RUN, SOON) as running:
        result = running.stop(SOON)
        assert running.wait(SOON) is result
    interrupts = [argv for argv in host.ran if argv[:2] == ("sh", "-c") and "kill" in argv[2]]
    assert len(interrupts) == 1
    assert {"INT", "4711"} <= set(interrupts[0])
    assert result.jobs[0].io_bytes > 0


def test_a_late_fio_is_killed() -> None:
    host = Host(is_late=True)
    with pytest.raises(DeadlineExceeded):
        run(host)
    assert host.killed == 1


def test_a_run_that_only_reads_forbids_fio_to_write() -> None:
    host = Host(report=recorded("eio.json"))
    Fio(host, CLOCK).run(replace(RUN, status_s=0.5), SOON)
    (started,) = [argv for argv in host.ran if "fio" in argv and argv[0] == "sh"]
    assert {"--readonly", "--status-interval=500ms", "--output-format=json+"} <= set(started)


def test_the_start_is_stamped_on_the_runs_clock() -> None:
    result = Fio(Host(report=recorded("eio.json")), CLOCK).run(RUN, SOON)
    assert result.started_ns == CLOCK.now_ns()
    assert result.time_error_s == 0.002


def test_a_job_is_found_by_name() -> None:
    result = Fio(Host(report=recorded("eio.json")), CLOCK).run(RUN, SOON)
    assert result.job("faulty") is result.jobs[0]
    with pytest.raises(KeyError, match="other"):
        result.job("other")
