"""Drives that the kernel offers to other machines, or by loop devices, are in use, without a holder to tell of it."""

from __future__ import annotations

import pytest

from rackloop.clock import Deadline, VirtualClock
from rackloop_drivers.host_tools import identify_drive, read_drive, survey_host
from tests.unit.harness.recorded_server import RecordedServer

SOON = Deadline.after(VirtualClock(), 10)


@pytest.mark.parametrize(
    ("listing", "line", "said"),
    [
        (
            "exports",
            "{} nvmet/subsystems/nqn.2014-08.org:x/namespaces/2\n",
            "is namespace 2 of nqn.2014-08.org:x, for NVMe over Fabrics",
        ),
        ("loops", "loop7 {}\n", "backs loop7; detach it with `losetup --detach /dev/loop7`"),
    ],
    ids=["NVMe over Fabrics", "a loop device"],
)
@pytest.mark.parametrize(
    ("node", "used"),
    [
        ("/dev/nvme0n1", "nvme0n1"),
        ("/dev/nvme0n1p3", "nvme0n1p3"),
        ("/dev/nvme0n12", None),
        ("/dev/nvme0n1p", None),
        ("/srv/images/nvme0n1", None),
    ],
)
def test_what_is_offered_or_stood_on_is_in_use(listing: str, line: str, said: str, node: str, used: str | None) -> None:
    server = RecordedServer()
    server.listings[listing] = line.format(node)
    claims = (f"{used} {said}",) if used else ()
    assert identify_drive(server, "/dev/nvme0n1", SOON).usage.claims == claims
    assert read_drive(server, "/dev/nvme0n1", SOON).usage.claims == claims


def test_what_lio_offers_is_in_use() -> None:
    server = RecordedServer()
    server.listings["exports"] = "/dev/sda target/core/iblock_0/d01\n/dev/sdb1 target/core/fileio_1/d02\n"
    sas, sata, nvme = (drive.usage.claims for drive in survey_host(server, SOON).drives)
    assert "sda is the backstore iblock_0/d01 of LIO, for SCSI initiators" in sas
    assert "sdb1 is the backstore fileio_1/d02 of LIO, for SCSI initiators" in sata
    assert nvme == ()
