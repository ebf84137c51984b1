"""A bench without the parts that are out of service."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rackloop.abilities import (
    Applied,
    BlockDevice,
    BoxIdentity,
    Drive,
    DriveIdentity,
    Fabric,
    Host,
    LiveMap,
    PortState,
    Staged,
    SystemEventLog,
    stager,
)
from rackloop.clock import Clock, Deadline
from rackloop.errors import BadInput, NotSupported, RackloopError
from rackloop.lab import Lab, Part, PartKind, acted_on
from rackloop.names import guess
from rackloop.portmap import Full, MapChange, Open, PortMap
from rackloop.safety.undo import Equipment
from rackloop_drivers.rackd import RecordedIo
from rackloop_labs.attach_log import AttachLog
from rackloop_labs.bench import Bench

if TYPE_CHECKING:
    from rackloop.record import ActLog
    from rackloop.safety import HealReport
    from rackloop.safety.leases import HeldLease
    from rackloop.safety.undo import Journal

_HEAL_S = 60.0


class BenchInService:
    """``whole`` as a :class:`~rackloop_labs.bench.Bench` whose description lacks the parts that were taken out.

    Who chooses among what the description names cannot choose them. Their power and their faults are not offered
    either, and the switch shows neither their ports nor the circuits there, which stay as they are.

    ``on_use`` is called before anything of the rack is handed out that can be asked or told something.
    """

    def __init__(
        self, whole: Bench, out: Collection[Part] = (), *, refusal: Callable[[Part], RackloopError] | None = None
    ) -> None:
        self._whole = whole
        self._refusal = refusal or _out_of_service
        self._out: frozenset[Part] = frozenset()
        self._lab = whole.lab
        self.on_use: Callable[[], None] = lambda: None
        self.take_out(out)

    @property
    def whole(self) -> Bench:
        """All there is of the bench, in service or not."""
        return self._used()

    def _used(self) -> Bench:
        self.on_use()
        return self._whole

    @property
    def out(self) -> frozenset[Part]:
        """What was taken out."""
        return self._out

    def take_out(self, parts: Collection[Part]) -> None:
        """Use these parts no more."""
        self._have_out(self._out | frozenset(parts))

    def put_back(self, parts: Collection[Part]) -> None:
        """Use these parts again."""
        self._have_out(self._out - frozenset(parts))

    def _have_out(self, out: frozenset[Part]) -> None:
        self._out = out
        self._lab = self._whole.lab.without(out, self._refusal)

    def require(self, server: str, port: str | None = None) -> None:
        """Return where a server, and its port with the drive that it has at the baseline, may be used.

        Raises what ``refusal`` makes of one that is out, NotSupported for one that is not in the lease, BadInput for
        one that the rack has not.
        """
        whole = self._whole.lab
        if server in whole.missing:
            raise NotSupported(whole.missing[server])
        joined = whole.joined(server)
        needed = [Part.server(server)]
        if port is not None:
            needed += [Part.port(server, port), Part.drive(joined.get(port, ""))]
        for part in needed:
            if part in self._out:
                raise self._refusal(part)
        if port is not None and port not in joined:
            raise BadInput(f"port {server}.{port} has no drive at the baseline; {guess(port, joined)}")

    @property
    def lab(self) -> Lab:
        """The description of what is in service."""
        return self._lab

    @property
    def clock(self) -> Clock:  # noqa: D102 - as of the whole bench
        return self._whole.clock

    @property
    def is_new(self) -> bool:  # noqa: D102
        return self._whole.is_new

    @property
    def equipment(self) -> Equipment:
        """The equipment, without what acts on a part that is out."""
        equipment = self._used().equipment
        if not self._out:
            return equipment
        return replace(
            equipment,
            fabric=FabricInService(equipment.fabric, self._hidden_ports())
            if self._lab.has_switch
            else equipment.fabric,
            power={
                name: port for name, port in equipment.power.items() if not self.leaves_alone(Part.of_resource(name))
            },
            breakable={
                name: part
                for name, part in equipment.breakable.items()
                if not self.leaves_alone(Part.of_resource(name))
            },
        )

    def _is_out(self, name: str) -> bool:
        return self.leaves_alone(Part.of_resource(name))

    def leaves_alone(self, part: Part) -> bool:
        """Whether nothing may be done to a part, because one that is out would notice."""
        if part.kind is PartKind.SWITCH_PORT:
            return part.number in self._hidden_ports()
        return not self._out.isdisjoint(acted_on(self._whole.lab, part))

    def _hidden_ports(self) -> frozenset[int]:
        """The switch ports that parts are wired to that are out; an expander's is its drives' together."""
        whole, left = self._whole.lab, self._lab
        drives = (drive.port for name, drive in whole.drives.items() if name not in left.drives)
        wired = (
            number
            for name, server in whole.servers.items()
            for port, number in server.ports.items()
            if name not in left.servers or port not in left.servers[name].ports
        )
        return frozenset(number for number in (*drives, *wired) if number is not None)

    def heal(
        self,
        journal: Journal,
        lease: HeldLease,
        *,
        thorough: bool = False,
        answering: Callable[[], Collection[str]] = frozenset,
        log: ActLog | None = None,
    ) -> HealReport:
        """Give what is in service its baseline back, in a minute at most; see :func:`rackloop.safety.heal`."""
        from rackloop.safety import heal

        return heal(
            self.lab,
            journal,
            self.equipment,
            self.clock,
            Deadline.after(self.clock, _HEAL_S),
            lease=lease,
            look_at=self,
            thorough=thorough,
            leave=self.leaves_alone,
            answering=answering,
            seek_orphans=not self.is_new,
            log=log,
        )

    def drive(self, server: str, port: str) -> Drive:  # noqa: D102
        return self._used().drive(server, port)

    def device(self, server: str, port: str) -> BlockDevice:  # noqa: D102
        return self._used().device(server, port)

    def survey(self) -> list[DriveIdentity]:  # noqa: D102
        return self._used().survey()

    def host(self, server: str) -> Host:  # noqa: D102
        return self._used().host(server)

    @property
    def event_logs(self) -> Mapping[str, SystemEventLog]:  # noqa: D102
        return {name: log for name, log in self._used().event_logs.items() if name in self._lab.servers}

    def attach_log(self) -> AbstractContextManager[AttachLog]:  # noqa: D102
        return self._used().attach_log()

    def announce(self, switch_ports: Collection[int]) -> None:  # noqa: D102
        self._used().announce(switch_ports)

    def recording_io(self, drive: str) -> AbstractContextManager[Callable[[], RecordedIo]]:  # noqa: D102
        return self._used().recording_io(drive)

    def lateness_s(self) -> float | None:  # noqa: D102
        # It is the harness that asks, on nobody's behalf.
        return self._whole.lateness_s()

    def close(self) -> None:  # noqa: D102
        self._whole.close()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """What this kind of bench has beside what every bench has, such as the simulated rack's own control."""
            return getattr(self._used(), name)


def _out_of_service(part: Part) -> RackloopError:
    return NotSupported(f"{part.said} is out of service")


def whole(bench: Bench) -> Bench:
    """All there is of a bench, in service or not."""
    return bench.whole if isinstance(bench, BenchInService) else bench


def is_about_what_is_out(bench: Bench, subject: str) -> bool:
    """Whether ``subject`` of a change of the rack's health is about a part that is out of service.

    A drive by its name, or a server with the names of its ports, as a HealthChange has them.
    """
    if not isinstance(bench, BenchInService) or not bench.out:
        return False
    whole, out = bench.whole.lab, bench.out
    name, *ports = subject.split()
    if name not in whole.servers:
        return Part.drive(name) in out
    joined = whole.joined(name)
    parts = [
        {Part.port(name, port), Part.drive(joined.get(port, ""))} for port in ports if port in whole.servers[name].ports
    ]
    return Part.server(name) in out or (bool(parts) and all(part & out for part in parts))


class FabricInService:
    """A Fabric without the ports ``hidden``: nobody joins them, and what they are joined to is nobody's concern."""

    def __init__(self, fabric: Fabric, hidden: frozenset[int]) -> None:
        self._fabric = fabric
        self._hidden = hidden

    def identify(self, deadline: Deadline) -> BoxIdentity:  # noqa: D102 - as of the whole switch
        return self._fabric.identify(deadline)

    def port_count(self, deadline: Deadline) -> int:  # noqa: D102
        return self._fabric.port_count(deadline)

    def live_map(self, deadline: Deadline) -> LiveMap:
        """The circuits between ports that are in service."""
        live = self._fabric.live_map(deadline)
        return LiveMap(live.generation, live.pairs.without(self._hidden))

    def apply(self, change: MapChange, deadline: Deadline, *, if_generation: int | None = None) -> Applied:
        """Make ``change``; a full map leaves the circuits of hidden ports as they are, where it does not need an end.

        Raises BadInput where it names a hidden port, and what the switch raises.
        """
        wanted, generation = self._of_whole(change, deadline, if_generation)
        return self._fabric.apply(wanted, deadline, if_generation=generation)

    def stage(self, change: MapChange, deadline: Deadline, *, if_generation: int | None = None) -> Staged:
        """Stage ``change`` as :meth:`apply` would make it."""
        wanted, generation = self._of_whole(change, deadline, if_generation)
        return stager(self._fabric).stage(wanted, deadline, if_generation=generation)

    def trigger(self, staged: Staged, deadline: Deadline) -> Applied:  # noqa: D102
        return stager(self._fabric).trigger(staged, deadline)

    def _of_whole(
        self, change: MapChange, deadline: Deadline, if_generation: int | None
    ) -> tuple[MapChange, int | None]:
        """``change`` as it is to be made on the whole switch, and the generation that it is meant for."""
        if named := self._hidden.intersection(change.ports if isinstance(change, Open) else change.pairs.ports()):
            ports = ", ".join(map(str, sorted(named)))
            raise BadInput(f"ports {ports} belong to what is out of service: `rackloop lab status` says what and why")
        if not isinstance(change, Full):
            return change, if_generation
        live = self._fabric.live_map(deadline)
        live.require(if_generation)
        kept = (pair for pair in live.pairs if self._hidden.intersection(pair) and not change.pairs.ports() & set(pair))
        return Full(PortMap.of((*kept, *change.pairs))), live.generation

    def port_states(self, ports: Collection[int], deadline: Deadline) -> dict[int, PortState]:  # noqa: D102
        return self._fabric.port_states(ports, deadline)

    def take_lock(self, token: int, deadline: Deadline) -> None:  # noqa: D102
        self._fabric.take_lock(token, deadline)

    def release_lock(self, token: int, deadline: Deadline) -> None:  # noqa: D102
        self._fabric.release_lock(token, deadline)

    def save_boot_map(self, deadline: Deadline) -> None:  # noqa: D102
        self._fabric.save_boot_map(deadline)

    def boot_map(self, deadline: Deadline) -> PortMap:
        """The power-on map between ports that are in service."""
        return self._fabric.boot_map(deadline).without(self._hidden)

    def close(self) -> None:  # noqa: D102
        self._fabric.close()
