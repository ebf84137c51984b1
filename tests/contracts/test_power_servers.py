"""Cutting the power of a mock server, at its controller or at its outlet, ends its SSH and its drives' links."""

from __future__ import annotations

import pytest

from rackloop.abilities import PortState
from rackloop.clock import Deadline
from rackloop.errors import DeadlineExceeded, LabError
from rackloop_labs.labd_control import HostState
from rackloop_labs.mock import MockBench
from tests.deadlines import CLOCK, soon
from tests.mock_rack import MockRack

BOOT_ID = ("cat", "/proc/sys/kernel/random/boot_id")
CUTS = [
    ("srv1", "server:srv1"),
    ("srv3", "server:srv3"),
    ("srv1", "outlet:pdu1/1"),
    ("srv2", "outlet:pdu2/1"),
    ("srv4", "outlet:pdu3/1"),
]
OUTLETS = {"srv1": "pdu1/1", "srv3": "pdu2/2"}


@pytest.mark.parametrize(("server", "target"), CUTS, ids=[target for _, target in CUTS])
def test_a_cut_ends_ssh_and_links_until_power_returns(
    server: str, target: str, rack: MockRack, bench: MockBench
) -> None:
    host, port = bench.host(server), bench.equipment.power[target]
    links = [number for number in rack.lab.servers[server].ports.values() if number is not None]
    before = host.run(BOOT_ID, soon()).stdout
    port.turn_off(soon())
    assert set(bench.equipment.fabric.port_states(links, soon()).values()) == {PortState.DOWN}
    rack.becomes(server, HostState.OFF)
    with pytest.raises(LabError, match=server):
        host.run(("true",), soon())
    port.turn_on(soon())
    host.reconnect(soon())
    assert host.run(BOOT_ID, soon()).stdout != before


@pytest.mark.parametrize("server", ["srv2", "srv4"])
def test_a_server_that_powers_itself_off_is_noted_and_turned_on_by_its_controller(
    server: str, rack: MockRack, bench: MockBench
) -> None:
    host, port, log = bench.host(server), bench.equipment.power[f"server:{server}"], bench.power.event_logs[server]
    host.reconnect(soon())
    noted = len(log.events(soon()))
    assert rack.ssh(server, "poweroff").stdout == b""
    rack.becomes(server, HostState.OFF)
    assert not port.is_on(soon())
    port.turn_on(soon())
    host.reconnect(soon())
    fresh = log.events(soon())[noted:]
    assert len(fresh) == 2
    assert "off" in fresh[0].text
    assert all(event.at is not None for event in fresh)


@pytest.mark.parametrize("server", ["srv1", "srv3"])
def test_a_controller_that_is_out_of_reach_stays_silent_whatever_becomes_of_its_feed(
    server: str, rack: MockRack, bench: MockBench
) -> None:
    outlet = bench.equipment.power[f"outlet:{OUTLETS[server]}"]
    port, cable = bench.equipment.power[f"server:{server}"], bench.equipment.breakable[f"bmc:{server}"]
    assert port.is_on(soon())
    outlet.turn_off(soon())
    cable.break_as("pulled", {"kind": "unreachable"}, soon())
    with pytest.raises(DeadlineExceeded):
        port.is_on(Deadline.after(CLOCK, 0.3))
    outlet.turn_on(soon())
    with pytest.raises(DeadlineExceeded):
        port.is_on(Deadline.after(CLOCK, 0.3))
    cable.mend("pulled", soon())
    assert port.is_on(soon())
    rack.becomes(server, HostState.UP)
