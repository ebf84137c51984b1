"""Write saturation: a new drive written at random until it can hide no more, as the SNIA Performance Test
Specification has it."""  # noqa: D205, D209

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from rackloop.errors import BadInput
from rackloop.lab import Lab
from rackloop.steady_state import Criteria
from rackloop_fixtures import DriveUnderTest, Measure, Workload, measured_bytes, measured_drives

KIB = 1 << 10
# The defaults are the specification's. An active range of 0 is the whole drive, an empty name the first scratch drive.
PARAMETERS: dict[str, Any] = {
    "drive": "",
    "active_range": 0,
    "purge": True,
    "block": 4 * KIB,
    "iodepth": 32,
    "threads": 1,
    "overwrites": 4.0,
    "most_seconds": 86_400.0,
    "round_seconds": 60.0,
    "excursion": 0.2,
    "slope": 0.1,
}
MEASURES = {
    "saturation.iops": "IOPS",
    "saturation.fresh": "IOPS",
    "saturation.steady": "IOPS",
    "saturation.ratio": "1",
    "saturation.cliff": "B",
    "saturation.longest": "s",
}

pytestmark = pytest.mark.rackloop(
    purpose="write a new drive at random until its IOPS are steady, and say when it stopped being as new",
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
    steady = saturation.steady.average
    measure("saturation.steady", steady)
    measure("saturation.ratio", steady / saturation.fresh)
