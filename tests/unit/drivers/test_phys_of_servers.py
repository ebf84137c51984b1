"""A server that does not answer keeps the PHYs of no other from being enabled."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from rackloop.abilities import Completed
from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import DeadlineExceeded, LabError, NotConnected
from rackloop_drivers.phy import HostPhy, HostPhys
from tests.unit.harness.recorded_server import RecordedServer

PATH = "pci-0000:00:07.0"
LISTED = "phy-6:0 0 /sys/devices/pci0000:00/0000:00:07.0/host6/phy-6:0/sas_phy/phy-6:0 , 3.0 Gbit\n"


class SasServer(RecordedServer):
    """A server with a PHY: ``told`` has what it was told to do. One that ``hangs`` takes all the time it is given."""

    hangs = False
    refuses = False

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.told: list[str] = []

    def run(self, argv: Sequence[str], deadline: Deadline, *, stdin: str = "") -> Completed:
        if self.hangs:
            deadline.clock.sleep_until_ns(deadline.at_ns)
        if deadline.is_over():
            raise DeadlineExceeded(f"{self.name}: nothing answered in time")
        if self.refuses:
            raise NotConnected(f"{self.name}: connection refused")
        if argv[6] == "list":
            return Completed(tuple(argv), 0, LISTED, "")
        if argv[6] != "behind":
            self.told.append(argv[6])
        return Completed(tuple(argv), 0, "", "")


@pytest.fixture
def servers() -> list[SasServer]:
    return [SasServer("srv1"), SasServer("srv2"), SasServer("srv3")]


@pytest.fixture
def phys(servers: list[SasServer]) -> HostPhys:
    return HostPhys({number: HostPhy(server, PATH) for number, server in enumerate(servers, start=1)})


def in_a_minute() -> Deadline:
    return Deadline.after(VirtualClock(), 60)


def test_the_phys_of_the_others_are_enabled(servers: list[SasServer], phys: HostPhys) -> None:
    servers[0].refuses = True
    with pytest.raises(NotConnected, match="srv1: connection refused"):
        phys.restore([1, 2, 3], in_a_minute())
    assert [server.told for server in servers] == [[], ["restore"], ["restore"]]


def test_a_server_that_hangs_takes_its_share_of_the_time(servers: list[SasServer], phys: HostPhys) -> None:
    servers[0].hangs = servers[1].hangs = True
    with pytest.raises(LabError, match="srv1: nothing answered in time; srv2: nothing answered in time"):
        phys.restore([1, 2, 3], in_a_minute())
    assert [server.told for server in servers] == [[], [], ["restore"]]


def test_nothing_is_dropped_where_one_of_the_servers_does_not_answer(servers: list[SasServer], phys: HostPhys) -> None:
    servers[2].refuses = True
    with pytest.raises(NotConnected):
        phys.drop([1, 2, 3], 1.0, in_a_minute(), request_id=1)
    assert [server.told for server in servers] == [[], [], []]
