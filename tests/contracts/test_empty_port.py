"""A port of a server that has no drive yet is watched by its path: a physical rack's code, on mock servers by SSH."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from rackloop.errors import LabError
from rackloop.lab import Lab, LabState, load_lab, once_online
from rackloop.safety import Guard
from rackloop_drivers.rackd import RackdControl
from rackloop_drivers.workload import Expected, ProbeTarget, RackProbe
from rackloop_labs import Bench, open_lab
from tests.deadlines import CLOCK, soon
from tests.discovered_rack import erasable_rack
from tests.leased import EverythingLeased

SERIALS = ("RL000001", "00123456")
"""A SATA drive and an NVMe one, whose names at a port end differently."""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """The mock rack as `lab discover` describes it, a physical one, whose owner lets it all be erased."""
    with erasable_rack(tmp_path_factory, f"empty-port-{os.getpid()}") as file:
        yield load_lab(file)


@pytest.fixture
def bench(lab: Lab) -> Iterator[Bench]:
    with open_lab(lab, CLOCK, LabState.of(lab.name), None) as bench:
        yield bench


@pytest.fixture
def hand() -> Iterator[RackdControl]:
    """Somebody's hand in the rack, who asks nobody's leave."""
    control = RackdControl(Path(LabState.of("mock").endpoints()["control"]), CLOCK)
    yield control
    control.close()


def label(lab: Lab, bench: Bench, server: str, port: str, serial: str) -> Expected:
    """Have the drive there carry an identified sector."""
    drive = bench.drive(server, port)
    name = next(name for name, described in lab.drives.items() if described.serial == serial)
    assert once_online(drive, soon()).serial == serial
    with Guard(lab, EverythingLeased()).writable(name, drive, bench.device(server, port), soon()) as permit:
        RackProbe(bench.host(server), CLOCK).write(permit, soon(), generation=1, seed=7)
    return Expected(serial, 1, 7)


@pytest.mark.parametrize("serial", SERIALS)
def test_a_port_is_armed_before_its_drive_is_there(lab: Lab, bench: Bench, hand: RackdControl, serial: str) -> None:
    at = next(drive.port for drive in lab.drives.values() if drive.serial == serial)
    assert at is not None
    hand.request("map", soon(), pairs=[[1, at]])
    expected = label(lab, bench, "srv1", "p0", serial)
    hand.request("map", soon(), pairs=[[13, at]])
    device = bench.device("srv1", "p0")
    assert soon().poll(
        lambda: device.probe_target() == f"/dev/disk/by-path/{lab.servers['srv1'].paths['p0']}", every_s=0.05
    )
    with pytest.raises(LabError, match="no drive at pci-"):
        device.fio_options()
    probe = RackProbe(bench.host("srv1"), CLOCK)
    with probe.remap_session([ProbeTarget("p0", device.probe_target())], soon()) as session:
        arm = session.arm("p0", expected, soon())
        hand.request("map", soon(), pairs=[[1, at]])
        read = session.wait_verified(arm, soon())
    assert (read.verdicts["right"], read.wrong_drive) == (1, 0)
    assert read.errors, "nothing was there at first"
    # Nothing that mounts a drive is behind a simulated server: it says so, and the read stands.
    targets = [ProbeTarget("p0", device.probe_target(), file_system="ext4")]
    with probe.remap_session(targets, soon()) as session:
        read = session.wait_verified(session.arm("p0", expected, soon()), soon())
    assert (read.mounted_ns, read.verdicts["right"]) == (None, 1)
    assert "mount" in str(read.mount_error)
