"""Drives, sanitizers, block devices and outlets keep their contracts: simulated ones, and a drive of this machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rackloop.clock import Deadline
from rackloop.contracts import block_device, drive, power_port, sanitizer
from rackloop.errors import NotSupported
from rackloop_drivers.block import NbdExport
from rackloop_drivers.block.device_path import DevicePath
from rackloop_drivers.drive import RackdDrive
from rackloop_drivers.power import RackdPowerPort
from rackloop_drivers.rackd import RackdControl
from tests.deadlines import CLOCK
from tests.nbd_wire import NbdWire
from tests.rackd_process import RunningRackd, running_rackd, small_rack
from tests.rackd_process import drive as described
from tests.writable_drive import minted

REAL_DRIVE = "RACKLOOP_REAL_BLOCK_DEVICE"
TARGETS = ("server:srv1", "drive:d01", "switch")


@pytest.fixture(scope="module")
def rackd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRackd]:
    changes = {"drives": [described(1), described(2, rotational=True)], "map": [[1, 101], [2, 102]]}
    with running_rackd(tmp_path_factory.mktemp("rackd"), small_rack() | changes) as running:
        yield running


@pytest.fixture
def control(rackd: RunningRackd) -> Iterator[RackdControl]:
    """A connection to a rack whose drives d01, flash, and d02, a hard disk, answer on srv1's ports p0 and p1."""
    control = rackd.connect()
    deadline = Deadline.after(CLOCK, 20)
    for port in ("p0", "p1"):
        while control.request("identify", deadline, server="srv1", port=port)["drive"] is None:
            assert not deadline.is_over()
    yield control
    control.close()


@pytest.mark.parametrize("clause", power_port.CONTRACT, ids=lambda clause: clause.__name__)
@pytest.mark.parametrize("target", TARGETS)
def test_simulated_outlet(
    clause: Callable[[power_port.PowerPortFactory], None], control: RackdControl, target: str
) -> None:
    clause(lambda: RackdPowerPort(control, target))


@pytest.mark.parametrize("clause", drive.CONTRACT, ids=lambda clause: clause.__name__)
def test_simulated_drive(clause: Callable[[drive.DriveFactory], None], control: RackdControl) -> None:
    clause(lambda: RackdDrive(control, server="srv1", port="p0"))


@pytest.mark.parametrize("clause", sanitizer.CONTRACT, ids=lambda clause: clause.__name__)
@pytest.mark.parametrize(("port", "serial"), [("p0", "RL000001"), ("p1", "RL000002")])
def test_simulated_sanitizer(
    clause: Callable[[sanitizer.SanitizerArm], None], rackd: RunningRackd, control: RackdControl, port: str, serial: str
) -> None:
    export = NbdExport(rackd.nbd, f"srv1.{port}", 64 << 20)

    def write(data: bytes) -> None:
        with NbdWire(rackd.nbd, export.export) as wire:
            assert wire.write(0, data) == 0

    def read(length: int) -> bytes:
        with NbdWire(rackd.nbd, export.export) as wire:
            return wire.read(0, length)[1]

    arm = sanitizer.SanitizerArm(
        make=lambda: RackdDrive(control, server="srv1", port=port),
        permission=lambda: minted(export, serial),
        foreign=lambda: minted(export, "RL000077"),
        write=write,
        read=read,
    )
    clause(arm)


@pytest.mark.parametrize("clause", block_device.CONTRACT, ids=lambda clause: clause.__name__)
def test_nbd_export(clause: Callable[[block_device.BlockDeviceFactory], None], tmp_path: Path) -> None:
    try:
        clause(lambda: NbdExport(tmp_path / "nbd.sock", "srv1.p0", 64 << 20))
    except NotSupported as reason:
        pytest.skip(str(reason))


@pytest.fixture(params=["file", "real"])
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "real":
        real = os.environ.get(REAL_DRIVE)
        if real is None:
            pytest.skip(f"no drive to try: set {REAL_DRIVE} to the node of one that nobody uses")
        return Path(real)
    image = tmp_path / "pci-0000:00:1f.2-ata-2"
    with image.open("wb") as file:
        file.truncate(8 << 20)
    return image


@pytest.mark.parametrize("clause", block_device.CONTRACT, ids=lambda clause: clause.__name__)
def test_device_path(clause: Callable[[block_device.BlockDeviceFactory], None], node: Path) -> None:
    clause(lambda: DevicePath(node))
