"""A bench of some parts of a rack: those that are leased, or those that are in service."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from rackloop.abilities import BlockDevice, Console, Drive, DriveIdentity, HiddenPorts, Host, PowerPort, SystemEventLog
from rackloop.clock import Clock, Deadline
from rackloop.errors import BadInput, LabError, NotSupported, RackloopError
from rackloop.lab import Lab, LabKind, Part, PartKind, acted_on, phy_number, reach_of
from rackloop.names import guess
from rackloop.safety.leases import fenced
from rackloop.safety.undo import EntryState, Equipment, JournalDamaged
from rackloop_drivers.rackd import RecordedIo
from rackloop_labs.attach_log import AttachLog
from rackloop_labs.bench import Bench

if TYPE_CHECKING:
    from rackloop.abilities import FaultRegister
    from rackloop.record import ActLog
    from rackloop.safety import HealReport
    from rackloop.safety.leases import HeldLease
    from rackloop.safety.undo import Entry, Journal

# Besides what servers take that were given power: a machine boots for minutes, a process does not.
_HEAL_S = 30.0
_MOCK_BOOTS_S = 30.0
# Entries of the journal that are looked at for what was started lately.
_NEWEST = 200
# Drives are in them.
_PLACES = frozenset({PartKind.PORT, PartKind.SLOT, PartKind.PHY})


class BenchView:
    """``bench`` as a :class:`~rackloop_labs.bench.Bench` with another description, ``lab``. All else is passed on.

    ``on_use`` is called before anything of the rack is handed out that can be asked or told something.
    """

    def __init__(self, bench: Bench, lab: Lab) -> None:
        self._whole = bench
        self._lab = lab
        self.on_use: Callable[[], None] = lambda: None

    def _used(self) -> Bench:
        self.on_use()
        return self._whole

    @property
    def lab(self) -> Lab:
        """The description of what is there."""
        return self._lab

    @property
    def rack(self) -> Lab:
        """The description of the whole rack, whatever of it is leased or in service."""
        return self._whole.rack if isinstance(self._whole, BenchView) else self._whole.lab

    @property
    def clock(self) -> Clock:  # noqa: D102 - as of the whole bench
        return self._whole.clock

    @property
    def is_new(self) -> bool:  # noqa: D102
        return self._whole.is_new

    @property
    def equipment(self) -> Equipment:  # noqa: D102
        return self._used().equipment

    def drive(self, server: str, port: str) -> Drive:  # noqa: D102
        return self._used().drive(server, port)

    def device(self, server: str, port: str) -> BlockDevice:  # noqa: D102
        return self._used().device(server, port)

    def survey(self, spared: Collection[str] = ()) -> list[DriveIdentity]:
        """Every drive of the whole rack: no two may be taken for each other, whatever is leased or out of service.

        A server that is not its own, which may have no power, or is ``spared`` need not answer.
        """
        return self._used().survey({*spared, *(self._whole.lab.servers.keys() - self._lab.servers.keys())})

    def host(self, server: str) -> Host:  # noqa: D102
        return self._used().host(server)

    @property
    def event_logs(self) -> Mapping[str, SystemEventLog]:  # noqa: D102
        return {name: log for name, log in self._used().event_logs.items() if name in self._lab.servers}

    @property
    def consoles(self) -> Mapping[str, Console]:
        """The consoles of its servers; to listen to them is no use of the rack."""
        return {name: console for name, console in self._whole.consoles.items() if name in self._lab.servers}

    def secrets(self) -> tuple[str, ...]:  # noqa: D102
        return self._whole.secrets()

    def attach_log(self, servers: Collection[str] | None = None) -> AbstractContextManager[AttachLog]:
        """The log of its own servers, or of those named."""
        return self._used().attach_log(tuple(self._lab.servers) if servers is None else servers)

    def announce(self, switch_ports: Collection[int]) -> None:  # noqa: D102
        self._used().announce(switch_ports)

    def recording_io(self, drive: str) -> AbstractContextManager[Callable[[], RecordedIo]]:  # noqa: D102
        return self._used().recording_io(drive)

    def lateness_s(self) -> float | None:  # noqa: D102
        # The harness itself asks, which is no use of the rack.
        return self._whole.lateness_s()

    def close(self) -> None:  # noqa: D102
        self._whole.close()


class LeasedBench(BenchView):
    """The bench of the parts that a lease has, over that of the whole rack.

    Everything outside the lease is refused with BadInput. Of a rack without a switch no links can be dropped: their
    numbers are those of the whole rack's cabling.
    """

    def __init__(self, bench: Bench, held: HeldLease) -> None:
        super().__init__(bench, bench.lab.restricted(held.parts))
        self._parts = held.parts
        whole = bench.equipment
        fabric, phy = fenced(whole.fabric, whole.phy, held) if bench.lab.has_switch else (whole.fabric, None)
        self._equipment = replace(
            _shown(whole, self._has),
            fabric=fabric,
            phy=phy,
            switch_power=None,
        )

    @property
    def is_new(self) -> bool:
        """Never: another holder may have left something on the servers."""
        return False

    @property
    def equipment(self) -> Equipment:
        """The equipment of the leased parts alone."""
        return self._equipment

    def drive(self, server: str, port: str) -> Drive:
        """The drive that a port of a leased server sees now."""
        return super().drive(self._leased(server), port)

    def device(self, server: str, port: str) -> BlockDevice:
        """The device by which I/O reaches it from the server."""
        return super().device(self._leased(server), port)

    def host(self, server: str) -> Host:
        """A leased server by SSH."""
        return super().host(self._leased(server))

    def announce(self, switch_ports: Collection[int]) -> None:
        """Tell leased servers that the drives behind these ports are about to change."""
        if not self._parts.switch_ports.issuperset(switch_ports):
            raise BadInput(f"ports {sorted(switch_ports)} are not all in the lease, which has {self._parts}")
        super().announce(switch_ports)

    def recording_io(self, drive: str) -> AbstractContextManager[Callable[[], RecordedIo]]:
        """Have every request that reaches a leased drive recorded."""
        if drive not in self._parts.drives:
            raise BadInput(f"drive {drive} is not in the lease, which has {self._parts}")
        return super().recording_io(drive)

    def _has(self, part: Part) -> bool:
        return self._parts.covers(part)

    def _leased(self, server: str) -> str:
        if server not in self._parts.servers:
            raise BadInput(f"server {server} is not in the lease, which has {self._parts}; lease it too")
        return server


class BenchInService(BenchView):
    """``whole`` without the parts that were taken out of service.

    A test that chooses among what the description names cannot choose them. Their power and their faults are not
    offered either, and the switch shows neither their ports nor the circuits there, which stay as they are.
    """

    def __init__(
        self, whole: Bench, out: Collection[Part] = (), *, refusal: Callable[[Part], RackloopError] | None = None
    ) -> None:
        super().__init__(whole, whole.lab)
        self._refusal = refusal or _out_of_service
        self._out: frozenset[Part] = frozenset()
        self.take_out(out)

    @property
    def whole(self) -> Bench:
        """The bench with all parts, in service or not."""
        return self._used()

    @property
    def out(self) -> frozenset[Part]:
        """The parts that were taken out."""
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
        one that the rack does not have.
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
    def equipment(self) -> Equipment:
        """The equipment, without what acts on a part that is out; power that one would miss is given, and not cut."""
        equipment = self._used().equipment
        if not self._out:
            return equipment
        shown = _shown(equipment, lambda part: not self.leaves_alone(part))
        kept = {
            name: _KeptOn(port, partial(self._require_unmissed, Part.of_resource(name)))
            for name, port in shown.power.items()
        }
        shown = replace(shown, power=kept)
        if not self._lab.has_switch:
            return shown
        hidden = self._hidden_ports()
        return replace(shown, fabric=HiddenPorts(equipment.fabric, hidden.__contains__, _hidden, strict=False))

    def _require_unmissed(self, part: Part) -> None:
        """Return where nothing that is out has its power or its link by a part. Raises what ``refusal`` makes of it."""
        reach = reach_of(self.rack, part)
        if missing := sorted(filter(reach.reaches, self._out)):
            raise self._refusal(missing[0])

    def leaves_alone(self, part: Part) -> bool:
        """Whether nothing may be done to a part, because one that is out would notice."""
        if part.kind is PartKind.SWITCH_PORT:
            return part.number in self._hidden_ports()
        # Of a server that is leased without its drives, the lease's own description cannot tell what is there.
        whole = self.rack
        noticing = acted_on(whole, part)
        if part.kind in _PLACES and part.server_name in whole.servers:
            # A hand may be in there.
            noticing |= reach_of(whole, part)
        if part.kind is PartKind.DRIVE and part.name in whole.drives and not whole.has_switch:
            # It is told and written by its server alone.
            drive = whole.drives[part.name]
            place = drive.attached if drive.expander is None else whole.expanders[drive.expander].attached
            noticing |= [Part.server(place[0]), Part.port(*place)] if place is not None else []
        return not self._out.isdisjoint(noticing)

    def _hidden_ports(self) -> frozenset[int]:
        """The switch ports that parts are wired to that are out; an expander's is out where all drives in it are.

        Without a switch, the numbers by which the PHYs are known of server ports that are left alone.
        """
        whole, left = self._whole.lab, self._lab
        if not whole.has_switch:
            return frozenset(phy_number(whole, part) for part in whole.numbered_ports if self.leaves_alone(part))
        plugged = (
            (whole.behind(name), thing.port)
            for things in (whole.drives, whole.expanders)
            for name, thing in things.items()
        )
        drives = (number for its, number in plugged if its and left.drives.keys().isdisjoint(its))
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
        answering: Callable[[], Collection[str]] | None = None,
        log: ActLog | None = None,
    ) -> HealReport:
        """Give what is in service its baseline back; see :func:`rackloop.safety.heal`.

        Servers that get power or a new start by it have time to boot, and those that got it so long before.
        """
        from rackloop.safety import heal

        boots_s = _MOCK_BOOTS_S if self.lab.kind is LabKind.MOCK else self.lab.time_s("boot")

        return heal(
            self.lab,
            journal,
            self.equipment,
            self.clock,
            Deadline.after(self.clock, boots_s + _HEAL_S),
            lease=lease,
            look_at=self,
            thorough=thorough,
            leave=self.leaves_alone,
            answering=answering,
            seek_orphans=not self.is_new,
            recent=self._undone_lately(journal, lease, boots_s),
            log=log,
        )

    def _undone_lately(self, journal: Journal, lease: HeldLease, within_s: float) -> list[Entry]:
        """The undone entries of what is leased that were made within this time; none of a journal that is not read."""
        try:
            newest = journal.since(journal.mark() - _NEWEST)
        except JournalDamaged as damage:
            newest = list(damage.readable)
        except LabError:
            # Heal asks it as well, and says so.
            return []
        since, lab, parts = self.clock.wall() - timedelta(seconds=within_s), self._whole.lab.name, lease.parts
        lately = (one for one in newest if one.lab == lab and one.state is EntryState.UNDONE and one.wall >= since)
        return [entry for entry in lately if parts.covers(entry.part, entry.ports)]

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """An attribute of this kind of bench alone, such as the simulated rack's own control."""
            return getattr(self._used(), name)


class _KeptOn:
    """A PowerPort that is turned off where ``require`` lets it."""

    def __init__(self, port: PowerPort, require: Callable[[], None]) -> None:
        self._port = port
        self._require = require

    def turn_on(self, deadline: Deadline) -> None:
        self._port.turn_on(deadline)

    def turn_off(self, deadline: Deadline) -> None:
        self._require()
        self._port.turn_off(deadline)

    def is_on(self, deadline: Deadline) -> bool:
        return self._port.is_on(deadline)


def _shown(equipment: Equipment, shows: Callable[[Part], bool]) -> Equipment:
    """The equipment with the power, the breakable parts and the servers' registers that ``shows`` accepts."""
    return replace(
        equipment,
        power={name: port for name, port in equipment.power.items() if shows(Part.of_resource(name))},
        breakable={name: part for name, part in equipment.breakable.items() if shows(Part.of_resource(name))},
        server_registers=tuple(
            register for register in equipment.server_registers if any(map(shows, _of_server(register)))
        ),
    )


def _of_server(register: FaultRegister) -> list[Part]:
    """The parts of a register that tell which server is asked: drives have notes on servers they are not at."""
    parts = [Part.of_resource(name) for name in register.parts]
    return [part for part in parts if part.server_name is not None] or parts


def _hidden(ports: list[int]) -> BadInput:
    named = ", ".join(map(str, ports))
    return BadInput(f"ports {named} belong to what is out of service: `rackloop lab status` says what and why")


def _out_of_service(part: Part) -> RackloopError:
    return NotSupported(f"{part.said} is out of service")


def whole(bench: Bench) -> Bench:
    """The bench with all parts, in service or not."""
    return bench.whole if isinstance(bench, BenchInService) else bench


def is_about_what_is_out(bench: Bench, subject: str) -> bool:
    """Whether ``subject`` of a change of the rack's health is about a part that is out of service.

    A drive by its name, or a server with the names of its ports, as a HealthChange has them. An expander's port is
    where all drives in it are.
    """
    if not isinstance(bench, BenchInService) or not bench.out:
        return False
    whole, out = bench.whole.lab, bench.out
    name, *ports = subject.split()
    if name not in whole.servers:
        return Part.drive(name) in out
    joined = whole.joined(name)
    known = [port for port in ports if port in whole.servers[name].ports]
    behind = {port: {*map(Part.drive, whole.behind(joined.get(port)))} for port in known}
    are_out = [Part.port(name, port) in out or (bool(drives) and drives <= out) for port, drives in behind.items()]
    return Part.server(name) in out or (bool(are_out) and all(are_out))
