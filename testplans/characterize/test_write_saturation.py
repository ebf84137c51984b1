"""Write saturation: a new drive written at random until its write rate is steady, as in the SNIA Performance
Test Specification."""  # noqa: D205, D209

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from rackloop.errors import BadInput
from rackloop.lab import Lab
from rackloop.measurement import Criteria
from rackloop.parameters import flag, number, part, size, whole
from rackloop_fixtures import DriveUnderTest, Measure, Workload, measured_bytes, measured_drives

KIB = 1 << 10
# The defaults are the specification's.
PARAMETERS = {
    "drive": part("", "the drive to measure; the first scratch drive where empty", of="drive"),
    "active_range": size(0, "measured range from the start of the drive; all of it where 0", least=0, most=1 << 50),
    "purge": flag(True, "purge the drive first"),
    "block": size(4 * KIB, "the size of an I/O", least=512, most=64 << 20, multiple=512),
    "iodepth": whole(32, "I/Os outstanding in each thread", most=4096),
    "threads": whole(1, "threads of fio", most=256),
    "overwrites": number(4.0, "most overwrites of the range", least=0.001, most=1_000_000),
    "most_seconds": number(86_400.0, "most time of writing", least=0.1, most=864_000, unit="s"),
    "round_seconds": number(60.0, "duration of a round", least=0.001, most=86_400, unit="s"),
    "excursion": number(0.2, "largest excursion of a steady round from the mean, as a share", most=1000),
    "slope": number(0.1, "largest drift of the trend over the steady rounds, as a share of the mean", most=1000),
}
MEASURES = {
    "saturation.iops": "IOPS",
    "saturation.fresh": "IOPS",
    "saturation.last": "IOPS",
    "saturation.steady": "IOPS",
    "saturation.ratio": "1",
    "saturation.cliff": "B",
    "saturation.longest": "s",
}
HEADLINES = ("saturation.fresh", "saturation.last", "saturation.steady")

pytestmark = pytest.mark.rackloop(
    purpose="write a new drive at random until its IOPS are steady, and report when its initial performance ended",
    requires=["fio"],
    destructive=True,
    time_class="hours",
)


# Erased is the drive that is measured.
drives_erased = measured_drives


def estimate_s(lab: Lab, parameters: Mapping[str, Any]) -> float:
    """At 100 MB/s of random writes."""
    written = parameters["overwrites"] * measured_bytes(lab, parameters)
    if written <= 0 or parameters["round_seconds"] <= 0:
        raise BadInput("overwrites and round_seconds must be more than 0")
    return float(min(parameters["most_seconds"], written / 100e6))


def test_write_saturation(drive_under_test: DriveUnderTest, parameters: Mapping[str, Any], measure: Measure) -> None:
    """Purge, then write without a pause; nothing is filled before."""
    if parameters["purge"]:
        drive_under_test.purge()
    saturation = drive_under_test.saturate(
        Workload(parameters["block"], 0, iodepth=parameters["iodepth"], threads=parameters["threads"]),
        overwrites=parameters["overwrites"],
        most_s=parameters["most_seconds"],
        round_s=parameters["round_seconds"],
        criteria=Criteria(excursion=parameters["excursion"], slope=parameters["slope"]),
    )
    measure("saturation.iops", saturation.iops)
    measure("saturation.longest", saturation.longest_s)
    measure("saturation.fresh", saturation.fresh)
    if saturation.cliff_bytes is not None:
        measure("saturation.cliff", saturation.cliff_bytes)
    measure("saturation.last", saturation.last.average)
    steady = saturation.steady.average
    measure("saturation.steady", steady)
    if saturation.fresh:
        measure("saturation.ratio", steady / saturation.fresh)
    else:
        measure.untaken("saturation.ratio", "the new drive completed nothing in its first rounds: make them longer")
    measure.require_taken()
