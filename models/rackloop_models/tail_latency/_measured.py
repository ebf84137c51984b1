"""The same reads on the hard disk model, in virtual time: what the equations leave out is in it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass

from rackloop.abilities import Executor
from rackloop.clock import Deadline
from rackloop.errors import BadInput, ProtocolError
from rackloop.lab import Profile
from rackloop.measurement import Distribution
from rackloop_models.drives import DriveSim, LocalCode, SequentialRead, SequentialReadResult
from rackloop_models.tail_latency._codes import SECTOR_BYTES
from rackloop_models.tail_latency._reading import SECTOR_S, LocalErasure, Reading

Progress = Callable[[int, int], None]
"""Told of measurements that are over, and of how many there are."""

DRIVE_BYTES = 16 << 30
REVOLUTION_S = 60 / 7200
_RETRIED_REQUEST_SECTORS = 256
_DEPTH = 4
_COMMAND_US = 25


@dataclass(frozen=True)
class MeasuredReads:
    """The drive's results of so many reads: latencies in seconds, and the fates of sectors over all of them."""

    reading: Reading
    erasure: LocalErasure | None
    samples: Distribution
    fates: SequentialReadResult


def attainable_retry_s(retry_s: float) -> float:
    """The mean retry nearest to ``retry_s`` that a drive of 7200 revolutions a minute can have.

    A retry takes whole revolutions: 20.8 ms stand for 20 ms (2 or 3 of them), 41.7 ms for 40 (5).
    """
    return max(2, round(2 * retry_s / REVOLUTION_S)) / 2 * REVOLUTION_S


def paper_drive(like: Profile, ph: float, retry_s: float) -> Profile:
    """The drive of the paper's analysis, made of a hard disk's profile: 250 sectors of 4 KiB a revolution everywhere.

    It takes a command in 25 us, so that it keeps up with requests of one sector, and retries for ``retry_s`` on
    average, in whole revolutions. Raises BadInput for a profile of anything but a conventional hard disk.
    """
    if like.timing.get("kind") != "hdd" or "smr" in like.timing:
        raise BadInput(f"the profile {like.name} is of no conventional hard disk; take one such as sata-hdd")
    halves = round(2 * attainable_retry_s(retry_s) / REVOLUTION_S)
    fewest, most = halves // 2, -(-halves // 2)
    rate = SECTOR_BYTES / SECTOR_S / 1e6
    return like.retimed(
        {
            "rpm": 7200,
            "outer_mb_s": rate,
            "inner_mb_s": rate,
            "command_overhead_us": _COMMAND_US,
            "read_error_probability": ph,
            "retry_ms": [fewest * REVOLUTION_S * 1e3, most * REVOLUTION_S * 1e3],
        }
    )


@dataclass(frozen=True)
class ReadsToMeasure:
    """A cell of the measurement: a reading with or without a code, on which drive, how often.

    ``request_sectors`` is what a request that fails fast asks for: what lies behind a failed sector in one is missing
    as well.
    """

    profile: Profile
    reading: Reading
    erasure: LocalErasure | None
    trials: int
    request_sectors: int = 1

    def experiment(self) -> SequentialRead:
        """The experiment for drivesim."""
        erasure = self.erasure
        return SequentialRead(
            name="reads",
            sectors=self.reading.sectors,
            trials=self.trials,
            request_sectors=self.request_sectors if erasure else _RETRIED_REQUEST_SECTORS,
            depth=_DEPTH,
            code=None
            if erasure is None
            else LocalCode(erasure.k, erasure.m, tuple(seconds * 1e6 for seconds in erasure.decode_s)),
        )


def measure_reads(
    cells: Sequence[ReadsToMeasure], executor: Executor, deadline: Deadline, *, seed: int, progress: Progress
) -> tuple[MeasuredReads, ...]:
    """Put a drive of its own through each cell, on all cores. Raises as :meth:`DriveSim.run` does."""

    def measured(cell: ReadsToMeasure) -> MeasuredReads:
        sim = DriveSim(executor, cell.profile, size_bytes=DRIVE_BYTES, seed=seed)
        (result,) = sim.run([cell.experiment()], deadline)
        if not isinstance(result, SequentialReadResult):
            raise ProtocolError(f"drivesim answered a sequential read with {result.kind}")
        samples = Distribution.of(latency / 1e9 for latency in result.latencies_ns)
        return MeasuredReads(cell.reading, cell.erasure, samples, result)

    pool = ThreadPoolExecutor(max_workers=os.cpu_count())
    try:
        running = [pool.submit(measured, cell) for cell in cells]
        for over, future in enumerate(as_completed(running), 1):
            future.result()
            progress(over, len(cells))
        return tuple(future.result() for future in running)
    finally:
        # After an interrupt nobody waits for reads that go on: they end with the caller's executor.
        pool.shutdown(wait=False, cancel_futures=True)
