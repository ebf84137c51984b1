"""Drives that the kernel offers to other machines, or by loop devices, are in use, without a holder to tell of it."""

from __future__ import annotations

import pytest

from rackloop.clock import Deadline, VirtualClock
from rackloop_drivers.host_tools import identify_drive, read_drive, survey_host
from tests.unit.harness.recorded_server import RecordedServer

SOON = Deadline.after(VirtualClock(), 10)


@pytest.mark.parametrize(
    ("node", "claims"),
    [
        ("/dev/nvme0n1", ("nvme0n1 is namespace 2 of nqn.2014-08.org:x, for NVMe over Fabrics",)),
        ("/dev/nvme0n1p3", ("nvme0n1p3 is namespace 2 of nqn.2014-08.org:x, for NVMe over Fabrics",)),
        ("/dev/nvme0n12", ()),
        ("/dev/nvme0n1p", ()),
    ],
)
def test_what_nvme_over_fabrics_offers_is_in_use(node: str, claims: tuple[str, ...]) -> None:
    server = RecordedServer()
    server.listings["exports"] = f"{node} nvmet/subsystems/nqn.2014-08.org:x/namespaces/2\n"
    assert identify_drive(server, "/dev/nvme0n1", SOON).usage.claims == claims
    assert read_drive(server, "/dev/nvme0n1", SOON).usage.claims == claims


def test_what_lio_offers_is_in_use() -> None:
    server = RecordedServer()
    server.listings["exports"] = "/dev/sda target/core/iblock_0/d01\n/dev/sdb1 target/core/fileio_1/d02\n"
    sas, sata, nvme = (drive.usage.claims for drive in survey_host(server, SOON).drives)
    assert "sda is the backstore iblock_0/d01 of LIO, for SCSI initiators" in sas
    assert "sdb1 is the backstore fileio_1/d02 of LIO, for SCSI initiators" in sata
    assert nvme == ()


@pytest.mark.parametrize(
    ("node", "claims"),
    [
        ("/dev/nvme0n1", ("nvme0n1 backs loop7; detach it with `losetup --detach /dev/loop7`",)),
        ("/dev/nvme0n1p3", ("nvme0n1p3 backs loop7; detach it with `losetup --detach /dev/loop7`",)),
        ("/dev/nvme0n12", ()),
        ("/srv/images/nvme0n1", ()),
    ],
)
def test_a_drive_that_a_loop_device_stands_on_is_in_use(node: str, claims: tuple[str, ...]) -> None:
    server = RecordedServer()
    server.listings["loops"] = f"loop7 {node}\n"
    assert identify_drive(server, "/dev/nvme0n1", SOON).usage.claims == claims
    assert read_drive(server, "/dev/nvme0n1", SOON).usage.claims == claims
