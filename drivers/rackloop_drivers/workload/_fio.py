"""fio, wherever an executor runs commands."""

from __future__ import annotations

import errno
import json
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import PurePosixPath
from types import TracebackType
from typing import Any, Protocol, Self
from weakref import WeakKeyDictionary

from rackloop.abilities import Completed, Executor, Process
from rackloop.clock import Clock, Deadline
from rackloop.errors import DeadlineExceeded, ToolError
from rackloop_drivers.host_tools import name_of
from rackloop_drivers.workload._fio_clock import ENOUGH_S, WallReading, refined_reading, wall_reading
from rackloop_drivers.workload._fio_records import tell
from rackloop_drivers.workload._fio_result import (
    DIRECTIONS,
    FioJobResult,
    FioResult,
    complete_documents,
    failed_by,
    last_document,
    last_text,
    parse_jobs,
    verify_errors,
)
from rackloop_drivers.workload._fio_series import (
    LogEntry,
    longest_latency,
    parse_histogram_log,
    parse_latency_log,
    throughput,
)
from rackloop_drivers.workload._fio_shell import ASK, COLLECT, NEXT_REPORT, NOT_THERE, REMOVE, SIGNAL, START

OLDEST = (3, 31)

_VERSION = re.compile(r"fio-(\d+)\.(\d+)")
_SAID_CHARACTERS = 2000
_INTERRUPTED = 128
_KILLED = 137
_WHY_KILLED = (
    "; was the server out of memory, or did this machine stand still for so long that the server's watchdog ended what "
    "it had begun there?"
)
# What ends a job whose NBD connection is closed; no drive answers with these.
_NOT_OF_THE_DRIVE = frozenset({-1, errno.ENOTCONN, errno.ECONNRESET, errno.EPIPE, errno.ESHUTDOWN})
# A log's stamp is two times rounded down to milliseconds, when the job began and how long it ran since.
_LOG_ERROR_S = 0.002

# fio's first, the one that reports, and one that does I/O.
_THREADS_AT_WORK = 3
_REPORT_AGAIN_S = 0.05

_runs = count(1)
# The version and the engines of the fio where each executor runs commands.
_known: WeakKeyDictionary[Executor, tuple[str, frozenset[str]]] = WeakKeyDictionary()


class FioWork(Protocol):
    """The work of one fio: the files it reads, the job file ``name.fio`` among them, and the logs it writes.

    ``preparation`` is what the shell does in their folder just before fio starts; it may leave words in ``$said``.
    """

    @property
    def engines(self) -> frozenset[str]: ...
    @property
    def writes(self) -> bool: ...
    @property
    def interval_s(self) -> float | None: ...
    @property
    def status_s(self) -> float | None: ...
    def files(self, name: str) -> dict[str, str]: ...
    def preparation(self, name: str) -> str: ...
    def log_names(self, log_name: str) -> dict[str, tuple[int, str]]: ...


@dataclass(frozen=True)
class _Start:
    """The process of fio, and the moment of its start."""

    pid: int
    wall: WallReading
    said: str


class Fio:
    """Runs fio where ``executor`` does; ``clock`` is the run's clock, which results are stamped with.

    Every call raises ToolError when fio is missing, older than 3.31, has not the engine that a device needs, or
    fails itself. I/O that fails is no such failure: it is counted in the result's ``total_err``.
    """

    def __init__(self, executor: Executor, clock: Clock) -> None:
        self._executor = executor
        self._clock = clock

    def version(self, deadline: Deadline) -> str:
        """The version of fio, as ``3.33``. Asked once of an executor."""
        return self._found(deadline)[0]

    def engines(self, deadline: Deadline) -> frozenset[str]:
        """The I/O engines this fio was built with. Asked once of an executor."""
        return self._found(deadline)[1]

    def _found(self, deadline: Deadline) -> tuple[str, frozenset[str]]:
        if (known := _known.get(self._executor)) is None:
            oldest = ".".join(map(str, OLDEST))
            asked = self._executor.run(("sh", "-c", ASK), deadline)
            if asked.status == NOT_THERE:
                raise ToolError(f"fio was not found where the I/O runs: install {oldest} or later (apt install fio)")
            # The engines have a heading.
            printed, _, *engines = *asked.stdout.strip().split("\n"), ""
            version = _VERSION.match(printed)
            if version is None:
                raise ToolError(f"fio --version printed {printed!r}, not a version: is another program called fio?")
            if (int(version[1]), int(version[2])) < OLDEST:
                raise ToolError(f"{printed} is too old: install {oldest} or later where the I/O runs")
            known = f"{version[1]}.{version[2]}", frozenset(name.strip() for name in engines if name.strip())
            _known[self._executor] = known
        return known

    def run(self, run: FioWork, deadline: Deadline) -> FioResult:
        """Run to the end. Raises DeadlineExceeded, after killing fio, when that is not in time."""
        with self.start(run, deadline) as running:
            return running.wait(deadline)

    def start(self, run: FioWork, deadline: Deadline) -> RunningFio:
        """Start the I/O in the background; the deadline is for starting alone."""
        version = self.version(deadline)
        missing = run.engines - self.engines(deadline)
        if missing:
            # Another may be installed meanwhile.
            del _known[self._executor]
            raise ToolError(
                f"fio {version} has no engine {', '.join(sorted(missing))}: install one built with it "
                "(Debian's has nbd; a build of your own needs libnbd-dev)"
            )
        name = f"fio-{next(_runs)}"
        files = run.files(name)
        paths = [self._executor.put_text(file, text) for file, text in files.items()]
        tell(name, "fio", files[f"{name}.fio"])
        folder = str(PurePosixPath(paths[0]).parent)
        argv = ["fio", "--output-format=json+", f"--output={name}.json"]
        if not run.writes:
            argv.append("--readonly")
        if run.status_s is not None:
            argv.append(f"--status-interval={round(run.status_s * 1000)}ms")
        before_ns = self._clock.now_ns()
        started = ("sh", "-c", START, "sh", folder, run.preparation(name), *argv, f"{name}.fio")
        process = self._executor.start(started)
        try:
            line = self._first_line(process, deadline)
        except BaseException:
            process.kill()
            raise
        after_ns = self._clock.now_ns()
        pid, _, rest = line.partition(" ")
        unix_ns, _, said = rest.partition(" ")
        try:
            wall = wall_reading(unix_ns, before_ns, after_ns)
        except BaseException:
            process.kill()
            raise
        start = _Start(int(pid), wall, said)
        return RunningFio(self._executor, self._clock, process, run, name, folder, start)

    def _first_line(self, process: Process, deadline: Deadline) -> str:
        """The line of the shell that becomes fio. Raises ToolError with what that said where it ended before."""
        if (line := process.read_line(deadline)) is not None:
            return line
        ended = process.wait(deadline)
        said = ended.stderr.strip()[-_SAID_CHARACTERS:] or f"status {ended.status}"
        raise ToolError(f"fio was not started on {name_of(self._executor)}: {said}")


class RunningFio:
    """A fio in the background, from :meth:`Fio.start`. Leaving a ``with`` block kills what still runs.

    ``logs`` are the texts of fio's logs by name, once it has ended.
    """

    def __init__(
        self,
        executor: Executor,
        clock: Clock,
        process: Process,
        run: FioWork,
        name: str,
        folder: str,
        start: _Start,
    ) -> None:
        self._executor = executor
        self._clock = clock
        self._process = process
        self._run = run
        self._name = name
        self._folder = folder
        self._start = start
        self._wall = start.wall
        self._reported = 0
        self._last_report: dict[str, Any] | None = None
        self._is_stopped = False
        self.ended_by_itself = False
        self._final: FioResult | None = None
        self.logs: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    @property
    def started_ns(self) -> int:
        """The start of fio, on the run's clock; known better once it has ended, or its clock was read again."""
        return self._wall.run_ns

    def read_clock_again(self, deadline: Deadline, *, enough_s: float = ENOUGH_S) -> float:
        """The error of ``started_ns`` in seconds, once the host's clock was read again if it was above ``enough_s``.

        Raises ClockUnknown where the clock was set meanwhile.
        """
        if self._wall.error_s > enough_s:
            self._wall = refined_reading(self._wall, self._executor, self._clock, deadline)
        return self._wall.error_s

    @property
    def said(self) -> str:
        """The preparation's own report."""
        return self._start.said

    @property
    def began_unix_s(self) -> float:
        """The start of fio, on the wall clock of its host."""
        return self._start.wall.unix_s

    def shell(self, script: str, deadline: Deadline) -> Completed:
        """Run a shell script in the folder that fio runs in; ``$1`` is the run's name, ``$2`` the process to signal."""
        folder, pid = self._folder, str(self._start.pid)
        return self._executor.run(("sh", "-c", f'cd "$3" && {script}', "sh", self._name, pid, folder), deadline)

    def progress(self, deadline: Deadline) -> tuple[FioResult, ...]:
        """The status reports since the last call, oldest first: totals so far, without series.

        Empty when none came, and always for a run without ``status_s``.
        """
        printed = self._executor.run(
            ("tail", "-c", f"+{self._reported + 1}", f"{self._folder}/{self._name}.json"), deadline
        ).stdout
        return self._taken(printed)

    def _taken(self, printed: str) -> tuple[FioResult, ...]:
        """The whole reports in what fio printed since the last ones that were taken."""
        found, end = complete_documents(printed)
        self._reported += len(printed[:end].encode())
        self._last_report = found[-1] if found else self._last_report
        return tuple(self._result(parse_jobs(document)) for document in found)

    def wait_for_io(self, deadline: Deadline) -> None:
        """Return once every job has completed I/O, or fio has ended. Raises DeadlineExceeded when that is not in time.

        The reports seen here are no longer given by :meth:`progress`. A run with ``status_s`` is not asked for any: one
        that is signalled when another of its threads gets the signal never reports again.
        """
        late = "fio did no I/O in time: look at the load of the host and at the drives"
        try:
            has_done_io = deadline.poll(lambda: self._has_done_io(deadline), every_s=_REPORT_AGAIN_S)
        except DeadlineExceeded as error:
            raise DeadlineExceeded(late) from error
        if not has_done_io:
            raise DeadlineExceeded(late)

    def _has_done_io(self, deadline: Deadline) -> bool:
        reports = self._next_reports(deadline)
        return reports is None or any(all(job.transfers or job.total_err for job in one.jobs) for one in reports)

    def _next_reports(self, deadline: Deadline) -> tuple[FioResult, ...] | None:
        """The reports that come next, as far as they are there; None when fio has ended."""
        if self._run.status_s is None:
            return self.progress(deadline) if self._signal("USR1", deadline, threads=_THREADS_AT_WORK) else None
        said = self.shell(NEXT_REPORT.replace("BYTES", str(self._reported)), deadline)
        return self._taken(said.stdout) if said.status == 0 else None

    def stop(self, deadline: Deadline) -> FioResult:
        """End the I/O now, letting what is in flight complete, and give the result up to here.

        ``ended_by_itself`` says from then on whether it was over before, by its runtime or by an error.
        """
        self._is_stopped = True
        self.ended_by_itself = not self._signal("INT", deadline)
        return self.wait(deadline)

    def wait(self, deadline: Deadline) -> FioResult:
        """Wait for fio to end. Raises DeadlineExceeded, and leaves it running, when that is not in time.

        Raises ClockUnknown where there are series and the host's wall clock was set while it ran.
        """
        if self._final is None:
            ended = self._process.wait(deadline)
            if self._run.interval_s is not None:
                self._wall = refined_reading(self._wall, self._executor, self._clock, deadline)
            self.logs, printed = self._collect(deadline)
            tell(self._name, "json", last_text(printed) or json.dumps(self._last_report or {}))
            jobs = self._jobs(ended, printed)
            documents, _ = complete_documents(printed)
            reports = documents or ([self._last_report] if self._last_report is not None else [])
            result = self._result(tuple(self._with_series(*numbered, self.logs) for numbered in enumerate(jobs)))
            self._final = replace(
                result,
                verify_err=verify_errors(ended.stderr, jobs),
                failed=failed_by(reports, self._start.wall.unix_s),
            )
            # What is left for want of time goes with the folder.
            with suppress(DeadlineExceeded):
                names = self._run.log_names(self._name)
                self._executor.run(("sh", "-c", REMOVE, "sh", self._folder, self._name, *names), deadline)
        return self._final

    def kill(self) -> None:
        """End fio without a result; does nothing when it has ended."""
        self._process.kill()

    def _signal(self, name: str, deadline: Deadline, *, threads: int = 1) -> bool:
        """Signal fio as soon as that harms nothing and it has so many threads; False when it has ended."""
        argv = ("sh", "-c", SIGNAL, "sh", str(self._start.pid), name, str(threads))
        return self._executor.run(argv, deadline).status == 0

    def _collect(self, deadline: Deadline) -> tuple[dict[str, str], str]:
        """Fetch what fio wrote: its logs by name, and its report."""
        names = self._run.log_names(self._name)
        report = f"{self._name}.json"
        argv = ("sh", "-c", COLLECT, "sh", self._folder, report, str(self._reported + 1), *names)
        logs, _, printed = self._executor.run(argv, deadline).stdout.partition("@\n")
        by_name = (log.partition("\n") for log in logs.split("@")[1:])
        return {name: text for name, _, text in by_name}, printed

    def _jobs(self, ended: Completed, printed: str) -> tuple[FioJobResult, ...]:
        """The jobs of the report that fio ended with; ToolError unless fio itself did well.

        fio's status says nothing of the I/O: it is 0 after errors that fio may count and go on from. Other errors
        end their job, and then the status is small and the job has an errno. Anything else is fio's own failure,
        such as a connection that was refused, or closed under it, which has no errno or that of a socket.
        """
        how = f"ended with status {ended.status}" if ended.status >= 0 else f"was killed by signal {-ended.status}"
        said = ended.stderr.strip()[-_SAID_CHARACTERS:]
        tail = f"fio {how}{f' and said: {said}' if said else ''}"
        try:
            # The report that fio ended with may have been taken for one of its progress already.
            last = self._last_report if not printed.strip() else None
            jobs = parse_jobs(last or last_document(printed))
        except ToolError as error:
            raise ToolError(f"{error}; {tail}") from error
        is_done = ended.status == 0 or (self._is_stopped and ended.status == _INTERRUPTED)
        ended_by_io = 0 < ended.status < _INTERRUPTED and any(job.error for job in jobs)
        if not (is_done or ended_by_io) or any(job.error in _NOT_OF_THE_DRIVE for job in jobs):
            hint = _WHY_KILLED if ended.status == _KILLED else ""
            raise ToolError(f"fio gave up on {name_of(self._executor)}: {tail}{hint}")
        return jobs

    def _with_series(self, number: int, job: FioJobResult, logs: dict[str, str]) -> FioJobResult:
        interval_s = self._run.interval_s
        if interval_s is None:
            return job
        latencies: list[list[LogEntry]] = []
        histograms: list[list[LogEntry]] = []
        for name, (of_job, kind) in self._run.log_names(self._name).items():
            if of_job == number and kind == "clat":
                latencies.append(parse_latency_log(logs[name]))
            elif of_job == number:
                histograms.append(parse_histogram_log(logs[name]))
        began_s = self._start.wall.unix_s
        transfers = {
            direction: replace(
                transfer,
                throughput_bytes_per_s=throughput(_of(code, histograms), began_s, interval_s),
                longest_s=longest_latency(_of(code, latencies), began_s, interval_s),
            )
            for code, direction in enumerate(DIRECTIONS)
            if (transfer := job.transfers.get(direction)) is not None
        }
        return replace(job, transfers=transfers)

    def _result(self, jobs: tuple[FioJobResult, ...]) -> FioResult:
        return FioResult(jobs, self._wall.run_ns, self._wall.error_s + _LOG_ERROR_S)


def _of(code: int, threads: list[list[LogEntry]]) -> list[list[LogEntry]]:
    """The entries of one direction, thread by thread."""
    return [[entry for entry in entries if entry.direction == code] for entries in threads]
