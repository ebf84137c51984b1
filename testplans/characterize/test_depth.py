"""IOPS and latency by queue depth: the demand intensity of the SNIA Performance Test Specification."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from rackloop.lab import Lab
from rackloop.measurement import Distribution
from rackloop.parameters import flag, number, part, size, whole
from rackloop_fixtures import (
    PTS_STATISTICS,
    Conditions,
    DriveUnderTest,
    Measure,
    Workload,
    latency_of,
    measured_drives,
    measuring_s,
)

KIB = 1 << 10
# The defaults are the specification's.
PARAMETERS = {
    "drive": part("", "the drive to measure; the first scratch drive where empty", of="drive"),
    "active_range": size(0, "measured range from the start of the drive; all of it where 0", least=0, most=1 << 50),
    "purge": flag(True, "purge the drive first"),
    "fills": whole(2, "sequential fills before the measurement", least=0, most=100),
    "block": size(4 * KIB, "the size of an I/O", least=512, most=64 << 20, multiple=512),
    "read_percent": whole(0, "percentage of reads", least=0, most=100),
    "iodepths": whole([1, 2, 4, 8, 16, 32, 64, 128, 256], "I/Os outstanding in each thread, each in turn", most=4096),
    "threads": whole(1, "threads of fio", most=256),
    "seconds": number(60.0, "duration of each workload in a round", least=0.001, most=86_400, unit="s"),
    "round_bytes": size(0, "amount of I/O of each workload instead, where not 0", least=0, most=1 << 50),
    "most_rounds": whole(25, "most rounds to reach steady state", least=5, most=1000),
    "excursion": number(0.2, "largest excursion of a steady round from the mean, as a share", most=1000),
    "slope": number(0.1, "largest drift of the trend over the steady rounds, as a share of the mean", most=1000),
}
MEASURES = {
    "rounds.iops": "IOPS",
    "steady.round": "1",
    "demand.iops": "IOPS",
    "demand.latency": "s",
    "unsteady.iops": "IOPS",
    "unsteady.latency": "s",
}
HEADLINES = ("demand.iops", "unsteady.iops")

pytestmark = pytest.mark.rackloop(
    purpose="measure how IOPS and latency of a drive in steady state grow with queue depth",
    requires=["fio"],
    destructive=True,
    time_class="hours",
)


# Erased is the drive that is measured.
drives_erased = measured_drives


def estimate_s(lab: Lab, parameters: Mapping[str, Any]) -> float:
    """Two fills, and rounds of all depths until it is steady."""
    return measuring_s(lab, parameters, _workloads(parameters))


def _workloads(parameters: Mapping[str, Any]) -> list[Workload]:
    block, reads, threads = parameters["block"], parameters["read_percent"], parameters["threads"]
    return [Workload(block, reads, iodepth=depth, threads=threads) for depth in sorted({*parameters["iodepths"]})]


def test_depth(drive_under_test: DriveUnderTest, parameters: Mapping[str, Any], measure: Measure) -> None:
    """Go through all depths in every round; the deepest says when the drive is steady."""
    conditions, workloads = Conditions.of(parameters), _workloads(parameters)
    drive_under_test.prepare(conditions)
    rounds = drive_under_test.rounds(workloads, conditions, tracked=workloads[-1])
    for workload in workloads:
        outstanding = str(workload.outstanding)
        measure("rounds.iops", rounds.values(workload), **workload.labels, outstanding=outstanding)
    of = "demand" if rounds.window else "unsteady"
    for workload in workloads:
        jobs = rounds.reported(workload)
        labels = {**workload.labels, "outstanding": str(workload.outstanding)}
        measure(f"{of}.iops", [job.iops for job in jobs], statistics=PTS_STATISTICS, **labels)
        pooled = Distribution.pooled(latency_of(job) for job in jobs)
        measure(f"{of}.latency", pooled, statistics=("mean", 0.5, 0.99), **labels)
    measure("steady.round", rounds.steady().last)
