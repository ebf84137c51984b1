"""Throughput in steady state of large sequential blocks, as the SNIA Performance Test Specification measures it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from rackloop.lab import Lab
from rackloop.parameters import flag, number, part, size, whole
from rackloop_fixtures import (
    BANDWIDTH,
    PTS_STATISTICS,
    Conditions,
    DriveUnderTest,
    Measure,
    Rounds,
    Workload,
    measured_bytes,
    measured_drives,
)

KIB = 1 << 10
# The defaults are the specification's.
PARAMETERS = {
    "drive": part("", "the drive to measure; the first scratch drive where empty", of="drive"),
    "active_range": size(0, "measured range from the start of the drive; all of it where 0", least=0, most=1 << 50),
    "purge": flag(True, "purge the drive first"),
    "fills": whole(2, "sequential fills before the measurement", least=0, most=100),
    "blocks": size(
        [1024 * KIB, 128 * KIB],
        "I/O sizes, each in turn",
        least=512,
        most=64 << 20,
        multiple=512,
    ),
    "iodepth": whole(32, "I/Os outstanding in each thread", most=4096),
    "threads": whole(1, "threads of fio", most=256),
    "seconds": number(60.0, "duration of each workload in a round", least=0.001, most=86_400, unit="s"),
    "round_bytes": size(0, "amount of I/O of each workload instead, where not 0", least=0, most=1 << 50),
    "most_rounds": whole(25, "most rounds to reach steady state", least=5, most=1000),
    "excursion": number(0.2, "largest excursion of a steady round from the mean, as a share", most=1000),
    "slope": number(0.1, "largest drift of the trend over the steady rounds, as a share of the mean", most=1000),
}
MEASURES = {"rounds.bandwidth": "B/s", "steady.round": "1", "steady.bandwidth": "B/s", "unsteady.bandwidth": "B/s"}
HEADLINES = ("steady.bandwidth", "unsteady.bandwidth")

pytestmark = pytest.mark.rackloop(
    purpose="measure the sequential throughput of a drive in steady state, reading and writing",
    requires=["fio"],
    destructive=True,
    time_class="hours",
)


# Erased is the drive that is measured.
drives_erased = measured_drives


def estimate_s(lab: Lab, parameters: Mapping[str, Any]) -> float:
    """Two fills, and rounds of reads and writes for each block size until it is steady."""
    conditions, region_bytes = Conditions.of(parameters), measured_bytes(lab, parameters)
    return sum(
        conditions.estimate_s(len(_workloads(parameters, block)), region_bytes) for block in parameters["blocks"]
    )


def _workloads(parameters: Mapping[str, Any], block: int) -> list[Workload]:
    depth, threads = parameters["iodepth"], parameters["threads"]
    return [Workload(block, reads, is_random=False, iodepth=depth, threads=threads) for reads in (100, 0)]


def test_throughput(drive_under_test: DriveUnderTest, parameters: Mapping[str, Any], measure: Measure) -> None:
    """Purge and fill again for each block size; writes say when the drive is steady."""
    conditions = Conditions.of(parameters)
    never_steady: list[Rounds] = []
    for block in parameters["blocks"]:
        workloads = _workloads(parameters, block)
        drive_under_test.prepare(conditions)
        rounds = drive_under_test.rounds(workloads, conditions, tracked=workloads[-1], quantity=BANDWIDTH)
        for workload in workloads:
            measure("rounds.bandwidth", rounds.values(workload), **workload.labels)
        for workload in workloads:
            bandwidths = [job.bandwidth_bytes_per_s for job in rounds.reported(workload)]
            measure(f"{rounds.state}.bandwidth", bandwidths, statistics=PTS_STATISTICS, **workload.labels)
        never_steady += [] if rounds.window else [rounds]
        if rounds.window:
            measure("steady.round", rounds.steady().last, **workloads[-1].labels)
    for rounds in never_steady:
        rounds.steady()
