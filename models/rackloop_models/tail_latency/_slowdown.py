"""The slowdown of drive-bound workloads by local erasure coding: Fig. 9 of the paper, in virtual time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rackloop.abilities import Executor
from rackloop.clock import Deadline
from rackloop.errors import ProtocolError
from rackloop.lab import Profile
from rackloop_models.drives import (
    Ask,
    DriveSim,
    Experiment,
    LocalCode,
    SequentialRead,
    SequentialReadResult,
    Step,
    Steps,
    StepsResult,
)
from rackloop_models.erasure import ChosenCode
from rackloop_models.tail_latency._codes import SECTOR_BYTES
from rackloop_models.tail_latency._measured import DRIVE_BYTES, Progress
from rackloop_models.tail_latency._reading import hardware_decoding, software_decoding

_FILE_SECTORS = 1 << 20
_DEPTH = 4
_STREAM_SECTORS = 1 << 14
_TOUCHED_SECTORS = 128
_SMALL_SECTORS = 16
_WRITTEN_SECTORS = 1 << 16
_PLAIN_REQUEST_SECTORS = 64


@dataclass(frozen=True)
class Codec:
    """The speed of the codec: ``encode_bytes_per_s`` over the redundancy sectors, or always the same."""

    name: str
    encode_bytes_per_s: float
    decode_bytes_per_s: float
    is_hardware: bool

    def encode_us(self, sectors: int, m: int) -> float:
        """The time of encoding."""
        seconds = sectors * SECTOR_BYTES / self.encode_bytes_per_s
        return seconds * 1e6 if self.is_hardware else seconds * m * 1e6

    def decode_us(self, k: int, m: int) -> tuple[float, ...]:
        """The times of decoding with 1, 2, ... m sectors missing."""
        times = hardware_decoding if self.is_hardware else software_decoding
        return tuple(seconds * 1e6 for seconds in times(k, m, self.decode_bytes_per_s))


SOFTWARE = Codec("software", 15e9, 4e9, is_hardware=False)
"""The paper's library: 1.5 GB/s with ten redundancy sectors, 400 MB/s with ten missing ones."""
HARDWARE = Codec("hardware", 4e9, 4e9, is_hardware=True)
"""The paper's FPGA: 4 GB/s whatever the code."""


@dataclass(frozen=True)
class Workload:
    """Shares of the bytes that go each way: streams, 512 KiB and 64 KiB reads at random, and streams written.

    It stands for a benchmark of the paper's. The shares are assumed: the paper gives none.
    """

    name: str
    streamed: float
    touched: float
    small: float
    written: float


WORKLOADS = (
    Workload("sort", 0.45, 0.05, 0.0, 0.50),
    Workload("wordcount", 0.90, 0.05, 0.0, 0.05),
    Workload("hivebench", 0.70, 0.15, 0.0, 0.15),
    Workload("pagerank", 0.30, 0.30, 0.10, 0.30),
    Workload("nutch", 0.30, 0.30, 0.15, 0.25),
    Workload("bayes", 0.45, 0.25, 0.05, 0.25),
    Workload("kmeans", 0.85, 0.10, 0.0, 0.05),
    Workload("dfsioe", 0.50, 0.0, 0.0, 0.50),
    Workload("terasort", 0.45, 0.05, 0.0, 0.50),
)


@dataclass(frozen=True)
class Slowdown:
    """The throughput that a workload loses with a code and a codec, of what it is on a drive that needs no retries."""

    workload: str
    codec: str
    code: ChosenCode
    lost: float


def slowdowns(
    codes: Sequence[ChosenCode],
    like: Profile,
    executor: Executor,
    deadline: Deadline,
    *,
    seed: int,
    progress: Progress,
    trials: int = 2000,
    codecs: Sequence[Codec] = (SOFTWARE, HARDWARE),
    workloads: Sequence[Workload] = WORKLOADS,
) -> tuple[Slowdown, ...]:
    """Each workload with each code and codec, against the same drive without failures and without a code.

    ``like`` must take commands faster than a sector passes, as :func:`paper_drive` does, for reads that fail fast are
    of one sector each. The time of a workload is that of its bytes, each kind in turn; nothing but the drive and the
    codec takes time and nothing is cached, so that benchmarks which compute or read twice lose less. A group is encoded
    before it is written, and the drive writes what is in its cache meanwhile. Raises as :meth:`DriveSim.run` does.
    """
    ideal = like.retimed({"read_error_probability": 0})
    found = []
    for number, code in enumerate(codes):
        baseline = _times(ideal, code, None, executor, deadline, seed, trials)
        drive = like.retimed({"read_error_probability": code.ph})
        for codec in codecs:
            coded = _times(drive, code, codec, executor, deadline, seed, trials)
            found += [
                Slowdown(workload.name, codec.name, code, 1 - _total(workload, baseline) / _total(workload, coded))
                for workload in workloads
            ]
        progress(number + 1, len(codes))
    return tuple(found)


@dataclass(frozen=True)
class _Times:
    """Seconds a byte for each way that bytes go."""

    streamed: float
    touched: float
    small: float
    written: float


def _total(workload: Workload, times: _Times) -> float:
    return (
        workload.streamed * times.streamed
        + workload.touched * times.touched
        + workload.small * times.small
        + workload.written * times.written
    )


def _times(
    profile: Profile,
    code: ChosenCode,
    codec: Codec | None,
    executor: Executor,
    deadline: Deadline,
    seed: int,
    trials: int,
) -> _Times:
    local = LocalCode(code.k, code.m, codec.decode_us(code.k, code.m)) if codec else None

    def reads(name: str, sectors: int, *, seeks: bool, times: int) -> SequentialRead:
        return SequentialRead(
            name=name,
            sectors=sectors,
            file_sectors=_FILE_SECTORS,
            trials=times,
            # What lies behind a failed sector in its request is missing too.
            request_sectors=1 if local else _PLAIN_REQUEST_SECTORS,
            depth=_DEPTH,
            seeks=seeks,
            code=local,
        )

    experiments: list[Experiment] = [
        reads("streamed", _STREAM_SECTORS, seeks=True, times=max(1, trials // 50)),
        reads("touched", _TOUCHED_SECTORS, seeks=True, times=trials),
        reads("small", _SMALL_SECTORS, seeks=True, times=trials),
        _written(code, codec),
    ]
    results = DriveSim(executor, profile, size_bytes=DRIVE_BYTES, seed=seed).run(experiments, deadline)
    seconds = [_per_byte(experiment, result) for experiment, result in zip(experiments, results, strict=True)]
    return _Times(*seconds)


def _per_byte(experiment: Experiment, result: object) -> float:
    if isinstance(experiment, SequentialRead) and isinstance(result, SequentialReadResult):
        return sum(result.latencies_ns) / 1e9 / (len(result.latencies_ns) * experiment.sectors * SECTOR_BYTES)
    if isinstance(result, StepsResult):
        return result.seconds / (_WRITTEN_SECTORS * SECTOR_BYTES)
    raise ProtocolError(f"drivesim answered {experiment.kind} with something else")


def _written(code: ChosenCode, codec: Codec | None) -> Steps:
    """A stream of user sectors, written group by group, with a codec the redundancy behind each; then flushed."""
    steps, at, left = [], 0, _WRITTEN_SECTORS
    m = code.m if codec else 0
    while left:
        user = min(code.k, left)
        work_us = codec.encode_us(user, m) if codec else 0.0
        steps.append(Step((Ask("write", at * SECTOR_BYTES, (user + m) * SECTOR_BYTES),), work_us))
        at, left = at + user + m, left - user
    return Steps(name="written", steps=(*steps, Step((Ask("flush"),))))
