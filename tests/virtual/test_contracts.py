"""The contracts of servers, drives, blocks, switch and power on a virtual rack, opened as a physical rack is.

The clauses are those of ``tests/contracts``: what answers here are Linux kernels.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rackloop.abilities import Fabric, Host
from rackloop.contracts import PATIENCE_S, block_device, drive, executor, fabric, host, phy_control, power_port
from rackloop.errors import NotSupported
from rackloop.lab import Lab, LabState, load_lab
from rackloop.portmap import Full
from rackloop_drivers.fabric.flexfabric import FlexFabric, FlexFabricPhy, open_flexfabric
from rackloop_drivers.host import SshHost
from rackloop_labs import Bench, open_lab, ssh_accesses
from rackloop_labs.power_ports import RackPower
from rackloop_labs.virtual import VirtualLab
from tests.deadlines import CLOCK, soon
from tests.e2e.command_line import CommandLine
from tests.tcp_relay import TcpRelay, relaying
from tests.virtual.guests import baseline_comes

SERVER = "srv1"
# A guest in software, on a busy machine: a login alone takes it seconds.
WITHIN_S = 60.0
CLAUSES_WAIT_S = 180.0


@pytest.fixture(scope="module", autouse=True)
def _patience() -> Iterator[None]:
    token = PATIENCE_S.set(CLAUSES_WAIT_S)
    yield
    PATIENCE_S.reset(token)


@pytest.fixture(scope="module")
def state(up: CommandLine) -> LabState:
    baseline_comes(up)
    return LabState(up.state_home / "labs" / "virtual")


@pytest.fixture(scope="module")
def lab(state: LabState) -> Lab:
    """The rack as it is opened: of kind virtual, and described as equipment is."""
    return VirtualLab(load_lab("virtual"), CLOCK, state).described()


@pytest.fixture(scope="module")
def bench(lab: Lab, state: LabState) -> Iterator[Bench]:
    with open_lab(load_lab("virtual"), CLOCK, state, None, bring_up=False) as opened:
        yield opened


class GuestServer:
    """The virtual arm of a server: a guest, with a relay on the way to it."""

    def __init__(self, up: CommandLine, lab: Lab, relay: TcpRelay, folder: Path) -> None:
        self._up = up
        self._relay = relay
        access = ssh_accesses(lab)[SERVER]
        known = folder / "known_hosts"
        known.write_text(access.known_hosts.read_text().replace(f":{access.port} ", f":{relay.port} "))
        self._access = replace(access, port=relay.port, known_hosts=known)

    def host(self) -> Host:
        return SshHost(self._access, CLOCK)

    def break_connections(self) -> None:
        self._relay.break_connections()

    @contextmanager
    def stopped(self) -> Iterator[None]:
        with self._relay.refusing():
            yield

    @contextmanager
    def hung(self) -> Iterator[None]:
        guest = next(pid for pid, line in self._up.processes().items() if f"{SERVER}.console" in line)
        os.kill(guest, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(guest, signal.SIGCONT)


@pytest.fixture(scope="module")
def server(up: CommandLine, lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[host.Server]:
    access = ssh_accesses(lab)[SERVER]
    with relaying((access.host, access.port)) as relay:
        yield GuestServer(up, lab, relay, tmp_path_factory.mktemp("known"))


@pytest.mark.nightly  # Of what a kernel adds, the host's contract shows most.
@pytest.mark.parametrize("clause", executor.CONTRACT, ids=lambda clause: clause.__name__)
def test_executor(clause: Callable[[executor.ExecutorFactory], None], server: host.Server) -> None:
    clause(server.host)


# Two dozen commands at once take a guest in software longer than the clause waits, where others use the machine; a
# server that hangs is waited for as long as its answer may take.
_LONG_ONES = {host.serves_more_threads_than_sessions, host.is_not_held_by_a_server_that_hangs}
_HOST = [pytest.param(clause, marks=pytest.mark.nightly if clause in _LONG_ONES else ()) for clause in host.CONTRACT]


@pytest.mark.parametrize("clause", _HOST, ids=lambda clause: clause.__name__)
def test_host(clause: Callable[[host.Server], None], server: host.Server) -> None:
    clause(server)


@pytest.mark.parametrize("clause", drive.CONTRACT, ids=lambda clause: clause.__name__)
def test_drive(clause: Callable[[drive.DriveFactory], None], bench: Bench) -> None:
    clause(lambda: bench.drive(SERVER, "p0"))


@pytest.mark.parametrize("clause", block_device.CONTRACT, ids=lambda clause: clause.__name__)
def test_block_device(clause: Callable[[block_device.BlockDeviceFactory], None], bench: Bench) -> None:
    try:
        clause(lambda: bench.device(SERVER, "p0"))
    except NotSupported as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="module")
def url(up: CommandLine) -> Iterator[str]:
    """Where the switch answers, which does not wait for the guests; they have their drives back after the last test."""
    yield f"tcp://{up.endpoints('virtual')['switch']['tcp']}"
    baseline_comes(up)


def _nightly_but(contract: Sequence[Callable[[Any], None]], *daily: Callable[[Any], None]) -> list[Any]:
    """The clauses of a contract, all of them nightly but these, which leave the rack as it is and take seconds."""
    return [pytest.param(clause, marks=() if clause in daily else pytest.mark.nightly) for clause in contract]


# The others map the whole switch anew, and every guest lets go of its drives.
_FABRIC = _nightly_but(fabric.CONTRACT, fabric.identifies_itself, fabric.reads_the_live_map_without_changing_it)


@pytest.mark.parametrize("clause", _FABRIC, ids=lambda clause: clause.__name__)
def test_fabric(clause: Callable[[fabric.FabricFactory], None], url: str) -> None:
    with ExitStack() as stack:

        def make() -> Fabric:
            session = open_flexfabric(url, CLOCK, soon(WITHIN_S), answer_within_s=5)
            stack.callback(session.close)
            return FlexFabric(session)

        clause(make)


_PHYS = _nightly_but(
    phy_control.CONTRACT, phy_control.answers_for_no_ports, phy_control.refuses_a_deadline_that_is_over
)


@pytest.mark.parametrize("clause", _PHYS, ids=lambda clause: clause.__name__)
def test_phys(clause: Callable[[phy_control.PhyFactory], None], url: str) -> None:
    baseline = load_lab("virtual").baseline_map()

    @contextmanager
    def make() -> Iterator[phy_control.PhyArm]:
        session = open_flexfabric(url, CLOCK, soon(WITHIN_S), answer_within_s=5)
        try:
            FlexFabric(session).apply(Full(baseline), soon(WITHIN_S))
            yield phy_control.PhyArm(FlexFabricPhy(session), (1, 2))
        finally:
            session.close()

    clause(make)


def test_power(lab: Lab) -> None:
    """Of a server that is on and stays so; what switches it off boots it, and is in test_virtual_power.py."""
    with closing(RackPower(lab, CLOCK)) as power:
        power_port.refuses_a_deadline_that_is_over(lambda: power.ports[f"server:{SERVER}"])
