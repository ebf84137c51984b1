"""Drives of servers keep the contract of sanitizers through the servers' tools, and what is cut short is found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rackloop.abilities import WritableDrive
from rackloop.contracts import sanitizer
from rackloop.lab import Lab
from rackloop.safety import Guard
from rackloop_drivers.block import HostPath
from rackloop_drivers.drive import HostDrive
from rackloop_labs import Bench, open_lab
from tests.deadlines import CLOCK, soon
from tests.described_rack import PLACES
from tests.leased import EverythingLeased
from tests.mock_rack import MockRack
from tests.nbd_wire import NbdWire

FOREIGN = {"ssd1": "fast1", "fast1": "ssd1", "sas1": "ssd1", "hdd1": "shelf1-1"}


@pytest.fixture
def bench(direct_rack: MockRack) -> Iterator[Bench]:
    with open_lab(direct_rack.lab, CLOCK, direct_rack.state, None) as bench:
        yield bench


def drive_of(lab: Lab, bench: Bench, name: str) -> tuple[HostDrive, HostPath]:
    """A drive as the tools of its server see it."""
    place = PLACES.get(name)
    if place is None:
        server, device = "node2", f"/dev/disk/by-id/wwn-0x{lab.drives[name].wwn}"
    else:
        server, device = place[0], lab.servers[place[0]].paths[place[1]]
    host = bench.host(server)
    return HostDrive(host, device), HostPath(host, device, CLOCK)


def permitted(lab: Lab, bench: Bench, name: str) -> WritableDrive:
    """The guard's permission to overwrite a drive from its server."""
    drive, device = drive_of(lab, bench, name)
    return Guard(lab, EverythingLeased()).writable(name, drive, device, soon())


@pytest.mark.parametrize("clause", sanitizer.CONTRACT, ids=lambda clause: clause.__name__)
@pytest.mark.parametrize("name", PLACES)
def test_drives_of_servers_keep_the_contract(
    clause: Callable[[sanitizer.SanitizerArm], None], direct_rack: MockRack, bench: Bench, name: str
) -> None:
    lab, (server, port) = direct_rack.lab, PLACES[name]
    nbd = Path(direct_rack.endpoints["nbd"])

    def write(data: bytes) -> None:
        with NbdWire(nbd, f"{server}.{port}") as wire:
            assert wire.write(0, data) == 0

    def read(length: int) -> bytes:
        with NbdWire(nbd, f"{server}.{port}") as wire:
            return wire.read(0, length)[1]

    arm = sanitizer.SanitizerArm(
        make=lambda: drive_of(lab, bench, name)[0],
        permission=lambda: permitted(lab, bench, name),
        foreign=lambda: permitted(lab, bench, FOREIGN[name]),
        write=write,
        read=read,
    )
    clause(arm)
