"""fio jobs: typed options, and the job file they make."""

from __future__ import annotations

import errno
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import quote

from rackloop.abilities import BlockDevice, WritableDrive
from rackloop.errors import BadInput, GuardRefused
from rackloop.seed import stream
from rackloop_drivers.workload._fio_load import (
    Arrivals,
    BlockShare,
    Bursts,
    block_mix_option,
    block_mix_problems,
    poisson_problems,
    poisson_rate,
)

_JOB_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
# A job file has no quoting: these end a value, or are replaced by fio (a comment, $VARIABLE, the next line).
_UNSAYABLE = re.compile(r"[;#$\n\r]")
_URI_CHARACTERS = "%/:?&=@[]+,~!'()*"
_MIN_INTERVAL_S = 0.01


class ReadWrite(StrEnum):
    """fio's ``rw``: the pattern of a job's I/O."""

    READ = "read"
    WRITE = "write"
    RANDREAD = "randread"
    RANDWRITE = "randwrite"
    READWRITE = "readwrite"
    RANDRW = "randrw"
    TRIM = "trim"
    RANDTRIM = "randtrim"


_READING = frozenset({ReadWrite.READ, ReadWrite.RANDREAD})
_MIXED = frozenset({ReadWrite.READWRITE, ReadWrite.RANDRW})


class SteadyMetric(StrEnum):
    """A measure of steady state in fio: the largest deviation from the mean, or the slope, of IOPS or bandwidth."""

    IOPS = "iops"
    IOPS_SLOPE = "iops_slope"
    BANDWIDTH = "bw"
    BANDWIDTH_SLOPE = "bw_slope"


@dataclass(frozen=True, kw_only=True)
class UntilSteady:
    """fio's own criterion for steady state, by which it ends a job before its ``runtime_s``.

    The criterion is held against a sliding window of ``window_s`` one-second means that begins ``ramp_s`` after the
    job: the deviation, or the slope a second, is at most ``limit_percent`` of their mean. Raises BadInput where fio
    could not judge by it.
    """

    metric: SteadyMetric
    limit_percent: float
    window_s: int
    ramp_s: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.limit_percent <= 100:
            raise BadInput(f"limit_percent is {self.limit_percent:g}, must be above 0 and at most 100")
        if self.window_s < 2 or self.ramp_s < 0:
            raise BadInput(
                f"a window of {self.window_s} s after {self.ramp_s} s: fio needs 2 s or more, after 0 or more"
            )

    def options(self) -> dict[str, str]:
        """The options of a job's section."""
        return {
            "steadystate": f"{self.metric}:{self.limit_percent!r}%",
            "steadystate_duration": f"{self.window_s}s",
            "steadystate_ramp_time": f"{self.ramp_s}s",
        }


@dataclass(frozen=True, kw_only=True)
class FioJob:
    """One section of a job file: I/O of one pattern on one device.

    ``runtime_s`` None means once over the region, or ``io_bytes`` of I/O on it, else the region again and again for
    that long. The region is ``size_bytes`` from ``offset_bytes``, by default all the rest of the device. A random
    pattern visits every block of it before it comes to one again; without ``random_map`` every draw is independent.
    ``rate_bytes_per_s`` and ``rate_iops`` bound each of ``numjobs`` threads in each direction; ``arrivals`` says when
    the I/Os of ``rate_iops`` are due. While fewer than ``iodepth`` are outstanding that is an open loop: what is due is
    issued, whatever the device makes of it; of I/Os at random fio keeps some 20,000 a second for each thread.
    ``bursts`` has pauses between stretches of I/O. ``block_mix`` are I/Os of several sizes, in the place of
    ``block_size_bytes``. ``read_percent`` is the share of reads in a mixed pattern.
    ``verify`` is a checksum of fio's (``crc32c``, ``sha256``): jobs that write put it into every block and read it
    back, jobs that read check what an earlier job with the same seed, block size and region left. A job that writes
    reads back once it has written all of its region, or each ``verify_backlog`` blocks. ``until_steady`` ends a job
    with ``runtime_s`` early. ``seed`` None means one drawn from the run's seed and the job's name.

    Raises BadInput for what fio could not do, and GuardRefused when a job that writes or trims is given anything
    but a WritableDrive.
    """

    name: str
    device: BlockDevice | WritableDrive
    rw: ReadWrite
    block_size_bytes: int = 4096
    iodepth: int = 1
    numjobs: int = 1
    runtime_s: float | None = None
    size_bytes: int | None = None
    offset_bytes: int = 0
    io_bytes: int | None = None
    random_map: bool = True
    rate_bytes_per_s: int | None = None
    rate_iops: int | None = None
    arrivals: Arrivals = Arrivals.LINEAR
    bursts: Bursts | None = None
    block_mix: tuple[BlockShare, ...] = ()
    read_percent: int | None = None
    verify: str | None = None
    verify_backlog: int | None = None
    until_steady: UntilSteady | None = None
    direct: bool = True
    seed: int | None = None

    def __post_init__(self) -> None:
        if self.writes and not isinstance(self.device, WritableDrive):
            raise GuardRefused(
                self.device.probe_target(),
                [f"fio job {self.name} has rw={self.rw} and needs a WritableDrive, which the guard alone can mint"],
            )
        if problems := self._problems():
            raise BadInput(f"fio job {self.name!r}: " + "; ".join(problems))

    @property
    def writes(self) -> bool:
        """Whether the job changes what is on the device."""
        return self.rw not in _READING

    @property
    def block_device(self) -> BlockDevice:
        """The device, writable or not."""
        return self.device.device if isinstance(self.device, WritableDrive) else self.device

    @property
    def region_bytes(self) -> int:
        """The part of the device that the job covers, in bytes."""
        if self.size_bytes is not None:
            return self.size_bytes
        return self.block_device.size_bytes - self.offset_bytes

    @property
    def largest_block_bytes(self) -> int:
        """The size of the largest I/O."""
        return max((share.size_bytes for share in self.block_mix), default=self.block_size_bytes)

    @property
    def engine(self) -> str:
        """The I/O engine that the device asks for."""
        return self.block_device.fio_options()["ioengine"]

    def options(self, run_seed: int) -> dict[str, str]:
        """The section's options, in the order they are written; bytes and milliseconds, no suffix but ``ms``."""
        options = {
            **device_options(self.block_device),
            "rw": str(self.rw),
            **({"bssplit": block_mix_option(self.block_mix)} if self.block_mix else {"bs": str(self.block_size_bytes)}),
            "iodepth": str(self.iodepth),
            "numjobs": str(self.numjobs),
            "offset": str(self.offset_bytes),
            "size": str(self.region_bytes),
            "direct": str(int(self.direct)),
            "randseed": str(self._seed(run_seed)),
        }
        if self.runtime_s is not None:
            options |= {"time_based": "1", "runtime": f"{round(self.runtime_s * 1000)}ms"}
        if self.io_bytes is not None:
            options["io_size"] = str(self.io_bytes)
        if not self.random_map:
            options["norandommap"] = "1"
        if self.rate_bytes_per_s is not None:
            options["rate"] = str(self.rate_bytes_per_s)
        if self.rate_iops is not None:
            is_random = self.arrivals is Arrivals.POISSON
            options["rate_iops"] = str(poisson_rate(self.rate_iops) if is_random else self.rate_iops)
        if self.arrivals is not Arrivals.LINEAR:
            options["rate_process"] = str(self.arrivals)
        if self.bursts is not None:
            options |= self.bursts.options()
        if self.read_percent is not None:
            options["rwmixread"] = str(self.read_percent)
        if self.until_steady is not None:
            options |= self.until_steady.options()
        if self.verify is not None:
            # State files would be left in the current directory; one bad block must not hide the next.
            options |= {"verify": self.verify, "verify_fatal": "0", "verify_state_save": "0"}
        if self.verify_backlog is not None:
            options["verify_backlog"] = str(self.verify_backlog)
        return options

    def _seed(self, run_seed: int) -> int:
        # fio multiplies with the seed, so 0 would give every job the same offsets.
        return self.seed if self.seed is not None else stream(run_seed, "fio", self.name).randrange(1, 2**31)

    def _problems(self) -> list[str]:
        least = {
            "block_size_bytes": (self.block_size_bytes, 512),
            "iodepth": (self.iodepth, 1),
            "numjobs": (self.numjobs, 1),
            "runtime_s": (self.runtime_s, 0.001),
            "offset_bytes": (self.offset_bytes, 0),
            "io_bytes": (self.io_bytes, self.block_size_bytes),
            "rate_bytes_per_s": (self.rate_bytes_per_s, 1),
            "rate_iops": (self.rate_iops, 1),
            "verify_backlog": (self.verify_backlog, 1),
            "seed": (self.seed, 1),
        }
        problems = [
            f"{name} is {given:g}, must be at least {minimum:g}"
            for name, (given, minimum) in least.items()
            if given is not None and given < minimum
        ]
        if not _JOB_NAME.fullmatch(self.name) or self.name == "global":
            problems.append("a name has up to 64 letters, digits, '_', '.', '-' and is not 'global'")
        end, size = self.offset_bytes + self.region_bytes, self.block_device.size_bytes
        if end > size:
            problems.append(
                f"the region ends at byte {end}, the device at {size}: make size_bytes or offset_bytes less"
            )
        if self.region_bytes < (largest := self.largest_block_bytes):
            problems.append(f"a region of {self.region_bytes} bytes has no room for a block of {largest}")
        problems += block_mix_problems(self.block_mix)
        if self.arrivals is Arrivals.POISSON and self.rate_iops is None:
            problems.append("arrivals of a Poisson process need rate_iops: how many are due a second")
        if self.arrivals is Arrivals.POISSON and self.rate_iops is not None and self.rate_iops > 0:
            problems += [f"{problem}, give more threads (numjobs)" for problem in poisson_problems(self.rate_iops)]
        if self.arrivals is Arrivals.POISSON and self.bursts is not None:
            problems.append("arrivals and bursts both say when an I/O is due: give one")
        if self.block_mix and self.random_map and str(self.rw).startswith("rand"):
            problems.append("block_mix needs random_map=False: where a part was visited, fio would cut large blocks")
        if self.block_mix and self.verify is not None:
            problems.append("verify needs one block size: leave out block_mix")
        if self.io_bytes is not None and self.runtime_s is not None:
            problems.append("io_bytes and runtime_s both say when the job ends: give one")
        if self.read_percent is not None and (self.rw not in _MIXED or not 0 <= self.read_percent <= 100):
            problems.append(f"read_percent is 0 to 100 and for rw=readwrite and rw=randrw, not for {self.rw}")
        if self.until_steady is not None and self.runtime_s is None:
            problems.append("until_steady needs runtime_s: when to end a job that never gets there")
        if self.verify_backlog is not None and (self.verify is None or not self.writes):
            problems.append("verify_backlog is for jobs that write and verify")
        if self.verify is not None and not self.verify.isalnum():
            problems.append(f"verify is the name of one of fio's checksums, such as crc32c, not {self.verify!r}")
        if self.verify is not None and self.writes and self.numjobs > 1:
            problems.append("verify needs numjobs=1: several threads would overwrite each other's blocks")
        return problems


@dataclass(frozen=True, kw_only=True)
class FioRun:
    """Jobs that one fio runs at the same time.

    With ``interval_s`` every job records its throughput and its longest latency for every such interval (0.1 to
    1 s is sensible); with ``status_s`` fio reports its totals that often while it runs. ``lead_s`` is a time of I/O by
    every job before that which is measured: fio's first burst lasts as long as a burst and a pause, so that there is a
    lead of the longest pause at least. Raises BadInput when a job's name stands twice, or one has no ``runtime_s``
    beside bursts.
    """

    jobs: tuple[FioJob, ...]
    seed: int
    interval_s: float | None = None
    status_s: float | None = None
    lead_s: float = 0.0

    def __post_init__(self) -> None:
        if pauses := [job.bursts.off_s for job in self.jobs if job.bursts]:
            object.__setattr__(self, "lead_s", max(self.lead_s, *pauses))
            if endless := [job.name for job in self.jobs if job.runtime_s is None]:
                raise BadInput(f"beside bursts every job needs runtime_s, and {', '.join(endless)} has none")
        names = [job.name for job in self.jobs]
        if not names or len(set(names)) < len(names):
            raise BadInput(f"a fio run needs jobs with different names, not {', '.join(names) or 'none'}")
        if self.interval_s is not None and (mixed := [job.name for job in self.jobs if job.block_mix]):
            raise BadInput(
                f"fio counts the bytes of an interval by one block size: leave out interval_s, or block_mix of "
                f"{', '.join(mixed)}"
            )
        for what, seconds in (("interval_s", self.interval_s), ("status_s", self.status_s)):
            if seconds is not None and seconds < _MIN_INTERVAL_S:
                raise BadInput(f"{what} is {seconds:g}, must be at least {_MIN_INTERVAL_S:g}")

    @property
    def writes(self) -> bool:
        """Whether any job changes what is on its device."""
        return any(job.writes for job in self.jobs)

    @property
    def engines(self) -> frozenset[str]:
        """The I/O engines that the jobs' devices ask for."""
        return frozenset(job.engine for job in self.jobs)

    def files(self, name: str) -> dict[str, str]:
        """The job file, by its name."""
        return {f"{name}.fio": self.job_file(name)}

    def preparation(self, name: str) -> str:  # noqa: ARG002 - a replay names its files by it
        """Nothing: the shell's null command."""
        return ":"

    def job_file(self, log_name: str) -> str:
        """The job file; the same run and name give the same text. Logs are named by :meth:`log_names`."""
        return job_file(self.sections(log_name))

    def sections(self, log_name: str) -> dict[str, dict[str, str]]:
        """The sections of the job file with their options."""
        sections = {"global": dict(_GLOBAL)}
        for number, job in enumerate(self.jobs):
            sections[job.name] = job.options(self.seed) | self._log_options(f"{log_name}.{number}")
        if self.lead_s:
            sections["global"]["ramp_time"] = f"{round(self.lead_s * 1000)}ms"
        return sections

    def log_names(self, log_name: str) -> dict[str, tuple[int, str]]:
        """Every log file fio will write -> the number of its job and what it holds, ``clat`` or ``clat_hist``."""
        names: dict[str, tuple[int, str]] = {}
        thread = 0
        for number, job in enumerate(self.jobs):
            for _ in range(job.numjobs):
                thread += 1
                for kind in ("clat", "clat_hist"):
                    names[f"{log_name}.{number}_{kind}.{thread}.log"] = (number, kind)
        return names if self.interval_s is not None else {}

    def _log_options(self, prefix: str) -> dict[str, str]:
        if self.interval_s is None:
            return {}
        interval_ms = str(round(self.interval_s * 1000))
        return {
            "write_lat_log": prefix,
            "log_avg_msec": interval_ms,
            "log_max_value": "1",
            "write_hist_log": prefix,
            "log_hist_msec": interval_ms,
            "log_hist_coarseness": "6",  # the most: of the histograms only the counts are used
            "log_unix_epoch": "1",
        }


# Of reads, writes and verification alike: what the kernel's block layer makes of a request that its drive, or the way
# there, failed (blk_errors of Linux block/blk-core.c). fio by itself goes on after the first two alone.
_FAILED = ":".join(
    str(code)
    for code in (
        errno.EIO,
        errno.EILSEQ,
        errno.ENODATA,
        errno.EREMOTEIO,
        errno.ENOLINK,
        errno.ETIMEDOUT,
    )
)
GO_ON = {"continue_on_error": "all", "ignore_error": ",".join([_FAILED] * 3)}
"""Options with which fio counts requests that a drive failed, as ``total_err``, and goes on."""

_GLOBAL = {
    "thread": "1",  # no shared memory segments, and one process to signal
    "group_reporting": "1",
    "new_group": "1",  # with group_reporting: one result for each job, whatever its numjobs
    "allow_file_create": "0",
    **GO_ON,
    "disable_slat": "1",
    "disable_lat": "1",
}


def job_file(sections: Mapping[str, Mapping[str, str]]) -> str:
    """The text of a job file with these sections."""
    return "\n".join(
        "".join((f"[{name}]\n", *(f"{key}={value}\n" for key, value in options.items())))
        for name, options in sections.items()
    )


def device_options(device: BlockDevice) -> dict[str, str]:
    """The options by which fio reaches ``device``. Raises BadInput for a path that no job file can hold."""
    return {key: _value(key, value) for key, value in sorted(device.fio_options().items())}


def _value(key: str, value: str) -> str:
    if key == "uri":
        return quote(value, safe=_URI_CHARACTERS)
    if _UNSAYABLE.search(value) or value != value.strip():
        raise BadInput(f"{key}={value!r} cannot stand in a fio job file: rename it without ; # $ and outer spaces")
    if key == "filename" and not value.startswith("/"):
        raise BadInput(f"filename={value!r} is not an absolute path")
    return value
