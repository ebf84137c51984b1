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
    "drive": part("", "the drive that is measured; the first scratch drive where empty", of="drive"),
    "active_range": size(0, "how much of it is measured, from its start; all of it where 0", least=0, most=1 << 50),
    "purge": flag(True, "whether it is purged first"),
    "fills": whole(2, "how many times it is written in order before it is measured", least=0, most=100),
    "blocks": size(
        [8 * KIB, 4 * KIB, 512],
        "how large an I/O is, each in turn",
        least=512,
        most=64 << 20,
        multiple=512,
    ),
    "read_percents": whole([100, 65, 0], "how many of a hundred I/Os are reads, each in turn", least=0, most=100),
    "seconds": number(60.0, "how long each workload runs in a round", least=0.001, most=86_400, unit="s"),
    "round_bytes": size(0, "how much I/O it makes instead, where not 0", least=0, most=1 << 50),
    "most_rounds": whole(25, "rounds, at most, in which the drive may become steady", least=5, most=1000),
    "excursion": number(0.2, "how far a round of a steady drive may be from their mean, as a share", most=1000),
    "slope": number(
        0.1, "how far the trend of a steady drive may go over its rounds, as a share of the mean", most=1000
    ),
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
