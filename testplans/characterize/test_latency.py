"""Latency in steady state with one I/O outstanding, as the SNIA Performance Test Specification measures it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from rackloop.distribution import Distribution
from rackloop.lab import Lab
from rackloop_fixtures import (
    LATENCY,
    Conditions,
    DriveUnderTest,
    Measure,
    Workload,
    latency_of,
    measured_drives,
    measuring_s,
    tracked_of,
)

KIB = 1 << 10
# The defaults are the specification's. An active range of 0 is the whole drive, an empty name the first scratch drive.
PARAMETERS: dict[str, Any] = {
    "drive": "",
    "active_range": 0,
    "purge": True,
    "fills": 2,
    "blocks": [8 * KIB, 4 * KIB, 512],
    "read_percents": [100, 65, 0],
    "seconds": 60.0,
    "round_bytes": 0,
    "most_rounds": 25,
    "excursion": 0.2,
    "slope": 0.1,
}
MEASURES = {"rounds.latency": "s", "steady.round": "1", "steady.latency": "s", "steady.longest": "s"}

pytestmark = pytest.mark.rackloop(
    purpose="measure the latency of a drive in steady state, one I/O at a time: average, percentiles and the longest",
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
        Workload(block, reads, iodepth=1) for reads in parameters["read_percents"] for block in parameters["blocks"]
    ]


def test_latency(drive_under_test: DriveUnderTest, parameters: Mapping[str, Any], measure: Measure) -> None:
    """Go through the matrix in every round; the average of 4 KiB writes says when the drive is steady."""
    conditions, workloads = Conditions.of(parameters), _workloads(parameters)
    drive_under_test.prepare(conditions)
    rounds = drive_under_test.rounds(workloads, conditions, tracked=tracked_of(workloads), quantity=LATENCY)
    for workload in workloads:
        measure("rounds.latency", rounds.values(workload), **workload.labels)
    measure("steady.round", rounds.steady().last)
    for workload in workloads:
        jobs = rounds.in_window(workload)
        measure("steady.latency", Distribution.pooled(latency_of(job) for job in jobs), **workload.labels)
        measure("steady.longest", max(job.longest_us for job in jobs) / 1e6, **workload.labels)
