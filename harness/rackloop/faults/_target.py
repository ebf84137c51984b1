"""What a fault breaks, by the name a lab gives it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Self

from rackloop.errors import BadInput, NotSupported
from rackloop.names import guess, quoted

if TYPE_CHECKING:
    from rackloop.lab import Lab

_SWITCH_PORT = re.compile(r"port[ :]([1-9][0-9]{0,3})")
_PLACE = re.compile(r"([^./]+)[./]([^./]+)")


class TargetKind(StrEnum):
    """The sorts of things that a fault may be of."""

    DRIVE = "drive"
    SERVER = "server"
    SERVER_PORT = "server port"
    SWITCH_PORT = "switch port"
    SWITCH = "switch"
    OUTLET = "outlet"


@dataclass(frozen=True)
class Target:
    """A thing of a rack. ``names`` is its name, of a server port and an outlet after that of the server or unit.

    Written as ``d01``, ``srv1``, ``srv1.p0``, ``port 17``, ``switch`` and ``pdu1/2``.
    """

    kind: TargetKind
    names: tuple[str, ...]

    @classmethod
    def of(cls, lab: Lab, written: str, words: Iterable[str] = ()) -> Self:
        """The thing of ``lab`` that is written so. Raises BadInput, saying what there is, where it has none.

        ``words`` are what could have been meant besides. Raises NotSupported, saying why, where the rack has it and
        this part of its description has not.
        """
        if written == "switch" and lab.has_switch:
            return cls(TargetKind.SWITCH, ("switch",))
        if number := _SWITCH_PORT.fullmatch(written):
            if int(number[1]) > lab.fabric.ports:
                raise BadInput(f"the switch of {lab.name} has no port {number[1]}; it has 1 to {lab.fabric.ports}")
            return cls(TargetKind.SWITCH_PORT, (number[1],))
        if place := _PLACE.fullmatch(written):
            first, second = place.groups()
            if first in lab.servers and second in lab.servers[first].ports:
                return cls(TargetKind.SERVER_PORT, (first, second))
            if first in lab.pdus and second.isdecimal() and 1 <= int(second) <= lab.pdus[first].outlets:
                return cls(TargetKind.OUTLET, (first, str(int(second))))
        if written in lab.drives:
            return cls(TargetKind.DRIVE, (written,))
        if written in lab.servers:
            return cls(TargetKind.SERVER, (written,))
        for name in (written, written.replace("/", "."), written.partition(".")[0], written.partition("/")[0]):
            if name in lab.missing:
                raise NotSupported(lab.missing[name])
        ports = [f"{server}.{port}" for server, described in lab.servers.items() for port in described.ports]
        hint = guess(written, [*lab.drives, *lab.servers, *ports, *(["switch"] if lab.has_switch else []), *words])
        raise BadInput(f"the rack {lab.name} has nothing called {quoted(written)}; {hint}")

    @property
    def name(self) -> str:
        """Its own name: the drive's, the server's, the number of a switch port."""
        return self.names[-1]


def phy_number(lab: Lab, server: str, port: str) -> int:
    """The number by which a PhyControl knows a server port: its switch port's.

    Without a switch it is the place of the port among all of the description, from 1.
    """
    if lab.has_switch:
        return lab.switch_port(server, port)
    places = [(name, each) for name, described in lab.servers.items() for each in described.ports]
    return places.index((server, port)) + 1


def signal_port(lab: Lab, target: Target) -> int:
    """The port that a PhyControl knows ``target`` by: a port, or the one that a drive is reached through."""
    match target.kind, target.names:
        case TargetKind.SWITCH_PORT, (number,):
            return int(number)
        case TargetKind.SERVER_PORT, (server, port):
            return phy_number(lab, server, port)
        case _ if lab.has_switch:
            return lab.where_is(target.name)
    return phy_number(lab, *server_port_of(lab, target))


def switch_port(lab: Lab, target: Target) -> int:
    """The switch port of ``target``, a port or a drive. Raises NotSupported where the rack has no switch."""
    match target.kind, target.names:
        case TargetKind.SERVER_PORT, (server, port):
            return lab.switch_port(server, port)
        case TargetKind.SWITCH_PORT, (number,):
            return int(number)
    return lab.where_is(target.name)


def server_port_of(lab: Lab, target: Target) -> tuple[str, str]:
    """The server port that ``target``, a port of a server or a drive, is at: of a drive, at the baseline.

    Raises BadInput where a drive is at none.
    """
    if target.kind is TargetKind.SERVER_PORT:
        server, port = target.names
        return server, port
    described = lab.drives[target.name]
    far = described.expander or target.name
    for server in lab.servers:
        for port, joined in lab.joined(server).items():
            if joined == far:
                return server, port
    raise BadInput(f"drive {target.name} is at no server port of {lab.name} at the baseline; name the port")
