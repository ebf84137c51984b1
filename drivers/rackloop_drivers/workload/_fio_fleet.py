"""fio on several hosts at once, its I/O begun at one moment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType
from typing import Self, TypeVar

from rackloop.clock import Clock, Deadline
from rackloop.errors import BadInput, RackloopError, ToolError
from rackloop_drivers.workload._fio import Fio, RunningFio
from rackloop_drivers.workload._fio_job import FioRun, job_file
from rackloop_drivers.workload._fio_result import FioResult
from rackloop_drivers.workload._fio_shell import STILL_RUNS

_T = TypeVar("_T")

_AHEAD_S = 0.25
_AHEAD_PER_HOST_S = 0.05

# What every thread of every job runs before its first I/O: it says that it is ready, waits for the moment to be named,
# then for the moment. A fio that was killed leaves none of these behind.
_HOLD = r""": > "NAME.ready.$$"
while [ ! -e NAME.go ]; do
  kill -0 "$PPID" 2>/dev/null || exit 1
  sleep 0.05
done
read -r at < NAME.go
left=$((at - $(date +%s%N)))
if [ "$left" -gt 0 ]; then sleep "$((left / 1000000000)).$(printf %09d $((left % 1000000000)))"; fi
date +%s%N >> NAME.began
"""
# What is asked so often starts no process: fio is being loaded meanwhile.
_UNTIL_READY = f"""ready() {{ [ -e "$1" ] && [ $# -ge COUNT ]; }}
until ready "$1".ready.*; do
  {STILL_RUNS} || exit 1
  sleep 0.01
done"""
_RELEASE = """echo AT > "$1.tmp" && mv "$1.tmp" "$1.go" """


@dataclass(frozen=True)
class _Held:
    """A run whose jobs are ready and do nothing until they are let go; what Fio.start runs for a fleet."""

    run: FioRun

    @property
    def engines(self) -> frozenset[str]:
        return self.run.engines

    @property
    def writes(self) -> bool:
        return self.run.writes

    @property
    def interval_s(self) -> float | None:
        return self.run.interval_s

    @property
    def status_s(self) -> float | None:
        return self.run.status_s

    @property
    def threads(self) -> int:
        return sum(job.numjobs for job in self.run.jobs)

    def files(self, name: str) -> dict[str, str]:
        sections = self.run.sections(name)
        sections["global"]["exec_prerun"] = f"sh {name}.hold"
        return {f"{name}.fio": job_file(sections)}

    def preparation(self, name: str) -> str:
        """Write what holds the jobs, which would take longer as a file that is brought there."""
        hold = _HOLD.replace("NAME", name)
        return f"{self.run.preparation(name)}\ncat >{name}.hold <<'END'\n{hold}END"

    def log_names(self, log_name: str) -> dict[str, tuple[int, str]]:
        """The run's logs, when each thread was let go, and where fio puts what the hold prints."""
        began = {f"{log_name}.began": (-1, "began")}
        return self.run.log_names(log_name) | began | {f"{job.name}.prerun.txt": (-1, "") for job in self.run.jobs}


@dataclass(frozen=True)
class FleetResult:
    """The results of the fios of a fleet, by host.

    ``agreed_ns`` is the moment they were to begin at, on the run's clock, ``began_s`` how long after it each host's
    last job was let go, by that host's own clock; the two clocks were read together to within ``time_error_s``.
    """

    results: Mapping[str, FioResult]
    agreed_ns: int
    began_s: Mapping[str, float]
    time_error_s: float

    @property
    def skew_s(self) -> float:
        """The time between the first and the last host's start, as far as their clocks tell."""
        return max(self.began_s.values()) - min(self.began_s.values())


class FioFleet:
    """Starts fio on several hosts, each an executor's, so that their I/O begins together.

    ``clock`` is the run's. A host has one fio of a fleet.
    """

    def __init__(self, hosts: Mapping[str, Fio], clock: Clock) -> None:
        if not hosts:
            raise BadInput("a fleet needs at least one host")
        self._hosts = dict(hosts)
        self._clock = clock

    def start(self, runs: Mapping[str, FioRun], deadline: Deadline) -> RunningFleet:
        """Start the run of each host, wait until all are ready, and let them go at one moment.

        Raises ToolError with every host that failed, once no fio of the fleet runs any more; BadInput for a run on a
        host that the fleet does not have.
        """
        if not runs or (unknown := set(runs) - set(self._hosts)):
            raise BadInput(
                f"a fleet of {', '.join(self._hosts)} cannot run on {', '.join(unknown) if runs else 'none'}"
            )
        lead_s = max(run.lead_s for run in runs.values())
        held = {host: _Held(replace(run, lead_s=lead_s)) for host, run in runs.items()}
        started: dict[str, RunningFio] = {}

        def begin(host: str) -> None:
            started[host] = self._hosts[host].start(held[host], deadline)
            script = _UNTIL_READY.replace("COUNT", str(held[host].threads))
            if started[host].shell(script, deadline).status != 0:
                started[host].wait(deadline)
                raise ToolError("fio ended before its first I/O")

        try:
            _on_all({host: partial(begin, host) for host in runs})
            errors = _on_all({host: partial(fio.read_clock_again, deadline) for host, fio in started.items()})
            agreed_ns = self._clock.now_ns() + round((_AHEAD_S + _AHEAD_PER_HOST_S * len(runs)) * 1e9)
            _on_all({host: partial(_release, fio, agreed_ns, deadline) for host, fio in started.items()})
        except BaseException:
            _kill(started)
            raise
        threads = {host: one.threads for host, one in held.items()}
        return RunningFleet(started, agreed_ns, max(errors.values()), threads)


class RunningFleet:
    """A fleet whose I/O has begun, or will at ``agreed_ns``. Leaving a ``with`` block kills what still runs.

    No host begins earlier than ``release_error_s`` before that: to this its clock was known when it was told.
    ``threads`` is how many each host's fio has.
    """

    def __init__(
        self, running: Mapping[str, RunningFio], agreed_ns: int, release_error_s: float, threads: Mapping[str, int]
    ) -> None:
        self.running = running
        self.agreed_ns = agreed_ns
        self.release_error_s = release_error_s
        self._threads = threads

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _kill(self.running)

    def progress(self, deadline: Deadline) -> dict[str, tuple[FioResult, ...]]:
        """The reports of each host since the last call; see :meth:`RunningFio.progress`."""
        return _on_all({host: partial(fio.progress, deadline) for host, fio in self.running.items()})

    def stop(self, deadline: Deadline) -> FleetResult:
        """End the I/O everywhere now and give the results up to here."""
        return self._result(_on_all({host: partial(fio.stop, deadline) for host, fio in self.running.items()}))

    def wait(self, deadline: Deadline) -> FleetResult:
        """Wait for every host. Raises ToolError with every host whose fio failed, or did not begin all its threads."""
        return self._result(_on_all({host: partial(fio.wait, deadline) for host, fio in self.running.items()}))

    def _result(self, results: Mapping[str, FioResult]) -> FleetResult:
        stamps = {host: _stamps(fio) for host, fio in self.running.items()}
        # fio leaves out a thread whose hold failed, and ends well.
        counts = {host: (len(began), self._threads[host]) for host, began in stamps.items()}
        if short := [f"{host}: {n} of {of} threads of fio began" for host, (n, of) in counts.items() if n < of]:
            raise ToolError(f"{'; '.join(short)}: is the disk full there, or are there too many processes?")
        began_s = {host: _began_s(fio, self.agreed_ns, max(stamps[host])) for host, fio in self.running.items()}
        error_s = max(result.time_error_s for result in results.values())
        return FleetResult(results, self.agreed_ns, began_s, error_s)


def _kill(running: Mapping[str, RunningFio]) -> None:
    """Kill every fio, also where one does not end: the last that raised is raised then."""
    with ExitStack() as killing:
        for fio in running.values():
            killing.callback(fio.kill)


def _release(fio: RunningFio, agreed_ns: int, deadline: Deadline) -> None:
    at_ns = round(fio.began_unix_s * 1e9) + agreed_ns - fio.started_ns
    told = fio.shell(_RELEASE.replace("AT", str(at_ns)), deadline)
    if told.status != 0:
        raise ToolError(f"fio could not be told when to begin: {told.stderr.strip() or f'status {told.status}'}")


def _stamps(fio: RunningFio) -> list[int]:
    """The moments at which its threads were let go, by its host's clock."""
    (stamps,) = (text for name, text in fio.logs.items() if name.endswith(".began"))
    return [int(stamp) for stamp in stamps.split() if stamp.isdecimal()]


def _began_s(fio: RunningFio, agreed_ns: int, last_ns: int) -> float:
    return (last_ns - fio.began_unix_s * 1e9 - (agreed_ns - fio.started_ns)) / 1e9


def _on_all(acts: Mapping[str, Callable[[], _T]]) -> dict[str, _T]:
    """Do all at once and return what each gave; ToolError, naming every host that failed, when they have ended."""
    with ThreadPoolExecutor(max_workers=len(acts)) as threads:
        doing = {host: threads.submit(act) for host, act in acts.items()}
    failed = {host: act.exception() for host, act in doing.items()}
    said = [f"{host}: {error}" for host, error in failed.items() if isinstance(error, RackloopError)]
    for error in failed.values():
        if error is not None:
            raise (ToolError("; ".join(said)) if isinstance(error, RackloopError) else error) from error
    return {host: act.result() for host, act in doing.items()}
