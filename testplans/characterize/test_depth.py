"""IOPS and latency by how much is outstanding: the demand intensity of the SNIA Performance Test Specification."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from rackloop.distribution import Distribution
from rackloop.lab import Lab
from rackloop_fixtures import Conditions, DriveUnderTest, Measure, Workload, latency_of, measured_drives, measuring_s

KIB = 1 << 10
# The defaults are the specification's. An active range of 0 is the whole drive, an empty name the first scratch drive.
PARAMETERS: dict[str, Any] = {
    "drive": "",
    "active_range": 0,
    "purge": True,
    "fills": 2,
    "block": 4 * KIB,
    "read_percent": 0,
    "iodepths": [1, 2, 4, 8, 16, 32, 64, 128, 256],
    "threads": 1,
    "seconds": 60.0,
    "round_bytes": 0,
    "most_rounds": 25,
    "excursion": 0.2,
    "slope": 0.1,
}
MEASURES = {"rounds.iops": "IOPS", "steady.round": "1", "demand.iops": "IOPS", "demand.latency": "s"}

pytestmark = pytest.mark.rackloop(
    purpose="measure how IOPS and latency of a drive in steady state grow with how much is outstanding",
    requires=["fio"],
    destructive=True,
    time_class="hours",
)


# Erased is the drive that is measured.
drives_erased = measured_drives


def estimate_s(lab: Lab, parameters: Mapping[str, Any]) -> float:
    """Two fills, and five rounds of all depths at the least."""
    return measuring_s(lab, parameters, _workloads(parameters))


def _workloads(parameters: Mapping[str, Any]) -> list[Workload]:
    block, reads, threads = parameters["block"], parameters["read_percent"], parameters["threads"]
    return [Workload(block, reads, iodepth=depth, threads=threads) for depth in sorted(parameters["iodepths"])]


def test_depth(drive_under_test: DriveUnderTest, parameters: Mapping[str, Any], measure: Measure) -> None:
    """Go through all depths in every round; the deepest says when the drive is steady."""
    conditions, workloads = Conditions.of(parameters), _workloads(parameters)
    drive_under_test.prepare(conditions)
    rounds = drive_under_test.rounds(workloads, conditions, tracked=workloads[-1])
    for workload in workloads:
        outstanding = str(workload.outstanding)
        measure("rounds.iops", rounds.values(workload), **workload.labels, outstanding=outstanding)
    measure("steady.round", rounds.steady().last)
    for workload in workloads:
        jobs = rounds.in_window(workload)
        labels = {**workload.labels, "outstanding": str(workload.outstanding)}
        measure("demand.iops", [job.iops for job in jobs], **labels)
        measure("demand.latency", Distribution.pooled(latency_of(job) for job in jobs), **labels)
