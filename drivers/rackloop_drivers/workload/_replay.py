"""Replay of requests through real fio, each at its own moment."""

from __future__ import annotations

import io
import math
import shlex
from dataclasses import dataclass
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rackloop.abilities import BlockDevice, WritableDrive
from rackloop.clock import Deadline
from rackloop.errors import GuardRefused, ProductFailed, ToolError
from rackloop_drivers.workload._fio import Fio, RunningFio
from rackloop_drivers.workload._fio_job import GO_ON, device_options, job_file
from rackloop_drivers.workload._fio_result import FioJobResult, FioResult
from rackloop_drivers.workload._fio_series import require_whole_lines
from rackloop_drivers.workload._replay_requests import Planned
from rackloop_traces import Op
from rackloop_traces.lateness import Lateness, judge_lateness

if TYPE_CHECKING:
    import polars

# Fewer start sooner; with more, each has fewer requests that an earlier late one can delay.
_FEWEST_JOBS = 64
MAX_JOBS = 2048
_EACH = 8
# How many requests can be under way at once where each job has several.
LANES = 64
# What a stamp of fio's logs is good to, taken in the middle of the two milliseconds it may stand for.
LOG_RESOLUTION_NS = 1_000_000

_READY_S = 1.0
_JOB_READY_S = 0.0015
_SETUP_S = 0.3
_JOB_SETUP_S = 0.004
_LATE_START_S = 0.1
# A start of fio and its end take less on a host that has time: 0.3 s or so.
_SOON_MS = 400
_ACTIONS = {Op.READ: "read", Op.WRITE: "write", Op.FLUSH: "sync"}

# Writes each job's iolog and says when the first request is due, in microseconds of the Unix epoch: later on a host
# whose processors are wanted by many or are slow, up to ten times, by what another start of fio took there just before.
#
# fio waits from the last issue, so that every late one delays all that follow; but before a job's first action it has
# issued nothing, its clock counts from 0, and the wait ends at a moment of the wall clock. Hence many jobs with few
# requests each. The ignored "wait" lets the next stamp count; stamps that go back, after "add", wait for nothing.
#
# Every wait, one for each half second, ends a little late on any host, and what fio does until it has issued the
# request comes on top; 200 reads of the device's first block a millisecond apart tell by how much, and the stamps are
# that much closer together.
_PREPARE = r"""if chrt --rr --pid 1 $$ 2>/dev/null; then how=real-time; fi
awk 'BEGIN {
  print "fio version 3 iolog\n1 d add\n1 d open"
  for (n = 1; n <= 200; n++) print 1 + n * 1000, "d read 0 4096"
}' > NAME.calibration &&
began=$(date +%s%N) &&
took=$(fio --name=calibration OPTIONS --thread --iodepth=1 --read_iolog=NAME.calibration --output-format=json |
  sed -n 's/.*"job_runtime" : \([0-9]*\).*/\1/p') &&
late=$((took > 200 && took < 300 ? (took - 200) * 5 : 0)) &&
now=$(date +%s%N) && start=$(((now - began) / 1000000 - took)) &&
said=$((now / 1000 + LEAD * (start < SOON ? SOON : start < 10 * SOON ? start : 10 * SOON) / SOON)) &&
awk -v base="$said" -v late="$late" '
$1 == "@" {
  if (log_name) close(log_name)
  log_name = "NAME." $2 ".iolog"
  printf "fio version 3 iolog\n1 d wait 0 0\n%.0f d add\n1 d open\n", base + $3 + 1 > log_name
  due = out = 1
  next
}
{
  gap = $1 - due - late * (1 + int(($1 - due) / 500000))
  due = $1
  if (gap > 0) out += gap
  $1 = sprintf("%.0f", out)
  print > log_name
}' NAME.feed && said="$said $how"
"""


@dataclass(frozen=True, kw_only=True)
class FioReplay:
    """A planned stretch of a trace on a device; what :meth:`Fio.start` runs.

    Up to 2048 jobs take the requests in turns, each job one request at a time: fio times a completion when it comes,
    and as many can be under way as there are jobs at that moment, 64 where a job has several. ``status_s`` is as for
    FioRun. Raises GuardRefused where the requests write and ``device`` is no WritableDrive.
    """

    device: BlockDevice | WritableDrive
    planned: Planned
    status_s: float | None = None

    def __post_init__(self) -> None:
        if self.writes and not isinstance(self.device, WritableDrive):
            raise GuardRefused(
                self.device.probe_target(),
                ["the trace writes, and a replay of it needs a WritableDrive, which the guard alone can mint"],
            )

    @property
    def block_device(self) -> BlockDevice:
        """The device, writable or not."""
        return self.device.device if isinstance(self.device, WritableDrive) else self.device

    @property
    def engines(self) -> frozenset[str]:
        """The I/O engine that the device asks for."""
        return frozenset({self.block_device.fio_options()["ioengine"]})

    @property
    def writes(self) -> bool:
        """Whether the replay changes what is on the device."""
        return self.planned.writes

    @property
    def interval_s(self) -> None:
        """None: every request is logged."""

    @cached_property
    def jobs(self) -> list[polars.DataFrame]:
        """The requests of each job, with the jobs in the order of their first requests."""
        import polars as pl

        requests = self.planned.requests
        each = math.ceil(requests.height / min(MAX_JOBS, max(_FEWEST_JOBS, requests.height // _EACH)))
        # fio refuses an iolog of flushes alone: each goes with the request before it.
        turn = ((pl.col("op") != int(Op.FLUSH)).cast(pl.Int64).cum_sum() - 1).clip(lower_bound=0)
        job = turn if each == 1 else turn // (LANES * each) * LANES + turn % LANES
        return requests.with_columns(job=job).partition_by("job", maintain_order=True)

    @property
    def lead_s(self) -> float:
        """The time from its start, on an idle host, to fio's first request: its jobs must be ready by then."""
        return self._ready_s + _SETUP_S + _JOB_SETUP_S * len(self.jobs)

    @property
    def _ready_s(self) -> float:
        """The time from a job's start to its first request, by fio's clock, which starts when it has read all jobs."""
        return _READY_S + _JOB_READY_S * len(self.jobs)

    def files(self, name: str) -> dict[str, str]:
        """The job file, and the requests of all jobs, which the host makes iologs of."""
        return {f"{name}.fio": self._job_file(name), f"{name}.feed": "".join(map(_feed, self.jobs))}

    def preparation(self, name: str) -> str:
        """Make an iolog for each job, and choose the moment of the first request."""
        options = " ".join(shlex.quote(f"--{key}={value}") for key, value in self._device_options().items())
        script = _PREPARE.replace("NAME", name).replace("LEAD", str(round(self.lead_s * 1e6)))
        return script.replace("SOON", str(_SOON_MS)).replace("OPTIONS", options)

    def log_names(self, log_name: str) -> dict[str, tuple[int, str]]:
        """The one log of all jobs."""
        return {f"{log_name}_clat.log": (0, "clat")}

    def _job_file(self, name: str) -> str:
        sections = {
            "global": {
                **self._device_options(),
                "thread": "1",
                "group_reporting": "1",
                "allow_file_create": "0",
                **GO_ON,
                "iodepth": "1",
                "clocksource": "gettimeofday",
                "write_lat_log": name,
                "per_job_logs": "0",
                "log_offset": "1",
                "log_unix_epoch": "1",
                "disable_lat": "1",
                "disable_slat": "1",
            }
        }
        for number, job in enumerate(self.jobs):
            # Few wait at a time, for each looks at the clock every half second; but none is made in a hurry.
            begins_s = job["due_ns"][0] / 1e9 + self.lead_s - self._ready_s
            sections[f"r{number}"] = {
                "read_iolog": f"{name}.{number}.iolog",
                "startdelay": f"{max(0, math.floor(begins_s * 1000))}ms",
            }
        return job_file(sections)

    def _device_options(self) -> dict[str, str]:
        options = device_options(self.block_device)
        return {**options, "direct": "1", "replay_redirect": options.get("filename", "d")}


def _feed(job: polars.DataFrame) -> str:
    """A job's requests as lines of its iolog, after a line with its number and when its first is due."""
    import polars as pl

    us = pl.col("due_ns") // 1000
    lines = job.select(
        stamp=us - us.first() + 1,
        file=pl.lit("d"),
        action=pl.col("op").replace_strict({int(op): action for op, action in _ACTIONS.items()}),
        offset="offset_bytes",
        # fio would take the size of a flush for one of its block sizes.
        size=pl.when(pl.col("op") == int(Op.FLUSH)).then(0).otherwise(pl.col("size_bytes")),
    )
    return f"@ {job['job'][0]} {job['due_ns'][0] // 1000}\n" + lines.write_csv(separator=" ", include_header=False)


@dataclass(frozen=True)
class ReplayResult:
    """The result of a replay. ``job`` has fio's totals and latencies of all requests.

    ``began_ns`` is when the first request was due, on the run's clock, off by at most ``time_error_s``. ``requests``
    are those that completed, as fio logged them: ``reached_ns`` (from that moment, good to a millisecond),
    ``latency_ns``, ``op``, ``offset_bytes``, ``size_bytes``.
    """

    planned: Planned
    job: FioJobResult
    began_ns: int
    time_error_s: float
    requests: polars.DataFrame

    def lateness(self) -> Lateness:
        """The lateness of the requests by fio's own log, which has those that completed; flushes are left out.

        Raises ProductFailed where all that came failed, ToolError where fio did none.
        """
        due = self.planned.requests.filter(self.planned.requests["op"] != int(Op.FLUSH))
        if self.requests.is_empty() and self.job.total_err:
            raise ProductFailed(f"{self.job.total_err} requests failed and none completed: {self.job.error_text}")
        if self.requests.is_empty():
            raise ToolError(f"fio completed none of {due.height} requests, and says not why")
        return judge_lateness(due, self.requests, resolution_ns=LOG_RESOLUTION_NS)


class RunningReplay:
    """A replay under way. Leaving a ``with`` block kills it where it still runs.

    ``is_real_time`` says whether fio was allowed real-time priority, without which a busy host makes it late.
    """

    def __init__(self, fio: Fio, replay: FioReplay, deadline: Deadline) -> None:
        self._replay = replay
        self._running: RunningFio = fio.start(replay, deadline)
        due_us, *how = self._running.said.split()
        self._due_unix_s = int(due_us) / 1e6
        self.is_real_time = bool(how)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running.kill()

    @property
    def began_ns(self) -> int:
        """The moment at which the first request is due, on the run's clock."""
        return self._running.started_ns + round((self._due_unix_s - self._running.began_unix_s) * 1e9)

    def progress(self, deadline: Deadline) -> tuple[FioResult, ...]:
        """The reports of fio since the last call; see :meth:`RunningFio.progress`."""
        return self._running.progress(deadline)

    def wait(self, deadline: Deadline) -> ReplayResult:
        """Wait for the last request. Raises ToolError where fio failed or was not ready for the first in time.

        Raises ClockUnknown where the host's wall clock, by which each request waits and is stamped, was set meanwhile.
        """
        result = self._running.wait(deadline)
        time_error_s = max(result.time_error_s, self._running.read_clock_again(deadline, enough_s=0.0))
        (log,) = self._running.logs.values()
        requests = _logged(log, self._due_unix_s)
        job = result.jobs[0]
        # One that failed is in no log, and what was due first may be among them.
        if not job.total_err and (late_s := self._first_late_s(requests)) > _LATE_START_S:
            raise ToolError(
                f"fio issued its first request {late_s:.3g} s late: the host is too busy to replay; give it less to do"
            )
        return ReplayResult(self._replay.planned, job, self.began_ns, time_error_s, requests)

    def _first_late_s(self, reached: polars.DataFrame) -> float:
        """The time from when the first read or write was due, which a flush may go before, until one was issued."""
        if reached.is_empty():
            return 0.0
        planned = self._replay.planned.requests
        due_ns = planned.filter(planned["op"] != int(Op.FLUSH))["due_ns"][0]
        return int(reached.sort("reached_ns")["reached_ns"][0] - due_ns) / 1e9


def _logged(log: str, due_unix_s: float) -> polars.DataFrame:
    """The entries of fio's completion log: milliseconds, latency in ns, direction, size, offset, priority."""
    import polars as pl

    require_whole_lines(log)
    names = ("unix_ms", "latency_ns", "op", "size_bytes", "offset_bytes", "priority")
    schema = dict.fromkeys(names, pl.Int64)
    if not log:
        return pl.DataFrame(schema=schema | {"reached_ns": pl.Int64})
    try:
        rows = pl.read_csv(io.StringIO(log.replace(" ", "")), has_header=False, schema=schema)
    except pl.exceptions.PolarsError as error:
        raise ToolError(f"fio's log of the replay cannot be read ({error}): did the disk fill up?") from error
    due_us = round(due_unix_s * 1e6)
    reached = (pl.col("unix_ms") * 1000 + 1000 - due_us) * 1000 - pl.col("latency_ns")
    return rows.with_columns(reached_ns=reached, op=pl.col("op").cast(pl.UInt8))
