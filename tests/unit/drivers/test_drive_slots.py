"""The slot that a drive is in, by what udev and sysfs say of it."""

from __future__ import annotations

from rackloop.clock import Deadline, VirtualClock
from rackloop_drivers.host_tools import survey_host
from tests.unit.harness.recorded_server import RecordedServer

SOON = Deadline.after(VirtualClock(), 60)


def test_the_enclosures_name_of_a_slot_goes_before_the_rest() -> None:
    server = RecordedServer()
    server.listings["enclosures"] = "/sys/block/sda/device/enclosure_device:Slot 03\n"
    sas, *_ = survey_host(server, SOON).drives
    assert sas.identity.identifiers["slot"] == "3"


def test_a_phy_of_an_expander_is_a_slot_where_nothing_else_says() -> None:
    server = RecordedServer()
    server.listings |= {"values": "", "by-path": "pci-0000:10:00.0-sas-exp0x5000c500a00000ff-phy5-lun-0 ../../sda\n"}
    sas, *_ = survey_host(server, SOON).drives
    assert sas.identity.identifiers["slot"] == "5"


def test_the_slot_of_a_drive_behind_vmd_is_that_of_its_own_address() -> None:
    server = RecordedServer()
    server.listings |= {
        "by-path": "pci-0000:00:0e.0-pci-10000:01:00.0-nvme-1 ../../nvme0n1\n",
        "values": "".join(
            f"/sys/bus/pci/slots/{slot}/address:{address}\n"
            for slot, address in (("1", "0000:00:0e"), ("2", "0000:01:00"), ("3", "10000:01:00"))
        ),
    }
    *_, nvme = survey_host(server, SOON).drives
    assert nvme.identity.identifiers["slot"] == "3"
