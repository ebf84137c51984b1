"""Latency in steady state with one I/O outstanding, as the SNIA Performance Test Specification measures it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from rackloop.lab import Lab
from rackloop.measurement import Distribution
from rackloop.parameters import flag, number, part, size, whole
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
# The defaults are the specification's.
PARAMETERS = {
    "drive": part("", "the drive to measure; the first scratch drive where empty", of="drive"),
    "active_range": size(0, "measured range from the start of the drive; all of it where 0", least=0, most=1 << 50),
    "purge": flag(True, "purge the drive first"),
    "fills": whole(2, "sequential fills before the measurement", least=0, most=100),
    "blocks": size(
        [8 * KIB, 4 * KIB, 512],
        "I/O sizes, each in turn",
        least=512,
        most=64 << 20,
        multiple=512,
    ),
    "read_percents": whole([100, 65, 0], "percentages of reads, each in turn", least=0, most=100),
    "seconds": number(60.0, "duration of each workload in a round", least=0.001, most=86_400, unit="s"),
    "round_bytes": size(0, "amount of I/O of each workload instead, where not 0", least=0, most=1 << 50),
    "most_rounds": whole(25, "most rounds to reach steady state", least=5, most=1000),
    "excursion": number(0.2, "largest excursion of a steady round from the mean, as a share", most=1000),
    "slope": number(0.1, "largest drift of the trend over the steady rounds, as a share of the mean", most=1000),
}
MEASURES = {
    "rounds.latency": "s",
    "steady.round": "1",
    "steady.latency": "s",
    "steady.longest": "s",
    "unsteady.latency": "s",
    "unsteady.longest": "s",
}
HEADLINES = ("steady.latency", "unsteady.latency")

pytestmark = pytest.mark.rackloop(
    purpose="measure the latency of a drive in steady state, one I/O at a time: average, percentiles and the longest",
    requires=["fio"],
    destructive=True,
    time_class="hours",
)


# Erased is the drive that is measured.
drives_erased = measured_drives


def estimate_s(lab: Lab, parameters: Mapping[str, Any]) -> float:
    """Two fills, and rounds of the whole matrix until it is steady."""
    return measuring_s(lab, parameters, _workloads(parameters))


def _workloads(parameters: Mapping[str, Any]) -> list[Workload]:
    return [
        Workload(block, reads, iodepth=1)
        for reads in dict.fromkeys(parameters["read_percents"])
        for block in dict.fromkeys(parameters["blocks"])
    ]


def test_latency(drive_under_test: DriveUnderTest, parameters: Mapping[str, Any], measure: Measure) -> None:
    """Go through the matrix in every round; the average of 4 KiB writes says when the drive is steady."""
    conditions, workloads = Conditions.of(parameters), _workloads(parameters)
    drive_under_test.prepare(conditions)
    rounds = drive_under_test.rounds(workloads, conditions, tracked=tracked_of(workloads), quantity=LATENCY)
    for workload in workloads:
        measure("rounds.latency", rounds.values(workload), **workload.labels)
    for workload in workloads:
        jobs, state = rounds.reported(workload), rounds.state
        pooled = Distribution.pooled(latency_of(job) for job in jobs)
        measure(f"{state}.latency", pooled, statistics=("mean", 0.5, 0.99, 0.999), **workload.labels)
        measure(f"{state}.longest", max(job.longest_us for job in jobs) / 1e6, **workload.labels)
    measure("steady.round", rounds.steady().last)
