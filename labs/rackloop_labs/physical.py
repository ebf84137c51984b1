"""The physical lab: the rack itself, reached by its description."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from rackloop.abilities import Console, DriveIdentity, SystemEventLog
from rackloop.clock import Clock, Deadline
from rackloop.errors import NotSupported
from rackloop.lab import Lab, LabState, Stack
from rackloop.safety.undo import Equipment
from rackloop_drivers.block import HostPath
from rackloop_drivers.boxes import FabricOpening
from rackloop_drivers.drive import HostDrive
from rackloop_drivers.host import NOBODY, SshHost
from rackloop_drivers.host_tools import tell_of_switch
from rackloop_drivers.rackd import RecordedIo
from rackloop_labs.bench import close_bench, named_host, release_lock
from rackloop_labs.consoles import RackConsoles
from rackloop_labs.discovery import inventories
from rackloop_labs.fabric import open_fabric
from rackloop_labs.host_breakables import crashes, host_breakables, host_registers
from rackloop_labs.media_errors import RackMediaErrors
from rackloop_labs.port_paths import port_path
from rackloop_labs.power_ports import RackPower
from rackloop_labs.ssh_access import ssh_accesses
from rackloop_labs.uevent_log import SUBSYSTEMS, UeventLog

if TYPE_CHECKING:
    from rackloop.safety.leases import HeldLease
    from rackloop_drivers.workload import DeviceEvent, DeviceEvents
    from rackloop_labs.rackd_drives import RackdDrives


class PhysicalBench:
    """The :class:`~rackloop_labs.bench.Bench` of a physical rack: its switch, its servers by SSH, its power.

    Every act on it is refused by the journalled abilities without a lease. ``drives`` are those that can be broken by
    themselves, of a virtual rack; ``lease`` is what the guard is asked under where a fault overwrites a drive.
    """

    def __init__(
        self,
        lab: Lab,
        clock: Clock,
        state: LabState,
        token: int | None,
        on_exchange: Callable[[Any], None] | None,
        working_for: str = NOBODY,
        drives: RackdDrives | None = None,
        lease: HeldLease | None = None,
    ) -> None:
        self.lab = lab
        self.clock = clock
        self.is_new = False
        self._token = token
        self._surveyed: list[DriveIdentity] | None = None
        # First what may be refused: nothing is open yet that would be left so.
        self.power = RackPower(lab, clock)
        self._hosts = {name: SshHost(access, clock, working_for) for name, access in ssh_accesses(lab).items()}
        self._consoles = RackConsoles(lab, clock, state, self.power.controllers)
        self._closing = ExitStack()
        if drives is not None:
            self._closing.callback(drives.close)
        deadline = Deadline.after(clock, lab.time_s("act"))
        opening = FabricOpening(clock, self._closing, deadline, token, on_exchange)
        fabric, phy = open_fabric(lab, self._hosts, opening)
        live = (lambda within: fabric.live_map(within).pairs) if lab.has_switch else None
        breakable = host_breakables(lab, self._hosts, live)
        media = RackMediaErrors(lab, self._hosts, clock, lease, live, self._once_surveyed)
        self.equipment = Equipment(
            fabric,
            phy,
            power=self.power.ports if drives is None else {**self.power.ports, **drives.power},
            switch_power=self.power.switch,
            breakable={
                **breakable,
                **crashes(lab, self._hosts, self.power.ports, self.power.interrupts, breakable, lease),
                **(media.breakable if drives is None else drives.breakable),
            },
            registers=() if drives is None else drives.registers,
            server_registers=host_registers(lab, self._hosts, breakable, media.on_server),
        )

    def drive(self, server: str, port: str) -> HostDrive:
        """The drive that the server sees at the port now, asked through the server's tools.

        Raises NotSupported where the description gives the port no path, and does not say which drive is there.
        """
        return HostDrive(self.host(server), self._path(server, port))

    def device(self, server: str, port: str) -> HostPath:
        """The node of the drive at the port, on the server; raises as :meth:`drive` does."""
        within_s = self.lab.time_s("tools")
        return HostPath(self.host(server), self._path(server, port), self.clock, within_s=within_s)

    def survey(self, spared: Collection[str] = ()) -> list[DriveIdentity]:
        """Every drive that a server sees; those that the map joins to no server are not seen.

        Raises NotConnected where a server cannot be asked that is none of ``spared``.
        """
        seen = inventories(self, Deadline.after(self.clock, self.lab.time_s("tools")), spared)
        self._surveyed = [drive.identity for inventory in seen.values() for drive in inventory.drives]
        return list(self._surveyed)

    def _once_surveyed(self) -> list[DriveIdentity]:
        """Every drive that a server saw at the last survey: a fault may have silenced one since."""
        return self.survey() if self._surveyed is None else self._surveyed

    def host(self, server: str) -> SshHost:
        """The server by SSH, connected when first used. Raises BadInput for an unknown name."""
        return named_host(self._hosts, server)

    def _path(self, server: str, port: str) -> str:
        if (path := port_path(self.lab, server, port)) is None:
            raise NotSupported(f"{server}.{port}: add paths: to {server}, so that what is at a port can be told")
        return path

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

    def attach_log(self, servers: Collection[str] | None = None) -> UeventLog:
        """The log of drives that come and go, by the kernels of its servers, or of those named."""
        return UeventLog(self.lab, self._hosts if servers is None else servers, self._follow)

    def _follow(self, server: str, take: Callable[[DeviceEvent], None], ended: Callable[[str], None]) -> DeviceEvents:
        from rackloop_drivers.workload import RackProbe

        probe = RackProbe(self.host(server), self.clock)
        # The probe is brought to a server on the first use.
        within = Deadline.after(self.clock, self.lab.time_s("tools"))
        return probe.device_events(take, ended, within, subsystems=SUBSYSTEMS)

    def announce(self, switch_ports: Collection[int]) -> None:
        """Tell the servers that take a drive by COMRESET on notice; the others notice by themselves.

        Raises NotSupported where the rack has no switch, or the description gives such a port no path.
        """
        if not self.lab.has_switch:
            raise NotSupported(f"lab {self.lab.name} has no switch, so that no drive of its servers can be switched")
        told: dict[str, list[str]] = {}
        for name, server in self.lab.servers.items():
            for port, number in server.ports.items():
                if number in switch_ports and server.stack is Stack.COMRESET:
                    told.setdefault(name, []).append(self._path(name, port))
        act_s, online_s = self.lab.time_s("act"), self.lab.time_s("online")
        for name, paths in told.items():
            within = Deadline.after(self.clock, act_s)
            tell_of_switch(self.host(name), paths, within, looks_s=act_s + online_s)

    def recording_io(self, drive: str) -> AbstractContextManager[Callable[[], RecordedIo]]:
        """Not supported: a real drive keeps no record of its requests."""
        raise NotSupported(f"{drive} is a real drive, and keeps no record of its requests")

    def lateness_s(self) -> None:
        """Unknown: equipment keeps its own time."""

    def close(self) -> None:
        """End what still runs on servers, let go of the switch's lock and close every connection."""
        fabric = self.equipment.fabric
        close_bench(
            self._hosts.values(),
            self._consoles.close,
            self.power.close,
            partial(release_lock, fabric, self._token, self.clock),
            fabric.close,
            self._closing.close,
        )
