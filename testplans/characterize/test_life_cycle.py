"""A drive's whole life in a lab: identified, erased, preconditioned, measured, verified, its health compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from rackloop.abilities import SanitizeMethod
from rackloop.errors import ProductFailed
from rackloop.inspection.health import health_changes
from rackloop.lab import Lab
from rackloop.parameters import flag, number, part, size, whole
from rackloop_fixtures import (
    PTS_STATISTICS,
    Conditions,
    DriveUnderTest,
    LimitsUnknown,
    Measure,
    Workload,
    measured_bytes,
    measured_drives,
    tracked_of,
)

KIB = 1 << 10
PARAMETERS = {
    "drive": part("", "the drive to measure; the first scratch drive where empty", of="drive"),
    "active_range": size(0, "measured range from the start of the drive; all of it where 0", least=0, most=1 << 50),
    "purge": flag(True, "purge the drive first"),
    "fills": whole(2, "sequential fills before the measurement", least=0, most=100),
    "block": size(4 * KIB, "the size of an I/O", least=512, most=64 << 20, multiple=512),
    "read_percents": whole([100, 65, 0], "percentages of reads, each in turn", least=0, most=100),
    "iodepth": whole(32, "I/Os outstanding in each thread", most=4096),
    "threads": whole(1, "threads of fio", most=256),
    "seconds": number(60.0, "duration of each workload in a round", least=0.001, most=86_400, unit="s"),
    "round_bytes": size(0, "amount of I/O of each workload instead, where not 0", least=0, most=1 << 50),
    "most_rounds": whole(25, "most rounds to reach steady state", least=5, most=1000),
    "excursion": number(0.2, "largest excursion of a steady round from the mean, as a share", most=1000),
    "slope": number(0.1, "largest drift of the trend over the steady rounds, as a share of the mean", most=1000),
}
MEASURES = {
    "life.differs": "1",
    "life.not_erased": "1",
    "life.corrupt": "1",
    "life.alarms": "1",
    "rounds.iops": "IOPS",
    "steady.round": "1",
    "steady.iops": "IOPS",
    "unsteady.iops": "IOPS",
    "health.before": "1",
    "health.after": "1",
    "health.change": "1",
}
HEADLINES = ("steady.iops", "unsteady.iops")

pytestmark = pytest.mark.rackloop(
    purpose="take a drive through inventory, erasure, preconditioning, measuring and verifying, and compare its health",
    requires=["fio", "probe"],
    destructive=True,
    time_class="hours",
)


def drives_erased(lab: Lab, parameters: Mapping[str, Any]) -> list[str]:
    """The drive that is qualified."""
    return measured_drives(lab, parameters)


def estimate_s(lab: Lab, parameters: Mapping[str, Any]) -> float:
    """Two fills and the rounds; the region is written and read twice more with identified sectors, at 500 MB/s."""
    region_bytes = measured_bytes(lab, parameters)
    measuring_s = Conditions.of(parameters).estimate_s(len(_workloads(parameters)), region_bytes)
    return measuring_s + 4 * region_bytes / 500e6


def _workloads(parameters: Mapping[str, Any]) -> list[Workload]:
    depth, threads = parameters["iodepth"], parameters["threads"]
    return [
        Workload(parameters["block"], reads, iodepth=depth, threads=threads)
        for reads in dict.fromkeys(parameters["read_percents"])
    ]


def test_life_cycle(drive_under_test: DriveUnderTest, parameters: Mapping[str, Any], measure: Measure) -> None:
    """Ask the drive who and how it is, erase it, measure it, verify it, and ask again how it is."""
    drive, conditions, workloads = drive_under_test, Conditions.of(parameters), _workloads(parameters)
    wrong = drive.inventory()
    measure("life.differs", len(wrong))
    before = drive.health()

    old = drive.identify_sectors()
    method = drive.purge() if conditions.purge else None
    if method is not None:
        found = drive.verify(old)
        # Where only the key is thrown away, what is read afterwards is noise and not zeros.
        erased = found.verdicts["blank"] + (found.verdicts["foreign"] if method == SanitizeMethod.CRYPTO_ERASE else 0)
        measure("life.not_erased", found.sectors - erased)
        if found.sectors != erased:
            wrong.append(f"{found.sectors - erased} of {found.sectors} sectors do not read back erased after {method}")

    drive.fill(conditions.fills)
    rounds = drive.rounds(workloads, conditions, tracked=tracked_of(workloads))
    for workload in workloads:
        measure("rounds.iops", rounds.values(workload), **workload.labels)

    verified = drive.verify(drive.identify_sectors())
    corrupt = verified.sectors - verified.verdicts["right"]
    measure("life.corrupt", corrupt)
    if corrupt:
        wrong.append(f"{corrupt} of {verified.sectors} sectors do not read back what was written")

    changes = health_changes(before, drive.health())
    for change in changes:
        for name, value in (("before", change.before), ("after", change.after), ("change", change.difference)):
            if value is not None:
                measure(f"health.{name}", value, counter=change.counter)
    alarms = [change.alarm for change in changes if change.alarm]
    measure("life.alarms", len(alarms))
    for workload in workloads:
        found_iops = [job.iops for job in rounds.reported(workload)]
        measure(f"{rounds.state}.iops", found_iops, statistics=PTS_STATISTICS, **workload.labels)
    if wrong or alarms:
        raise ProductFailed("; ".join((*wrong, *alarms)))
    if not before:
        raise LimitsUnknown(
            f"drive {drive.drive_id} reports no health counter: nothing says that it is as it was before"
        )

    measure("steady.round", rounds.steady().last)
