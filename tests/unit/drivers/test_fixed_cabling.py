"""A rack without a switch: its cables by number, and what its servers can break."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import ExitStack
from pathlib import Path

import pytest

from rackloop.abilities import PhyControl, PortState
from rackloop.clock import Deadline
from rackloop.lab import Lab, Part, load_lab, phy_number
from rackloop.portmap import PortMap
from rackloop_drivers.boxes import FabricOpening
from rackloop_drivers.fabric.static import StaticFabric
from rackloop_drivers.host import SshAccess, SshHost
from rackloop_labs._fixed_cabling import numbered
from rackloop_labs._rackd_config import rackd_config
from rackloop_labs.fabric import open_fabric
from rackloop_labs.host_breakables import host_breakables
from tests.deadlines import CLOCK, soon


def test_every_end_of_a_cable_has_a_number() -> None:
    lab = numbered(load_lab("mock-direct"))
    assert lab.baseline_map() == PortMap.of([(1, 6), (2, 7), (3, 8), (5, 9), (4, 10)])
    assert lab.has_switch
    assert (lab.where_is("hdd1"), lab.where_is("shelf1-1")) == (9, 10)


def test_a_rack_with_a_switch_stays_as_it_is() -> None:
    lab = load_lab("mock")
    assert numbered(lab) is lab


@pytest.mark.parametrize("name", ["mock-direct", "direct-attached"])
def test_faults_know_a_port_by_the_same_number(name: str) -> None:
    lab = load_lab(name)
    places = [(server, port) for server, described in lab.servers.items() for port in described.ports]
    assert [phy_number(lab, Part.port(*place)) for place in places] == [
        numbered(lab).switch_port(*place) for place in places
    ]


@pytest.mark.parametrize("name", ["mock-direct", "direct-attached"])
def test_places_are_the_same_with_numbers(name: str) -> None:
    lab = load_lab(name)
    assert numbered(lab).places == lab.places


def test_rackd_is_told_of_a_switch_that_joins_the_cables() -> None:
    document = rackd_config(numbered(load_lab("mock-direct")), "/state", 1)
    assert document["ports"] == 11
    assert document["servers"]["node2"]["ports"] == {"p0": 4, "p1": 5}
    assert document["expanders"] == {"shelf1": {"port": 10}}
    assert sorted(document["map"]) == [[1, 6], [2, 7], [3, 8], [4, 10], [5, 9]]


def test_what_servers_can_break_follows_from_where_drives_are(tmp_path: Path) -> None:
    lab = load_lab("mock-direct")
    with ExitStack() as stack:
        access = SshAccess(name="node", host="127.0.0.1", port=1, known_hosts=tmp_path / "none")
        hosts = {name: stack.enter_context(SshHost(access, CLOCK)) for name in lab.servers}
        parts = host_breakables(lab, hosts)
        assert {name: sorted(part.kinds) for name, part in parts.items()} == {
            "phy:node1/p0": ["disabled"],
            "phy:node1/p2": ["disabled"],
            "phy:node2/p0": ["disabled"],
            "phy:node2/p1": ["disabled"],
            "slot:node1/p0": ["removed"],
            "slot:node1/p1": ["link_disabled", "removed", "slot_power_off"],
            "slot:node1/p2": ["removed"],
            "slot:node2/p1": ["removed"],
            "slot:node2/p0/0": ["device_off", "removed"],
            "slot:node2/p0/1": ["device_off", "removed"],
        }
        assert opened_phy(lab, hosts) is not None
        # An AHCI port, an NVMe drive, and a port whose path nobody gave: no PHY that could be found.
        assert opened_phy(load_lab("direct-attached"), dict.fromkeys(("node1", "node2"), hosts["node1"])) is None


def opened_phy(lab: Lab, hosts: dict[str, SshHost]) -> PhyControl | None:
    with ExitStack() as closing:
        return open_fabric(lab, hosts, FabricOpening(CLOCK, closing, soon())).phy


def test_cables_report_what_those_at_their_ends_say() -> None:
    asked: list[tuple[int, ...]] = []

    def signals(ports: Collection[int], _deadline: Deadline) -> dict[int, PortState]:
        asked.append(tuple(ports))
        return dict.fromkeys(ports, PortState.TRAIN)

    fabric = StaticFabric(PortMap.of([(1, 2)]), signals)
    assert fabric.port_states([1], Deadline.after(CLOCK, 1)) == {1: PortState.TRAIN}
    assert asked == [(1,)]
