"""The power of a mock rack: cut at a controller, at an outlet or in the simulation, it is one power, and is noted."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from rackloop.contracts import power_port, system_event_log
from rackloop.contracts.system_event_log import EventLogArm
from rackloop.errors import LabError
from rackloop.lab import Lab, load_lab
from rackloop_drivers.rackd import RackdLink
from rackloop_labs.power_peers import PowerPeers, power_peers
from rackloop_labs.power_ports import RackPower
from tests.deadlines import CLOCK, soon
from tests.loop_thread import LoopThread, loop_thread
from tests.rack_session import Rack, rack_starter

DESCRIPTION = """
name: powered
kind: mock
fabric: {driver: flexfabric, ports: 160}
servers:
  srv1: {ports: {p0: 1}, bmc: redfish, outlet: apc1/2}
  srv2: {ports: {p0: 5}, bmc: ipmi, outlet: cyber1/1}
  srv3: {ports: {p0: 9}, outlet: redfish1/3}
  srv4: {ports: {p0: 13}, bmc: ipmi}
pdus:
  apc1: {driver: apc, outlets: 4}
  cyber1: {driver: cyberpower, outlets: 4}
  redfish1: {driver: redfish, outlets: 4, unit: 2}
drives:
  d01: {profile: sata-ssd, serial: RL000001, wwn: 5000c500a0000001, size: 64 MiB, port: 101, scratch: true}
"""
SERVERS = {
    name: {"stack": "comreset", "ports": {"p0": 4 * number + 1}}
    for number, name in enumerate(("srv1", "srv2", "srv3", "srv4"))
}
FED_BY = {"server:srv1": "outlet:apc1/2", "server:srv2": "outlet:cyber1/1", "server:srv3": "outlet:redfish1/3"}


class Powered:
    """A rackd with the boxes of the description around it, and the drivers for them."""

    def __init__(self, rack: Rack, lab: Lab, opened: PowerPeers) -> None:
        self.rack = rack
        self.opened = opened
        endpoints = {"servers": {name: {"bmc": opened.bmc.get(name)} for name in lab.servers}, "pdu": opened.pdu}
        self.power = RackPower(lab, CLOCK, endpoints)

    def has_power(self, server: str) -> bool:
        """What rackd says."""
        return bool(self.rack.ask("power", target=server)["on"])


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    path = tmp_path / "powered.yaml"
    path.write_text(DESCRIPTION)
    return load_lab(str(path))


@pytest.fixture
def state(tmp_path: Path) -> Path:
    directory = tmp_path / "state"
    directory.mkdir()
    return directory


@pytest.fixture
def loop() -> Iterator[LoopThread]:
    with loop_thread() as loop:
        yield loop


@pytest.fixture
def powered(tmp_path: Path, lab: Lab, state: Path, loop: LoopThread) -> Iterator[Powered]:
    rackd = tmp_path / "rackd"
    rackd.mkdir()
    with rack_starter(rackd) as start:
        rack = start(servers=SERVERS)
        link = loop.run(RackdLink.connect(rack.process.control, follows={"power"}))
        with loop.entered(power_peers(lab, link, state, CLOCK)) as opened:
            powered = Powered(rack, lab, opened)
            yield powered
            powered.power.close()
        loop.call(link.close)


def test_what_has_power_and_who_notes_it(powered: Powered) -> None:
    assert set(powered.power.ports) == {"server:srv1", "server:srv2", "server:srv3", "server:srv4", *FED_BY.values()}
    assert set(powered.power.event_logs) == {"srv1", "srv2", "srv4"}
    assert all(port.is_on(soon()) for port in powered.power.ports.values())


@pytest.mark.parametrize("target", ["server:srv1", "server:srv2", "server:srv3", "server:srv4", *FED_BY.values()])
def test_each_port_keeps_the_contract(target: str, powered: Powered) -> None:
    for clause in power_port.CONTRACT:
        clause(lambda: powered.power.ports[target])


@pytest.mark.parametrize("server", ["srv1", "srv2", "srv4"])
def test_each_log_keeps_the_contract(server: str, powered: Powered) -> None:
    def cycle() -> None:
        for on in (False, True):
            powered.rack.ask("power", target=f"server:{server}", on=on)

    for clause in system_event_log.CONTRACT:
        clause(EventLogArm(make=lambda: powered.power.event_logs[server], provoke=cycle))


@pytest.mark.parametrize("target", ["server:srv1", "outlet:apc1/2"])
def test_cutting_power_takes_the_drives_links(target: str, powered: Powered) -> None:
    rack = powered.rack
    rack.map((1, 101))
    powered.power.ports[target].turn_off(soon())
    assert rack.ask("states", ports=[1, 101])["states"] == {"1": "DOWN", "101": "DOWN"}
    assert rack.wait_for("power", target="server:srv1")["on"] is False
    powered.power.ports[target].turn_on(soon())
    assert rack.wait_for("power", target="server:srv1")["on"] is True
    assert rack.wait_for("online", switch_port=1)["drive"] == "d01"


@pytest.mark.parametrize("server", sorted(FED_BY))
@pytest.mark.parametrize("was_on", [True, False])
def test_without_its_outlet_a_server_is_off_and_then_as_it_was(server: str, was_on: bool, powered: Powered) -> None:
    outlet, switched = powered.power.ports[FED_BY[server]], powered.power.ports[server]
    powered.rack.ask("power", target=server, on=was_on)
    outlet.turn_off(soon())
    assert not powered.has_power(server)
    if switched is not outlet:
        with pytest.raises(LabError):
            switched.is_on(soon(0.3))
    outlet.turn_on(soon())
    assert powered.has_power(server) is was_on
    assert outlet.is_on(soon())


def test_the_log_knows_a_cut_from_a_switch(powered: Powered) -> None:
    outlet, server = powered.power.ports["outlet:cyber1/1"], powered.power.ports["server:srv2"]
    log = powered.power.event_logs["srv2"]
    for port in (server, outlet):
        port.turn_off(soon())
        port.turn_on(soon())
    assert [event.text for event in log.events(soon())] == [
        "Power off/down, Asserted",
        "S0/G0: working, Asserted",
        "AC lost, Asserted",
        "S0/G0: working, Asserted",
    ]
    numbered = [event.number for event in log.events(soon())]
    assert numbered == [1, 2, 3, 4]


def test_passwords_are_new_and_for_the_owner_alone(powered: Powered, state: Path) -> None:
    boxes = [*powered.opened.bmc.values(), *powered.opened.pdu.values()]
    files = [Path(box["password_file"]) for box in boxes]
    assert len({file.read_text() for file in files}) == len(files) == 6
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert {file.parent.parent for file in files} == {state}
    assert stat.S_IMODE(files[0].parent.stat().st_mode) == 0o700
    assert stat.S_IMODE((files[0].parent / "bmc-server.pem").stat().st_mode) == 0o600


def test_nothing_is_left_and_what_a_killed_lab_left_is_no_obstacle(
    tmp_path: Path, lab: Lab, state: Path, loop: LoopThread
) -> None:
    (state / "power").mkdir()
    (state / "power" / "bmc-srv1.password").write_text("old")
    rackd = tmp_path / "rackd"
    rackd.mkdir()
    with rack_starter(rackd) as start:
        link = loop.run(RackdLink.connect(start(servers=SERVERS).process.control, follows={"power"}))
        with loop.entered(power_peers(lab, link, state, CLOCK)) as opened:
            assert Path(opened.bmc["srv1"]["password_file"]).read_text() != "old"
        loop.call(link.close)
    assert list(state.iterdir()) == []
