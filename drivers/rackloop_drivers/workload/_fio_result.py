"""fio's results: its JSON as typed values."""

from __future__ import annotations

import errno
import json
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from rackloop.errors import ToolError
from rackloop.measurement import Distribution
from rackloop_drivers.workload._fio_series import Sample

Direction = Literal["read", "write", "trim"]

DIRECTIONS: tuple[Direction, ...] = ("read", "write", "trim")

# What fio says of each block that does not verify (log_verify_failure and verify_header in its verify.c).
_NOT_VERIFIED = re.compile(r"^(?:verify: |fio: verify type mismatch|\S+: verify failed at file )", re.MULTILINE)
# A document's own brace. A message of fio's before it may lack the end of its line.
_DOCUMENT = re.compile(r"^\{|(?<=\S)\{$", re.MULTILINE)


@dataclass(frozen=True)
class FioTransfer:
    """One job's I/O in one direction, all its threads together.

    ``latency_s`` is the distribution of completion latencies, from fio's bins: each stands as the middle of its
    bin, within 0.8 %, and everything from 17.1 s on as the last bin. ``longest_us`` is the longest completion latency,
    exact: the longest stall that I/O saw. The series are empty unless the run has ``interval_s``: one sample for each
    interval in which I/O completed, ``throughput_bytes_per_s`` the mean since the sample before, ``longest_s`` the
    longest completion latency. What follows the last whole interval is in the totals only.
    """

    io_bytes: int
    total_ios: int
    runtime_s: float
    bandwidth_bytes_per_s: float
    iops: float
    latency_s: Distribution
    longest_us: float
    throughput_bytes_per_s: tuple[Sample, ...] = ()
    longest_s: tuple[Sample, ...] = ()

    @classmethod
    def pooled(cls, parts: Sequence[FioTransfer]) -> FioTransfer:
        """The I/O of jobs that ran at one time as that of one, without series."""
        return cls(
            io_bytes=sum(part.io_bytes for part in parts),
            total_ios=sum(part.total_ios for part in parts),
            runtime_s=max(part.runtime_s for part in parts),
            bandwidth_bytes_per_s=sum(part.bandwidth_bytes_per_s for part in parts),
            iops=sum(part.iops for part in parts),
            latency_s=Distribution.pooled(part.latency_s for part in parts),
            longest_us=max(part.longest_us for part in parts),
        )


@dataclass(frozen=True)
class FioSteady:
    """A job's steady state, by fio. The last window's one-second means are ``iops`` and their like.

    ``criterion_percent`` is the deviation or slope that was held against the limit; a job that ``attained`` steady
    state ended then, ``runtime_s`` of its result.
    """

    attained: bool
    criterion_percent: float
    iops: tuple[float, ...]
    bandwidth_bytes_per_s: tuple[float, ...]


@dataclass(frozen=True)
class FioJobResult:
    """One job's result. ``transfers`` holds the directions in which I/O completed; ``steady`` is for until_steady.

    ``total_err`` is how many I/Os failed, verification included; a job that an error ended counts at least one.
    ``error`` is the errno of the first, 0 without any. ``cpu_share`` is the part of the time for which each of its
    threads was computing: at 1 it was fio, and not the device, that could do no more.
    """

    name: str
    total_err: int
    error: int
    transfers: Mapping[Direction, FioTransfer] = field(default_factory=dict)
    steady: FioSteady | None = None
    cpu_share: float = 0.0

    @classmethod
    def pooled(cls, parts: Sequence[FioJobResult]) -> FioJobResult:
        """The result of jobs that ran at one time, as that of one job with the first one's name.

        What they did is added up, and what each I/O took is pooled; ``cpu_share`` is that of the busiest. Series and
        steady states are left out, unless there is one job.
        """
        first, *more = parts
        if not more:
            return first
        transfers = {
            direction: FioTransfer.pooled([part.transfers[direction] for part in parts if direction in part.transfers])
            for direction in DIRECTIONS
            if any(direction in part.transfers for part in parts)
        }
        return cls(
            first.name,
            sum(part.total_err for part in parts),
            next((part.error for part in parts if part.error), 0),
            transfers,
            cpu_share=max(part.cpu_share for part in parts),
        )

    @property
    def io_bytes(self) -> int:
        """Bytes of all directions."""
        return sum(transfer.io_bytes for transfer in self.transfers.values())

    @property
    def iops(self) -> float:
        """I/Os per second of all directions."""
        return sum(transfer.iops for transfer in self.transfers.values())

    @property
    def bandwidth_bytes_per_s(self) -> float:
        """Bytes per second of all directions."""
        return sum(transfer.bandwidth_bytes_per_s for transfer in self.transfers.values())

    @property
    def runtime_s(self) -> float:
        """The time for which the job made I/O: its longest direction."""
        return max((transfer.runtime_s for transfer in self.transfers.values()), default=0.0)

    @property
    def longest_us(self) -> float:
        """The longest completion latency of all directions, in microseconds; 0 when no I/O completed."""
        return max((transfer.longest_us for transfer in self.transfers.values()), default=0.0)

    @property
    def error_text(self) -> str:
        """The first error in words, as ``Input/output error``; empty without one."""
        return os.strerror(self.error) if self.error else ""


@dataclass(frozen=True)
class FioResult:
    """One fio's result, or its work so far when it comes from a status report.

    ``started_ns`` is when fio was started, on the run's clock; a series' time t is ``started_ns + t * 1e9``, off
    by at most ``time_error_s``. ``verify_err`` is how many blocks did not verify; they are in ``total_err`` too.
    ``failed`` has what ``total_err`` was at each status report that was not taken by ``progress``, and at the end. Both
    are known once fio has ended.
    """

    jobs: tuple[FioJobResult, ...]
    started_ns: int
    time_error_s: float
    verify_err: int = 0
    failed: tuple[Sample, ...] = ()

    @property
    def total_err(self) -> int:
        """The number of failed I/Os in all jobs, by which a run is judged."""
        return sum(job.total_err for job in self.jobs)

    def job(self, name: str) -> FioJobResult:
        """The result of the job of that name; KeyError when the run had none."""
        for job in self.jobs:
            if job.name == name:
                return job
        raise KeyError(name)


def complete_documents(text: str) -> tuple[list[dict[str, Any]], int]:
    """The whole JSON documents in what fio printed, text between them skipped, and the offset where the last ends."""
    found: list[dict[str, Any]] = []
    end = 0
    while start := _DOCUMENT.search(text, end):
        try:
            document, end = json.JSONDecoder().raw_decode(text, start.start())
        except ValueError:
            break
        found.append(document)
    return found, end


def last_text(text: str) -> str:
    """The last document of what fio printed, as it stands there; empty where there is none."""
    starts = [brace.start() for brace in _DOCUMENT.finditer(text)]
    return text[starts[-1] :] if starts else ""


def last_document(text: str) -> dict[str, Any]:
    """The document that fio ends with. Raises ToolError when there is none or it breaks off."""
    found, end = complete_documents(text)
    if _DOCUMENT.search(text, end):
        raise ToolError(f"fio's JSON breaks off after {text[-60:]!r}: was it killed, or is the disk full where it ran?")
    if not found:
        raise ToolError(f"fio printed no JSON{f', but: {text.strip()[-2000:]}' if text.strip() else ''}")
    return found[-1]


def verify_errors(said: str, jobs: Sequence[FioJobResult]) -> int:
    """The number of blocks that did not verify, by fio's messages meanwhile: its JSON counts them among all errors."""
    return max(len(_NOT_VERIFIED.findall(said)), int(any(job.error == errno.EILSEQ for job in jobs)))


def failed_by(documents: Iterable[Mapping[str, Any]], began_unix_s: float) -> tuple[Sample, ...]:
    """The number of failed I/Os at each report, in seconds since fio began."""
    return tuple(
        Sample(
            document["timestamp_ms"] / 1000 - began_unix_s, float(sum(job.total_err for job in parse_jobs(document)))
        )
        for document in documents
    )


def parse_jobs(document: Mapping[str, Any]) -> tuple[FioJobResult, ...]:
    """The jobs of a json+ document, in the order of the job file. Raises ToolError for what is not one."""
    try:
        return tuple(_job(job) for job in document["jobs"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ToolError(f"fio's JSON is not what json+ of fio 3.31 and later is: {error!r}") from error


def _job(job: Mapping[str, Any]) -> FioJobResult:
    # An error that is not an errno, -1, comes as an unsigned number.
    error = int(job["error"]) if job["error"] < 1 << 31 else job["error"] - (1 << 32)
    # A report in the midst of a run may have counted the first I/O and not its bin yet.
    seen = [name for name in DIRECTIONS if job[name]["clat_ns"]["N"] and job[name]["clat_ns"]["bins"]]
    transfers = {direction: _transfer(job[direction]) for direction in seen}
    steady = _steady(job["steadystate"]) if "steadystate" in job else None
    cpu_share = (job.get("usr_cpu", 0.0) + job.get("sys_cpu", 0.0)) / 100
    total_err = max(_count(job, "total_err"), int(error != 0))
    return FioJobResult(job["jobname"], total_err, error, transfers, steady, cpu_share)


def _steady(said: Mapping[str, Any]) -> FioSteady:
    window = said["data"]
    return FioSteady(
        attained=bool(said["attained"]),
        criterion_percent=float(said["criterion"].removesuffix("%")),
        iops=tuple(map(float, window["iops"])),
        bandwidth_bytes_per_s=tuple(map(float, window["bw"])),
    )


def _transfer(side: Mapping[str, Any]) -> FioTransfer:
    latency = side["clat_ns"]
    return FioTransfer(
        io_bytes=_count(side, "io_bytes"),
        total_ios=_count(side, "total_ios"),
        runtime_s=_count(side, "runtime") / 1000,
        bandwidth_bytes_per_s=float(_count(side, "bw_bytes")),
        iops=_figure(side, "iops"),
        latency_s=Distribution.from_bins({int(ns) / 1e9: count for ns, count in latency["bins"].items()}),
        longest_us=_count(latency, "max") / 1000,
    )


def _count(of: Mapping[str, Any], name: str) -> int:
    """A whole number. Raises ValueError where it is none, or one below zero as an unsigned one is printed."""
    value = of[name]
    if type(value) is not int or not 0 <= value < 1 << 53:
        raise ValueError(f"{name} is {value!r}")
    return value


def _figure(of: Mapping[str, Any], name: str) -> float:
    """A number. Raises ValueError where it is none, or not finite."""
    value = of[name]
    if type(value) not in {int, float} or not 0 <= value < math.inf:
        raise ValueError(f"{name} is {value!r}")
    return float(value)
