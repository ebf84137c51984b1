"""The description of a lab: its hardware by name, the baseline cabling, and the parts of it that a holder has."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Self, TypeVar

from pydantic import Field, PrivateAttr, ValidationInfo, model_validator

from rackloop.errors import BadInput, NotSupported
from rackloop.lab._hardware import Drive, Expander, Fabric, JumpHost, Pdu, Phy, Server
from rackloop.lab._parts import SWITCH_PORT, Part, PartKind, Parts
from rackloop.lab._times import USUAL_S, TimeName, Times
from rackloop.lab.yaml import Description, Name, Store, Text, one_of, whole
from rackloop.names import guess, quoted
from rackloop.portmap import PortMap

T = TypeVar("T")
_PLACE = re.compile(r"(?:(?:port|outlet):)?([^./:]{1,32})[./]([^./]{1,32})")


class LabKind(StrEnum):
    """A kind of lab: one of the three ways to have a rack."""

    MOCK = "mock"
    VIRTUAL = "virtual"
    PHYSICAL = "physical"


class Quarantine(Description):
    """The rule that takes a failing part out of service, until an operator or a passed retest lifts it."""

    failures: Annotated[int, whole(1, 1000)] = 3
    """The number of tests that it has to fail."""
    tests: Annotated[int, whole(1, 100000)] = 50
    """Among how many of the lab's last tests."""


class Lab(Description):
    """A rack as its description says it is wired. Names are keys; every cross-reference leads somewhere."""

    name: Name
    """The lab's identity; its state is kept under this name."""
    kind: Annotated[LabKind, one_of(LabKind, LabKind)]
    """Lab type: mock (processes), virtual (QEMU guests) or physical."""
    store: Store = "sqlite"
    """The store of leases and undo journal: sqlite, or a postgresql:// URL that several people share."""
    controllers: tuple[Text, ...] = ()
    """The machines that Rackloop works on the rack from, such as [ctl1, ctl2]; more than one share a store."""
    fabric: Fabric
    """The fabric between server ports and drives, such as {driver: flexfabric, ports: 160}."""
    phy: Phy | None = None
    """The PHY control of ports, if not the switch's or, without one, the servers', such as {driver: host}."""
    servers: Annotated[Mapping[Name, Server], Field(min_length=1)]
    """The servers by name."""
    jump_hosts: Mapping[Name, JumpHost] = {}
    """The machines that servers are reached from, by name."""
    drives: Annotated[Mapping[Name, Drive], Field(min_length=1)]
    """The drives by a name of your choosing, such as d01."""
    expanders: Mapping[Name, Expander] = {}
    """The SAS expanders by name."""
    pdus: Mapping[Name, Pdu] = {}
    """The power distribution units by name."""
    baseline: Mapping[Name, Mapping[Name, Name]] = {}
    """The cabling every test starts from: for each server, its ports and the drive or expander each is joined to."""

    quarantine: Quarantine = Quarantine()
    """The failures after which a drive, port or server is used no more."""
    times: Times = Times()
    """Time limits of this rack, such as {online: 30 s}, where they differ from those usual for its kind."""

    _source: Path = PrivateAttr(default=Path())
    _missing: Mapping[str, str] = PrivateAttr(default_factory=dict)
    _numbered: tuple[Part, ...] = PrivateAttr(default=())

    @model_validator(mode="after")
    def _remember_whole(self, info: ValidationInfo) -> Self:
        self._source = (info.context or {})["file"]
        self._numbered = tuple(Part.port(at, port) for at, its in self.servers.items() for port in its.ports)
        return self

    @property
    def source(self) -> Path:
        """The file this description was read from."""
        return self._source

    @property
    def missing(self) -> Mapping[str, str]:
        """The reasons why servers, drives and ports (``srv1.p0``) of the rack are not in this part of it, by name."""
        return self._missing

    def restricted(self, parts: Parts) -> Self:
        """The description of these servers and drives alone, and the cabling between them.

        Of the others it tells that they are not in the lease.
        """
        if parts.whole:
            return self
        drives = {name: drive for name, drive in self.drives.items() if name in parts.drives}
        expanders = {drive.expander for drive in drives.values()}
        lacking = f"not in the lease, which has {parts}; lease it too"
        missing = {name: f"server {name} is {lacking}" for name in self.servers if name not in parts.servers}
        missing |= {name: f"drive {name} is {lacking}" for name in self.drives if name not in drives}
        return self._with(
            missing,
            servers={name: server for name, server in self.servers.items() if name in parts.servers},
            drives=drives,
            expanders={name: expander for name, expander in self.expanders.items() if name in expanders},
            baseline={name: joined for name, joined in self.baseline.items() if name in parts.servers},
        )

    def without(self, parts: Collection[Part], why: Callable[[Part], object] | None = None) -> Self:
        """The description without these parts, and without what the baseline joins them with.

        Parts that are not in it change nothing. What is left may have no server, or no drive. ``why`` gives the reason
        that is among :attr:`missing` for each of them.
        """
        if not parts:
            return self
        servers = {
            name: server.model_copy(
                update={"ports": {port: at for port, at in server.ports.items() if Part.port(name, port) not in parts}}
            )
            for name, server in self.servers.items()
            if Part.server(name) not in parts
        }
        drives = {
            name: drive
            for name, drive in self.drives.items()
            if Part.drive(name) not in parts and (drive.attached is None or drive.attached[0] in servers)
        }
        expanders = {name for name in self.expanders if not drives.keys().isdisjoint(self.behind(name) or drives)}
        baseline = {
            server: {
                port: far
                for port, far in joined.items()
                if port in servers[server].ports and (far in drives or far in expanders)
            }
            for server, joined in self.baseline.items()
            if server in servers
        }
        missing = {} if why is None else {part.name: str(why(part)) for part in parts}
        return self._with(missing, servers=servers, drives=drives, baseline=baseline)

    def _with(self, missing: Mapping[str, str], **fields: object) -> Self:
        changed = self.model_copy(update=fields)
        changed._missing = {**self._missing, **missing}  # noqa: SLF001 - of this class
        return changed

    @property
    def has_switch(self) -> bool:
        """Whether ports can be remapped."""
        return not self.fabric.is_fixed

    @property
    def places(self) -> dict[str, tuple[str, str]]:
        """The server and port of each drive that a port has to itself at the baseline, in the order given there.

        A drive behind an expander has none.
        """
        return {
            far: (server, port)
            for server in (self.baseline if self.has_switch else self.servers)
            for port, far in self.joined(server).items()
            if far in self.drives
        }

    def time_s(self, name: TimeName, *, at_least: float = 0.0) -> float:
        """The time in seconds that something may take here: as described, or else as usual for this kind of lab.

        It is ``at_least`` as many seconds.
        """
        return max(at_least, float(getattr(self.times, name) or USUAL_S[self.kind][name]))

    @property
    def numbered_ports(self) -> tuple[Part, ...]:
        """The ports of all servers of the rack, as its description has them, also those not in this part of it."""
        return self._numbered

    def switch_port(self, server: str, port: str) -> int:
        """The switch port that a server's HBA port is wired to.

        Raises BadInput for an unknown name, NotSupported where the rack has no switch.
        """
        return self._wired(_named(_named(self.servers, server, "server").ports, port, f"port of {server}"))

    def where_is(self, drive: str) -> int:
        """The switch port a drive is reached through, its own or its expander's; raises as :meth:`switch_port` does."""
        return self._wired(self.wired_port(drive))

    def wired_port(self, drive: str) -> int | None:
        """The switch port a drive is reached through; None where it is wired to none. Raises BadInput."""
        described = _named(self.drives, drive, "drive")
        return self.expanders[described.expander].port if described.expander else described.port

    def joined(self, server: str) -> Mapping[str, str]:
        """The drive or expander that each port of a server is joined to at the baseline; other ports are left out.

        Raises BadInput for an unknown name.
        """
        _named(self.servers, server, "server")
        return self.baseline.get(server, {}) if self.has_switch else self._attached(server)

    def drives_of(self, server: str) -> list[str]:
        """The drives a server has at the baseline, in the order of its ports, those behind an expander by slot.

        Raises BadInput for an unknown name.
        """
        ports = _named(self.servers, server, "server").ports
        joined = self.joined(server)
        return [drive for port in ports if port in joined for drive in self.behind(joined[port])]

    def behind(self, far: str | None) -> list[str]:
        """The drive ``far``, or all the drives in the expander ``far``, by slot."""
        if far is None or far in self.drives:
            return [] if far is None else [far]
        slots = ((drive.expander_slot, name) for name, drive in self.drives.items() if drive.expander == far)
        return [name for _, name in sorted(slots)]

    def part(self, written: str, words: Iterable[str] = ()) -> Part:
        """The part written ``d01``, ``srv1``, ``srv1.p0``, ``port 17``, ``switch`` or ``pdu1/2``, or as ``str()`` says.

        ``words`` are what could have been meant besides. Raises BadInput, saying what there is, where the lab has no
        such part, NotSupported, saying why, where only the rack has it.
        """
        if written == "switch" and self.has_switch:
            return Part(PartKind.SWITCH)
        if number := SWITCH_PORT.fullmatch(written):
            if int(number[1]) > self.fabric.ports:
                raise BadInput(f"the switch of {self.name} has no port {number[1]}; it has 1 to {self.fabric.ports}")
            return Part.switch_port(int(number[1]))
        if place := _PLACE.fullmatch(written):
            first, second = place.groups()
            if first in self.servers and second in self.servers[first].ports:
                return Part.port(first, second)
            if first in self.pdus and second.isdecimal() and 1 <= int(second) <= self.pdus[first].outlets:
                return Part.outlet(first, int(second))
        for kind, named in ((PartKind.DRIVE, self.drives), (PartKind.SERVER, self.servers)):
            if (name := written.removeprefix(f"{kind}:")) in named:
                return Part(kind, name)
        for name in (written, written.replace("/", "."), written.partition(".")[0], written.partition("/")[0]):
            if name in self.missing:
                raise NotSupported(self.missing[name])
        ports = [f"{server}.{port}" for server, described in self.servers.items() for port in described.ports]
        known = [*self.drives, *self.servers, *ports, *(["switch"] if self.has_switch else []), *words]
        raise BadInput(f"the rack {self.name} has nothing called {quoted(written)}; {guess(written, known)}")

    def baseline_map(self) -> PortMap:
        """The port map every test starts from; empty where the rack has no switch."""
        if not self.has_switch:
            return PortMap()
        return PortMap.of(
            (
                self.switch_port(server, port),
                self._wired(self.expanders[far].port) if far in self.expanders else self.where_is(far),
            )
            for server, joined in self.baseline.items()
            for port, far in joined.items()
        )

    def _attached(self, server: str) -> dict[str, str]:
        plugged: dict[str, Drive | Expander] = {**self.drives, **self.expanders}
        return {
            thing.attached[1]: name for name, thing in plugged.items() if thing.attached and thing.attached[0] == server
        }

    def _wired(self, port: int | None) -> int:
        if port is None:
            raise NotSupported(f"the rack {self.name} has no switch: its drives are attached to servers for good")
        return port


def _named(mapping: Mapping[str, T], name: str, what: str) -> T:
    try:
        return mapping[name]
    except KeyError:
        raise BadInput(f"no {what} is named {name!r}; {guess(name, mapping)}") from None
