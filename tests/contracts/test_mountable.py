"""The file system that is mounted after remaps: on a drive that may be written, as its own tools read it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from rackloop.errors import BadInput, GuardRefused, LabError
from rackloop_drivers.block import DevicePath
from rackloop_drivers.host import LocalExecutor
from rackloop_drivers.workload import SECTOR_BEHIND, Expected, RackProbe
from tests.deadlines import CLOCK, soon
from tests.writable_drive import minted

BYTES = 32 << 20
DRIVE = Expected("RL000001", generation=3, seed=9)
PLACES = "/usr/sbin:/sbin"

needs_e2fsprogs = pytest.mark.skipif(shutil.which("debugfs", path=PLACES) is None, reason="e2fsprogs is missing")


@pytest.fixture
def drive(tmp_path: Path) -> Path:
    """A drive full of somebody's old data."""
    path = tmp_path / "drive"
    path.write_bytes(os.urandom(1 << 20) * (BYTES >> 20))
    return path


def told(program: str, *arguments: str) -> str:
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=True, env={"PATH": PLACES})
    return done.stdout


@needs_e2fsprogs
def test_a_drive_has_one_file_that_identifies_it_and_a_sector_behind(drive: Path, tmp_path: Path) -> None:
    with LocalExecutor(CLOCK) as here, minted(DevicePath(drive), DRIVE.serial) as permit:
        probe = RackProbe(here, CLOCK)
        probe.make_mountable(permit, DRIVE, soon())
        told("e2fsck", "-f", "-n", str(drive))
        first = tmp_path / "first"
        told("debugfs", "-R", f"dump /first {first}", str(drive))
        assert probe.verify(DevicePath(first), DRIVE, soon()).is_right
        assert probe.verify(DevicePath(drive), DRIVE, soon(), start_lba=SECTOR_BEHIND).is_right
    assert drive.stat().st_size == BYTES


@needs_e2fsprogs
def test_a_drive_that_is_too_small_is_refused_whole(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.write_bytes(bytes(SECTOR_BEHIND * 4096))
    with (
        LocalExecutor(CLOCK) as here,
        minted(DevicePath(small), DRIVE.serial) as permit,
        pytest.raises(BadInput, match="do not fit"),
    ):
        RackProbe(here, CLOCK).make_mountable(permit, DRIVE, soon())
    assert not any(small.read_bytes())


def test_nothing_but_a_permission_is_written(drive: Path) -> None:
    before = drive.read_bytes()
    with LocalExecutor(CLOCK) as here, pytest.raises(GuardRefused):
        RackProbe(here, CLOCK).make_mountable(DevicePath(drive), DRIVE, soon())  # type: ignore[arg-type]
    assert drive.read_bytes() == before


@needs_e2fsprogs
def test_a_place_that_is_gone_is_not_made_anew(drive: Path) -> None:
    with LocalExecutor(CLOCK) as here, minted(DevicePath(drive), DRIVE.serial) as permit:
        drive.unlink()
        with pytest.raises(LabError, match=r"No such file|cannot be opened|is gone"):
            RackProbe(here, CLOCK).make_mountable(permit, DRIVE, soon())
    assert not drive.exists()
