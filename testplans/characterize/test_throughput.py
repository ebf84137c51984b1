"""Throughput in steady state of large sequential blocks, as the SNIA Performance Test Specification measures it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from rackloop.lab import Lab
from rackloop_fixtures import BANDWIDTH, Conditions, DriveUnderTest, Measure, Workload, measured_bytes, measured_drives

KIB = 1 << 10
# The defaults are the specification's. An active range of 0 is the whole drive, an empty name the first scratch drive.
PARAMETERS: dict[str, Any] = {
    "drive": "",
    "active_range": 0,
    "purge": True,
    "fills": 2,
    "blocks": [1024 * KIB, 128 * KIB],
    "iodepth": 32,
    "threads": 1,
    "seconds": 60.0,
    "round_bytes": 0,
    "most_rounds": 25,
    "excursion": 0.2,
    "slope": 0.1,
}
MEASURES = {"rounds.bandwidth": "B/s", "steady.round": "1", "steady.bandwidth": "B/s"}

pytestmark = pytest.mark.rackloop(
    purpose="measure the sequential throughput of a drive in steady state, reading and writing",
    requires=["fio"],
    destructive=True,
    time_class="hours",
)


# Erased is the drive that is measured.
drives_erased = measured_drives


def estimate_s(lab: Lab, parameters: Mapping[str, Any]) -> float:
    """Two fills, and five rounds of reads and writes at the least, for each block size."""
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
    for block in parameters["blocks"]:
        workloads = _workloads(parameters, block)
        drive_under_test.prepare(conditions)
        rounds = drive_under_test.rounds(workloads, conditions, tracked=workloads[-1], quantity=BANDWIDTH)
        for workload in workloads:
            measure("rounds.bandwidth", rounds.values(workload), **workload.labels)
        measure("steady.round", rounds.steady().last, **workloads[-1].labels)
        for workload in workloads:
            bandwidths = [job.bandwidth_bytes_per_s for job in rounds.in_window(workload)]
            measure("steady.bandwidth", bandwidths, **workload.labels)
