"""Drives of a virtual rack erase themselves, fail fast and hang, told by the tools of real kernels."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rackloop.abilities import SanitizeMethod, WritableDrive
from rackloop.errors import GuardRefused, LabError, NotSupported
from rackloop.lab import LabState, load_lab
from rackloop.safety import Guard
from rackloop_drivers.drive import HostDrive
from rackloop_drivers.fail_fast import FAIL_FAST
from rackloop_drivers.host_tools import survey_host
from rackloop_drivers.open_blocks import open_blocks
from rackloop_labs import Bench, open_lab
from tests.deadlines import CLOCK, soon
from tests.e2e.command_line import CommandLine
from tests.leased import EverythingLeased
from tests.virtual.guests import baseline_comes

# QEMU formats by writing zeros, in software.
pytestmark = pytest.mark.nightly

PATTERN = bytes(range(256)) * 16
BLOCK = SanitizeMethod.BLOCK_ERASE
ERASES_WITHIN_S = 600.0
# A read of a suspended device cannot be killed, as that of a drive which its controller has lost.
HANGS = """
modprobe dm_mod
dmsetup create hangs --table "0 $(blockdev --getsz /dev/sda) linear /dev/sda 0"
dmsetup suspend hangs
printf '#!/bin/sh\\nexec dd if=/dev/mapper/hangs iflag=direct count=1\\n' >/usr/local/bin/smartctl
chmod +x /usr/local/bin/smartctl
"""
GOES_ON = "rm /usr/local/bin/smartctl; dmsetup resume hangs; udevadm settle; dmsetup remove --retry hangs"


@pytest.fixture(scope="module")
def bench(up: CommandLine) -> Iterator[Bench]:
    """The rack, opened by the code of a real one."""
    baseline_comes(up)
    state = LabState(up.state_home / "labs" / "virtual")
    with open_lab(load_lab("virtual"), CLOCK, state, None, bring_up=False) as bench:
        yield bench


def drive_of(bench: Bench, port: str) -> HostDrive:
    drive = bench.drive("srv1", port)
    assert isinstance(drive, HostDrive)
    return drive


def permitted(bench: Bench, name: str, port: str) -> WritableDrive:
    drive, device = drive_of(bench, port), bench.device("srv1", port)
    return Guard(bench.lab, EverythingLeased()).writable(name, drive, device, soon(300))


def beginning(bench: Bench) -> bytes:
    with open_blocks(bench.device("srv1", "p0"), CLOCK) as session:
        return session.read(0, len(PATTERN))


def test_a_drive_without_sanitize_formats_itself(bench: Bench) -> None:
    drive, said = drive_of(bench, "p0"), list[str]()
    assert drive.methods(soon(300)) == (BLOCK,)
    with permitted(bench, "d01", "p0") as writable:
        with open_blocks(writable, CLOCK) as session:
            session.write(0, PATTERN)
            session.flush()
        assert beginning(bench) == PATTERN
        drive.sanitize(writable, BLOCK, soon(ERASES_WITHIN_S), progress=lambda _, words: said.append(words))
        # The holder has the drive still, and compares it anew.
        writable.require()
    assert beginning(bench) == bytes(len(PATTERN))
    assert said == ["formats itself, and does not say how far it is", "done"]


def test_a_drive_is_not_erased_without_its_own_permission(bench: Bench) -> None:
    drive = drive_of(bench, "p0")
    with permitted(bench, "d01", "p0") as writable:
        with open_blocks(writable, CLOCK) as session:
            session.write(0, PATTERN)
            session.flush()
        with pytest.raises(NotSupported, match="offers block-erase, not crypto-erase"):
            drive.sanitize(writable, SanitizeMethod.CRYPTO_ERASE, soon(300))
    with pytest.raises(LabError, match="given back"):
        drive.sanitize(writable, BLOCK, soon(300))
    with permitted(bench, "d02", "p1") as other, pytest.raises(GuardRefused, match="the permission is for RLV00002"):
        drive.sanitize(other, BLOCK, soon(300))
    assert beginning(bench) == PATTERN


def test_a_drive_is_told_to_fail_fast_and_has_its_setting_back(bench: Bench) -> None:
    part = bench.equipment.breakable["slot:srv1/p1"]
    asked = ["nvme", "get-feature", "--feature-id=5", bench.device("srv1", "p1").probe_target()]
    before = bench.host("srv1").run(asked, soon(300)).stdout
    assert "Current value:00000000" in before
    part.break_as("fail_fast/1", {"kind": FAIL_FAST, "within_s": 0.3}, soon(300))
    assert "Current value:0x00000003" in bench.host("srv1").run(asked, soon(300)).stdout
    assert part.standing(soon(300)) == {"fail_fast/1": {"kind": FAIL_FAST, "within_s": 0.3}}
    part.mend("fail_fast/1", soon(300))
    assert bench.host("srv1").run(asked, soon(300)).stdout == before


def test_a_drive_that_hangs_in_the_kernel_keeps_no_other_from_being_read(bench: Bench) -> None:
    host = bench.host("srv3")
    assert host.run(("sh", "-ec", HANGS), soon(300)).status == 0
    try:
        found = survey_host(host, soon(120))
    finally:
        assert host.run(("sh", "-c", GOES_ON), soon(300)).status == 0
    assert sorted(drive.identity.serial for drive in found.drives) == ["RLV00005", "RLV00006"]
    late = "srv3:/dev/sda: smartctl did not end in time; the drive hangs, or its link is down"
    assert found.unreadable == {"/dev/sda": late}
