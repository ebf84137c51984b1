"""The mock lab: a rack of processes on this machine, no root needed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from rackloop.abilities import Console, DriveIdentity, Host, SystemEventLog
from rackloop.clock import Clock, Deadline
from rackloop.lab import Lab, LabState, Part, PartKind, Stack
from rackloop.safety.undo import Equipment
from rackloop_drivers.block import NbdExport
from rackloop_drivers.boxes import FabricOpening
from rackloop_drivers.drive import RackdDrive, survey
from rackloop_drivers.host import NOBODY, SshHost
from rackloop_drivers.power import RackdPowerPort
from rackloop_drivers.rackd import RackdControl, RecordedIo
from rackloop_labs._fixed_cabling import numbered
from rackloop_labs._lab_process import LabProcess
from rackloop_labs.bench import close_bench, named_host, release_lock
from rackloop_labs.consoles import RackConsoles
from rackloop_labs.described import require_described
from rackloop_labs.discovery import with_paths
from rackloop_labs.fabric import open_fabric
from rackloop_labs.host_breakables import host_breakables, host_registers
from rackloop_labs.labd_control import LabdControl
from rackloop_labs.mock_faults.breakables import mock_breakables
from rackloop_labs.mock_faults.registers import LabdRegister, RackdRegister
from rackloop_labs.power_ports import RackPower
from rackloop_labs.ssh_access import ssh_accesses
from rackloop_labs.truth_log import EVENTS, TruthLog

_CONNECT_S = 5.0
# Two million requests come in pages.
_RECORD_S = 60.0
_CONTROL = "control"


class MockLab(LabProcess):
    """Brings the mock rack of ``lab`` up and down. Its state is kept under the lab's name."""

    def open(
        self,
        token: int | None,
        on_exchange: Callable[[Any], None] | None = None,
        working_for: str = NOBODY,
        *,
        is_new: bool = False,
    ) -> MockBench:
        """The bench of the running rack, its switch locked with the fencing ``token`` if one is given.

        Raises BadInput where it was brought up from another description.
        ``working_for`` is what its servers know commands by; ``is_new`` says that none can have begun before.
        """
        require_described(self.lab, self.state)
        return MockBench(self.lab, self.clock, self.state, token, on_exchange, working_for, is_new=is_new)


class MockBench:
    """The :class:`~rackloop_labs.bench.Bench` of a mock rack that is up."""

    def __init__(
        self,
        lab: Lab,
        clock: Clock,
        state: LabState,
        token: int | None,
        on_exchange: Callable[[Any], None] | None,
        working_for: str = NOBODY,
        *,
        is_new: bool = False,
    ) -> None:
        self.lab = lab
        self.clock = clock
        self.is_new = is_new
        self.endpoints = endpoints = state.endpoints()
        self._token = token
        self._wired = numbered(lab)
        servers = self._wired.servers.values()
        self._on_notice = frozenset(
            p for server in servers if server.stack == Stack.COMRESET for p in server.ports.values()
        )
        self._hosts = {
            name: SshHost(access, clock, working_for) for name, access in ssh_accesses(lab, endpoints).items()
        }
        labd = LabdControl(state)
        deadline = Deadline.after(clock, _CONNECT_S)
        if lab.has_switch and token is not None:
            _free_control(labd, deadline)
        self._closing = ExitStack()
        opening = FabricOpening(clock, self._closing, deadline, token, on_exchange)
        fabric, phy = open_fabric(lab, self._hosts, opening, switch=endpoints["switch"], phy=endpoints["phy"])
        self.rackd = RackdControl(Path(endpoints["control"]), clock)
        self.power = RackPower(lab, clock, endpoints)
        self._consoles = RackConsoles(lab, clock, state, self.power.controllers, endpoints)
        powered = [*map(Part.server, lab.servers), *map(Part.drive, lab.drives)]
        powered += [Part(PartKind.SWITCH)] if lab.has_switch else []
        live = (lambda within: fabric.live_map(within).pairs) if lab.has_switch else None
        by_host = host_breakables(with_paths(lab), self._hosts, live)
        parts = mock_breakables(lab, self.rackd, labd)
        self.equipment = Equipment(
            fabric=fabric,
            phy=phy,
            # A server without a controller and an outlet is switched in the simulation itself.
            power={target: RackdPowerPort(self.rackd, target) for target in map(str, powered)} | self.power.ports,
            switch_power=self.power.switch or (str(Part(PartKind.SWITCH)) if lab.has_switch else None),
            breakable={**parts, **by_host},
            registers=(LabdRegister(labd, parts), RackdRegister(self.rackd, parts)),
            server_registers=host_registers(lab, self._hosts, by_host),
        )
        self._port_bytes = max(drive.size for drive in lab.drives.values())

    def drive(self, server: str, port: str) -> RackdDrive:
        """The drive that is mapped to the port now, asked of rackd."""
        self._wired.switch_port(server, port)
        return RackdDrive(self.rackd, server=server, port=port)

    def device(self, server: str, port: str) -> NbdExport:
        """The port's NBD export, as large as the rack's largest drive, whichever is mapped."""
        self._wired.switch_port(server, port)
        export = self.endpoints["servers"][server]["ports"][port]["export"]
        return NbdExport(Path(self.endpoints["nbd"]), export, self._port_bytes, knows_drives=True)

    def survey(self, spared: Collection[str] = ()) -> list[DriveIdentity]:  # noqa: ARG002 - it asks no server
        """The identity of every drive of the simulated rack."""
        slots = {name: drive.expander_slot for name, drive in self.lab.drives.items()}
        return survey(self.rackd, self.lab.drives, self._soon(), slots=slots)

    def host(self, server: str) -> Host:
        """The server by SSH. Raises BadInput for an unknown name."""
        return named_host(self._hosts, server)

    @property
    def event_logs(self) -> Mapping[str, SystemEventLog]:
        """The event logs of the servers' management controllers, by server; those without a controller have none."""
        return self.power.event_logs

    @property
    def consoles(self) -> Mapping[str, Console]:
        """The serial consoles of the servers that have one."""
        return self._consoles.by_server

    def secrets(self) -> tuple[str, ...]:
        """The passwords of servers and controllers."""
        return self._consoles.secrets()

    def attach_log(self, servers: Collection[str] | None = None) -> TruthLog:  # noqa: ARG002 - it tells of all
        """The truth of the simulated rack: when it acted, when PHYs trained, when drives came online."""
        return TruthLog(self.rackd.subscribe(EVENTS))

    def announce(self, switch_ports: Collection[int]) -> None:
        """Tell the servers that act on notice (COMRESET) that the drives behind these ports are about to change."""
        if told := self._on_notice.intersection(switch_ports):
            self.rackd.request("announce", self._soon(), ports=sorted(told))

    @contextmanager
    def recording_io(self, drive: str) -> Iterator[Callable[[], RecordedIo]]:
        """Have rackd record every request that reaches ``drive``; what this gives returns those so far."""
        self.rackd.record_io(drive, self._soon())
        try:
            yield lambda: self.rackd.recorded_io(drive, Deadline.after(self.clock, _RECORD_S))
        finally:
            self.rackd.record_io(drive, self._soon(), on=False)

    def lateness_s(self) -> float | None:
        """The most by which rackd was late with anything. Raises LabError where it does not answer."""
        found = self.rackd.request("stats", self._soon())["lateness"]["max"]
        return float(found) / 1e9

    def _soon(self) -> Deadline:
        return Deadline.after(self.clock, _CONNECT_S)

    def close(self) -> None:
        """End what still runs, let go of the switch's lock and close every connection; the rack stays up."""
        fabric = self.equipment.fabric
        close_bench(
            self._hosts.values(),
            self._consoles.close,
            self.power.close,
            partial(release_lock, fabric, self._token, self.clock),
            fabric.close,
            self._closing.close,
            self.rackd.close,
        )


def _free_control(labd: LabdControl, deadline: Deadline) -> None:
    """Mend the switch's control link: the next holder of the rack could not reach the switch to heal it."""
    for key in labd.standing(_CONTROL, deadline):
        labd.mend(_CONTROL, key, deadline)
