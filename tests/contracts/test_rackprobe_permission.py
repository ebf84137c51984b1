"""rackprobe writes to what the guard minted and to nothing else, also where the guard holds the device."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rackloop.abilities import BlockDevice
from rackloop.errors import GuardRefused, LabError
from rackloop.native import find_binary
from rackloop_drivers.block import DevicePath
from rackloop_drivers.host import LocalExecutor
from rackloop_drivers.workload import Expected, Fio, FioJob, FioRun, RackProbe, ReadWrite
from tests.deadlines import CLOCK, soon
from tests.writable_drive import minted

BYTES = 1 << 20
SERIAL = "RL000001"


@dataclass(frozen=True)
class LookAlike:
    """Says all that a WritableDrive says; no guard has seen it."""

    serial: str
    device: BlockDevice
    drive_id: str = "d1"
    is_claimed: bool = True


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "drive"
    path.write_bytes(bytes(BYTES))
    return path


@pytest.fixture
def node(image: Path) -> Iterator[Path]:
    """A real block device."""
    losetup = shutil.which("losetup")
    if losetup is None:
        pytest.skip("losetup is not installed")
    made = subprocess.run((losetup, "--find", "--show", str(image)), capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"no loop device can be had here: {made.stderr.strip()}")
    path = made.stdout.strip()
    yield Path(path)
    subprocess.run((losetup, "--detach", path), check=True)


def alike(device: BlockDevice) -> object:
    return LookAlike(SERIAL, device)


def bare(device: BlockDevice) -> object:
    return device


@pytest.mark.parametrize("forge", [alike, bare])
def test_only_what_the_guard_minted_is_written(
    probe: RackProbe, image: Path, forge: Callable[[BlockDevice], Any]
) -> None:
    device = DevicePath(image)
    drive = forge(device)
    with pytest.raises(GuardRefused, match="WritableDrive, which the guard alone can mint"):
        probe.write(drive, soon())
    with pytest.raises(GuardRefused, match="WritableDrive, which the guard alone can mint"):
        probe.watch(device, Expected(SERIAL), soon(), write_to=drive)
    assert image.read_bytes() == bytes(BYTES)


def test_a_permission_for_one_device_writes_no_other(probe: RackProbe, image: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(bytes(BYTES))
    with (
        minted(DevicePath(image), SERIAL) as drive,
        pytest.raises(GuardRefused, match=f"the permission is not for {other}"),
    ):
        probe.watch(DevicePath(other), Expected(SERIAL), soon(), write_to=drive)
    assert image.read_bytes() == other.read_bytes() == bytes(BYTES)


def test_a_permission_that_was_given_back_writes_nothing(probe: RackProbe, image: Path) -> None:
    minted(DevicePath(image), SERIAL).close()
    drive = minted(DevicePath(image), SERIAL)
    drive.close()
    with pytest.raises(LabError, match="given back"):
        probe.write(drive, soon())
    assert image.read_bytes() == bytes(BYTES)


def test_a_claim_alone_is_no_permission(executor: LocalExecutor, image: Path) -> None:
    done = executor.run((str(find_binary("rackprobe")), "write", str(image), "--serial=A", "--claimed"), soon())
    assert (done.status, done.stdout) == (2, "")
    assert "--allow-write" in done.stderr
    assert image.read_bytes() == bytes(BYTES)


def test_a_device_that_the_guard_holds_is_written(probe: RackProbe, node: Path) -> None:
    device = DevicePath(node)
    with minted(device, SERIAL) as drive:
        assert drive.is_claimed
        probe.write(drive, soon(), sectors=8)
        assert probe.verify(device, Expected(SERIAL), soon(), sectors=8).is_right
        expected = Expected(SERIAL, generation=2)
        with probe.watch(device, expected, soon(), write_to=drive, sectors=8, duration_s=0.02) as watch:
            result = watch.result(soon(), stop=False)
    assert result.errors == 0
    assert result.verdicts["right"] >= 1


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_fio_writes_a_device_that_the_guard_holds(executor: LocalExecutor, node: Path) -> None:
    with minted(DevicePath(node), SERIAL) as drive:
        job = FioJob(name="w", device=drive, rw=ReadWrite.WRITE, verify="crc32c")
        result = Fio(executor, CLOCK).run(FioRun(jobs=(job,), seed=1), soon())
    assert result.total_err == 0
    assert result.job("w").transfers["write"].io_bytes == BYTES


def test_a_device_that_somebody_else_holds_is_not_written(executor: LocalExecutor, node: Path, image: Path) -> None:
    with minted(DevicePath(node), SERIAL):
        argv = (str(find_binary("rackprobe")), "write", str(node), f"--serial={SERIAL}", f"--allow-write={SERIAL}")
        done = executor.run(argv, soon())
    assert (done.status, done.stdout) == (3, "")
    assert "the device is in use" in done.stderr
    assert image.read_bytes() == bytes(BYTES)
