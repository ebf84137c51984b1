"""The reach of a part through its cables: the ends of circuits, drives behind expanders, what outlets feed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rackloop.errors import BadInput
from rackloop.lab._parts import WHOLE_RACK, Part, PartKind, Parts
from rackloop.portmap import Pair, PortMap

if TYPE_CHECKING:
    from rackloop.lab._rack import Lab


def circuit(pairs: Iterable[Pair], number: int | None) -> frozenset[int]:
    """A switch port with every port that ``pairs`` join it to; none for a port of a rack without a switch."""
    joined = {port for pair in pairs if number in pair for port in pair}
    return frozenset() if number is None else frozenset({number, *joined})


def wired_at(lab: Lab, numbers: Iterable[int]) -> Parts:
    """These switch ports, with the server ports and the drives, behind expanders too, that are wired there."""
    given = frozenset(numbers)
    ports = (
        Part.port(server, port)
        for server, described in lab.servers.items()
        for port, number in described.ports.items()
        if number in given
    )
    drives = (Part.drive(name) for name in lab.drives if lab.wired_port(name) in given)
    return Parts((*map(Part.switch_port, given), *ports, *drives))


def fed_by(lab: Lab, outlet: Part) -> list[str]:
    """The servers that have their power from an outlet."""
    return [name for name, server in lab.servers.items() if server.outlet and Part.outlet(*server.outlet) == outlet]


def feeds_switch(lab: Lab, part: Part) -> bool:
    """Whether a part is the outlet that the switch has its power from."""
    return lab.fabric.outlet is not None and Part.outlet(*lab.fabric.outlet) == part


def reach_of(lab: Lab, part: Part, pairs: Iterable[Pair] | None = None) -> Parts:
    """The parts that notice when ``part`` fails, loses its power or is taken away, the part included.

    Circuits are those of ``pairs``, by default of the baseline. What only controls the rack reaches nothing.
    """
    joined = tuple(lab.baseline_map() if pairs is None else pairs)
    match part.kind, part.names:
        case PartKind.DRIVE, (name,):
            circuits = wired_at(lab, circuit(joined, lab.wired_port(name)))
            places = (
                Part.port(server, port)
                for server in lab.servers
                for port, far in lab.joined(server).items()
                if name in lab.behind(far)
            )
            return Parts((part, *places, *(one for one in circuits if one.kind is not PartKind.DRIVE)))
        case PartKind.SERVER, (name,):
            ports = (reach_of(lab, Part.port(name, port), joined) for port in lab.servers[name].ports)
            return Parts((part,)) | Parts.all_of(ports)
        case PartKind.PORT, (server, port):
            there = map(Part.drive, lab.behind(lab.joined(server).get(port)))
            return Parts((part, *there)) | wired_at(lab, circuit(joined, lab.servers[server].ports[port]))
        case PartKind.SLOT | PartKind.PHY, (server, port, *slot):
            near = lab.behind(lab.joined(server).get(port))
            drives = (Part.drive(name) for name in near if not slot or lab.drives[name].slot == slot[0])
            return Parts((Part.port(server, port), *drives))
        case PartKind.SWITCH_PORT, (number,):
            return wired_at(lab, circuit(joined, int(number)))
        case PartKind.OUTLET, _ if not feeds_switch(lab, part):
            return Parts.all_of(reach_of(lab, Part.server(name), joined) for name in fed_by(lab, part))
        case PartKind.SWITCH | PartKind.OUTLET, _:
            parts = (*server_ports(lab), *map(Part.drive, lab.drives))
            return Parts.all_of(reach_of(lab, one, joined) for one in parts)
    return Parts()


def acted_on(lab: Lab, part: Part) -> Parts:
    """The servers and drives that an act on ``part`` is about; none for a part that the rack shares."""
    if part.kind is PartKind.OUTLET:
        return Parts(map(Part.server, fed_by(lab, part)))
    if part.server_name is not None:
        return Parts((Part.server(part.server_name),))
    return Parts((part,) if part.kind is PartKind.DRIVE else ())


def parts_of(lab: Lab, servers: Iterable[str] | None = None) -> Parts:
    """These servers with the drives, ports and outlets they have at the baseline; without ``servers``, the whole rack.

    Raises BadInput for an unknown server and for none.
    """
    if servers is None:
        outlets = (Part.outlet(unit, n) for unit, pdu in lab.pdus.items() for n in range(1, pdu.outlets + 1))
        own = (*map(Part.server, lab.servers), *map(Part.drive, lab.drives), *outlets)
        return Parts((WHOLE_RACK, *own, *map(Part.switch_port, range(1, lab.fabric.ports + 1))))
    names, pairs = list(dict.fromkeys(servers)), lab.baseline_map()
    if not names:
        raise BadInput(f"a lease of lab {lab.name} has at least one server; it has {', '.join(lab.servers)}")
    return Parts.all_of(_with_server(lab, name, pairs) for name in names)


def _with_server(lab: Lab, name: str, pairs: PortMap) -> Iterator[Part]:
    yield from (Part.server(name), *map(Part.drive, lab.drives_of(name)))
    server = lab.servers[name]
    for number in server.ports.values():
        yield from map(Part.switch_port, circuit(pairs, number))
    if server.outlet is not None:
        yield Part.outlet(*server.outlet)


def parts_at(lab: Lab, numbers: Iterable[int]) -> Parts:
    """These switch ports, with the drives that are reached through them and nothing of the servers."""
    return Parts(part for part in wired_at(lab, numbers) if part.kind is not PartKind.PORT)


def parts_for(lab: Lab, part: Part) -> Parts:
    """The parts to lease for an act on a server, a drive or an outlet; for what the rack shares, the whole of it."""
    if part.kind not in {PartKind.SERVER, PartKind.DRIVE, PartKind.OUTLET} or feeds_switch(lab, part):
        return parts_of(lab)
    return acted_on(lab, part) | [part]


def phy_part(lab: Lab, number: int) -> Part:
    """The port that a PhyControl knows by ``number``: a switch port; without a switch the server port in that place."""
    return Part.switch_port(number) if lab.has_switch else lab.numbered_ports[number - 1]


def phy_number(lab: Lab, part: Part) -> int:
    """The number by which a PhyControl knows a port, or the one that a drive is reached through: its switch port's.

    Without a switch it is the place of the server port among all of the rack's description, from 1.
    """
    return switch_port_of(lab, part) if lab.has_switch else lab.numbered_ports.index(server_port_of(lab, part)) + 1


def switch_port_of(lab: Lab, part: Part) -> int:
    """The switch port of a port or a drive. Raises NotSupported where the rack has no switch."""
    match part.kind, part.names:
        case PartKind.PORT, (server, port):
            return lab.switch_port(server, port)
        case PartKind.SWITCH_PORT, _:
            return part.number
    return lab.where_is(part.name)


def server_port_of(lab: Lab, part: Part) -> Part:
    """The server port that a server port or a drive is at: of a drive, at the baseline.

    Raises BadInput where a drive is at none.
    """
    if part.kind is PartKind.PORT:
        return part
    for server in lab.servers:
        for port, far in lab.joined(server).items():
            if part.name in lab.behind(far):
                return Part.port(server, port)
    raise BadInput(f"drive {part.name} is at no server port of {lab.name} at the baseline; name the port")


def server_ports(lab: Lab) -> list[Part]:
    """The ports of all servers, in the order of the description."""
    return [Part.port(name, port) for name, server in lab.servers.items() for port in server.ports]
