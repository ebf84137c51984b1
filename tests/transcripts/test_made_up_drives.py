"""Emulated ``nvme`` and ``smartctl`` against the real ones, of drives that fared as no emulated hardware does."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from rackloop_labs.mock_hosts._view import AttachedDrive, HostView
from tests.transcripts.drift import RECORDED, recording
from tests.transcripts.guest import GUEST, SAS, run

# What the drives of the recordings named pages-* answered, by how they fared.
_COUNTERS = {
    "power_cycles": 4,
    "power_on_ns": 7 * 3_600_000_000_000,
    "reads": 1000,
    "writes": 2000,
    "bytes_read": 51_200_000,
    "bytes_written": 102_400_000,
    "erase_count_mean": 360,
    "phy_resets": 1,
}
_HURT = {"phy_resets": 5, "read_errors": 40, "read_retries": 30}
_ERRORS = {"fresh": {}, "hurt": {**_HURT, "media_errors": 3}, "failing": {**_HURT, "media_errors": 120}}
_FAILED_LBAS = {"fresh": (), "hurt": (4096, 123456, 400000), "failing": (4096, 123456, 0x1_2345_6789)}
_SAS_SSD = replace(
    SAS, kernel_name="sdd", serial="SASSSD01", model="QEMU SAS-SSD", wwn="5000c50000000acc", is_rotational=False
)


def _fared(state: str) -> HostView:
    def with_errors(drive: AttachedDrive) -> AttachedDrive:
        eui64 = "0025385b71b00001" if drive.protocol == "nvme" and state != "fresh" else None
        return replace(drive, counters=_COUNTERS | _ERRORS[state], failed_lbas=_FAILED_LBAS[state], eui64=eui64)

    return replace(GUEST, drives=tuple(map(with_errors, (*GUEST.drives, _SAS_SSD))))


def _timeless(text: str) -> str:
    """The output without the time it was made at."""
    without_date = re.sub(r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d [\d:]{8} \d{4} UTC", "DATE", text)
    return re.sub(r'"time_t": \d+', '"time_t": 0', without_date)


@pytest.mark.parametrize("name", sorted(path.stem for path in RECORDED.glob("pages-*.cmd")))
def test_a_tool_prints_what_the_real_one_makes_of_the_same_drive(name: str) -> None:
    real = recording(name)
    answer = run(*real.argv, view=_fared(name.split("-")[1]))
    assert _timeless(answer.stdout) == _timeless(real.stdout)
    assert (answer.stderr, answer.status) == (real.stderr, real.status)
