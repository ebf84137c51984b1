"""What may feel a fault: worked out from how the rack is wired, before anything is broken."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rackloop.faults._target import Target, TargetKind

if TYPE_CHECKING:
    from rackloop.lab import Lab
    from rackloop.portmap import Pair
    from rackloop.safety.maintenance import Gear


@dataclass(frozen=True)
class BlastRadius:
    """What a fault may reach at the baseline; nothing else may notice it.

    ``servers`` fail or vanish whole; ``server_ports``, as (server, port), may lose, hold or slow down their I/O;
    ``drives`` may be slow, fail, vanish or not be reached; ``ports`` of the switch may lose their signal.
    """

    servers: frozenset[str] = frozenset()
    server_ports: frozenset[tuple[str, str]] = frozenset()
    drives: frozenset[str] = frozenset()
    ports: frozenset[int] = frozenset()

    def __or__(self, other: BlastRadius) -> BlastRadius:
        return BlastRadius(
            self.servers | other.servers,
            self.server_ports | other.server_ports,
            self.drives | other.drives,
            self.ports | other.ports,
        )

    def may_touch(self, *, server: str, port: str | None = None, drive: str | None = None) -> bool:
        """Whether I/O of a server, through a port of it and to a drive, may feel the fault."""
        return server in self.servers or (server, port) in self.server_ports or drive in self.drives

    def reaches(self, gear: Gear) -> bool:
        """Whether a part of the rack feels it, or may: a port with its server, a server with any port of it."""
        parts = {*self.servers, *self.drives}
        for server, port in self.server_ports:
            parts |= {server, f"{server}.{port}"}
        return gear.name in parts or gear.name.partition(".")[0] in self.servers


def radius_of_target(lab: Lab, target: Target) -> BlastRadius:
    """What a fault reaches that takes ``target`` away whole."""
    match target.kind, target.names:
        case TargetKind.DRIVE, (drive,):
            return radius_of_drive(lab, drive)
        case TargetKind.SERVER, (server,):
            return radius_of_server(lab, server)
        case TargetKind.SERVER_PORT, (server, port):
            return radius_of_server_port(lab, server, port)
        case TargetKind.SWITCH_PORT, (number,):
            return radius_of_switch_port(lab, int(number))
        case TargetKind.OUTLET, (pdu, outlet):
            fed = [name for name, server in lab.servers.items() if server.outlet == (pdu, int(outlet))]
            return _all_of(radius_of_server(lab, server) for server in fed)
    return _all_of(
        radius_of_server_port(lab, server, port) for server in lab.servers for port in lab.servers[server].ports
    ) | BlastRadius(drives=frozenset(lab.drives), ports=frozenset(_drive_ports(lab)))


def radius_of_drive(lab: Lab, drive: str) -> BlastRadius:
    """A drive alone, and the port that it is reached through."""
    places = [
        (server, port) for server in lab.servers for port, far in lab.joined(server).items() if drive in _at(lab, far)
    ]
    ports = {lab.where_is(drive)} if lab.has_switch and _is_wired(lab, drive) else set()
    if lab.has_switch:
        ports |= {lab.switch_port(*place) for place in places}
    return BlastRadius(server_ports=frozenset(places), drives=frozenset({drive}), ports=frozenset(ports))


def radius_of_server(lab: Lab, server: str) -> BlastRadius:
    """A server with all of its ports and what is at their ends."""
    ports = (radius_of_server_port(lab, server, port) for port in lab.servers[server].ports)
    return BlastRadius(servers=frozenset({server})) | _all_of(ports)


def radius_of_server_port(lab: Lab, server: str, port: str) -> BlastRadius:
    """A server port, and every drive at its end."""
    joined = lab.joined(server).get(port)
    drives = frozenset(_at(lab, joined)) if joined is not None else frozenset[str]()
    number = lab.servers[server].ports[port]
    circuits = _circuit(lab, number) if number is not None and lab.has_switch else frozenset[int]()
    return BlastRadius(server_ports=frozenset({(server, port)}), drives=drives, ports=circuits)


def radius_of_switch_port(lab: Lab, number: int) -> BlastRadius:
    """A port of the switch, and both ends of its circuit."""
    numbers = _circuit(lab, number)
    places = [
        (server, port)
        for server, described in lab.servers.items()
        for port, wired in described.ports.items()
        if wired in numbers
    ]
    drives = [drive for drive in lab.drives if _is_wired(lab, drive) and lab.where_is(drive) in numbers]
    return BlastRadius(server_ports=frozenset(places), drives=frozenset(drives), ports=numbers)


def _all_of(radii: Iterable[BlastRadius]) -> BlastRadius:
    reached = BlastRadius()
    for radius in radii:
        reached |= radius
    return reached


def _at(lab: Lab, far: str) -> Iterator[str]:
    """The drive ``far``, or every drive of the expander ``far``."""
    if far in lab.drives:
        yield far
    else:
        yield from (name for name, drive in lab.drives.items() if drive.expander == far)


def _is_wired(lab: Lab, drive: str) -> bool:
    described = lab.drives[drive]
    port = lab.expanders[described.expander].port if described.expander else described.port
    return port is not None


def _drive_ports(lab: Lab) -> set[int]:
    return {lab.where_is(drive) for drive in lab.drives if _is_wired(lab, drive)}


def _circuit(lab: Lab, number: int) -> frozenset[int]:
    joined: list[Pair] = [pair for pair in lab.baseline_map() if number in pair]
    return frozenset({number, *(port for pair in joined for port in pair)})
