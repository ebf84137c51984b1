"""IOPS in steady state by block size and mix: the IOPS test of the SNIA Performance Test Specification."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from rackloop.lab import Lab
from rackloop_fixtures import Conditions, DriveUnderTest, Measure, Workload, measured_drives, measuring_s, tracked_of

KIB = 1 << 10
# The defaults are the specification's. An active range of 0 is the whole drive, an empty name the first scratch drive.
PARAMETERS: dict[str, Any] = {
    "drive": "",
    "active_range": 0,
    "purge": True,
    "fills": 2,
    "blocks": [1024 * KIB, 128 * KIB, 64 * KIB, 32 * KIB, 16 * KIB, 8 * KIB, 4 * KIB, 512],
    "read_percents": [100, 95, 65, 50, 35, 5, 0],
    "iodepth": 32,
    "threads": 1,
    "seconds": 60.0,
    "round_bytes": 0,
    "most_rounds": 25,
    "excursion": 0.2,
    "slope": 0.1,
}
MEASURES = {"rounds.iops": "IOPS", "steady.round": "1", "steady.iops": "IOPS"}

pytestmark = pytest.mark.rackloop(
    purpose="measure the random IOPS of a drive in steady state, for each block size and mix of reads and writes",
    requires=["fio"],
    destructive=True,
    time_class="hours",
)


# Erased is the drive that is measured.
drives_erased = measured_drives


def estimate_s(lab: Lab, parameters: Mapping[str, Any]) -> float:
    """Two fills, and five rounds of the whole matrix at the least."""
    return measuring_s(lab, parameters, _workloads(parameters))


def _workloads(parameters: Mapping[str, Any]) -> list[Workload]:
    return [
        Workload(block, reads, iodepth=parameters["iodepth"], threads=parameters["threads"])
        for reads in parameters["read_percents"]
        for block in parameters["blocks"]
    ]


def test_iops(drive_under_test: DriveUnderTest, parameters: Mapping[str, Any], measure: Measure) -> None:
    """Go through the whole matrix in every round; random writes of 4 KiB say when the drive is steady."""
    conditions, workloads = Conditions.of(parameters), _workloads(parameters)
    drive_under_test.prepare(conditions)
    rounds = drive_under_test.rounds(workloads, conditions, tracked=tracked_of(workloads))
    for workload in workloads:
        measure("rounds.iops", rounds.values(workload), **workload.labels)
    measure("steady.round", rounds.steady().last)
    for workload in workloads:
        measure("steady.iops", [job.iops for job in rounds.in_window(workload)], **workload.labels)
