"""The parts of a rack that can be out of service, and the rack without them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from rackloop.errors import BadInput
from rackloop.names import guess

if TYPE_CHECKING:
    from rackloop.lab import Lab


class GearKind(StrEnum):
    """What a part is. A port is a server's, with its cable and the switch port at its other end."""

    SERVER = "server"
    DRIVE = "drive"
    PORT = "port"


@dataclass(frozen=True, order=True)
class Gear:
    """One part of a rack, by its name in the lab description: ``srv1``, ``d01``, ``srv1.p0``."""

    kind: GearKind
    name: str

    @classmethod
    def server(cls, name: str) -> Gear:
        """A server."""
        return cls(GearKind.SERVER, name)

    @classmethod
    def drive(cls, name: str) -> Gear:
        """A drive."""
        return cls(GearKind.DRIVE, name)

    @classmethod
    def port(cls, server: str, port: str) -> Gear:
        """A port of a server."""
        return cls(GearKind.PORT, f"{server}.{port}")

    @classmethod
    def of(cls, text: str) -> Gear:
        """What ``str()`` made of it. Raises BadInput for anything else."""
        kind, _, name = text.partition(":")
        if kind not in set(GearKind) or not name:
            raise BadInput(f"{text!r} is no part of a rack; expected server:NAME, drive:NAME or port:SERVER.PORT")
        return cls(GearKind(kind), name)

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"

    @property
    def said(self) -> str:
        """The part in a sentence."""
        return f"{self.kind} {self.name}"


def gear_named(lab: Lab, name: str) -> Gear:
    """The part of ``lab`` that somebody calls ``srv1``, ``d01``, ``srv1.p0``, or as ``str()`` of it says.

    Raises BadInput where there is none, or a server and a drive have the same name and the kind is not said.
    """
    found = [gear for gear in _all(lab) if name in {gear.name, str(gear)}]
    if not found:
        known = [*lab.servers, *lab.drives]
        raise BadInput(f"lab {lab.name} has no server, drive or port {name!r}; {guess(name, known)}")
    if len(found) > 1:
        raise BadInput(f"lab {lab.name} has more than one {name!r}; say which: {', '.join(map(str, found))}")
    return found[0]


def lab_without(lab: Lab, gone: Collection[Gear]) -> Lab:
    """The description of ``lab`` without these parts, and without what the baseline joins them with.

    Parts that are not in it change nothing. What is left may have no server, or no drive.
    """
    if not gone:
        return lab
    gear = set(gone)
    servers = {
        name: server.model_copy(
            update={"ports": {port: at for port, at in server.ports.items() if Gear.port(name, port) not in gear}}
        )
        for name, server in lab.servers.items()
        if Gear.server(name) not in gear
    }
    drives = {
        name: drive
        for name, drive in lab.drives.items()
        if Gear.drive(name) not in gear and (drive.attached is None or drive.attached[0] in servers)
    }
    baseline = {
        server: {
            port: far
            for port, far in joined.items()
            if port in servers[server].ports and (far in drives or far in lab.expanders)
        }
        for server, joined in lab.baseline.items()
        if server in servers
    }
    return lab.model_copy(update={"servers": servers, "drives": drives, "baseline": baseline})


def gear_behind(lab: Lab, resource: str) -> list[Gear]:
    """The parts of ``lab`` that feel an act on a resource, as the undo journal names it; none for a shared one.

    A server's are its network, its controller, its slots and PHYs and the outlet that feeds it, a switch port's the
    drive or the server port that is wired there.
    """
    kind, _, name = resource.partition(":")
    match kind:
        case "server" | "network" | "bmc" | "slot" | "phy":
            return [Gear.server(name.partition("/")[0])]
        case "drive":
            return [Gear.drive(name)]
        case "outlet":
            return [
                Gear.server(server)
                for server, described in lab.servers.items()
                if described.outlet is not None and "{}/{}".format(*described.outlet) == name
            ]
        case "port":
            ports = [
                Gear.port(server, port)
                for server, described in lab.servers.items()
                for port, number in described.ports.items()
                if str(number) == name
            ]
            return ports + [Gear.drive(drive) for drive, described in lab.drives.items() if str(described.port) == name]
        case _:
            return []


def _all(lab: Lab) -> list[Gear]:
    ports = (Gear.port(name, port) for name, server in lab.servers.items() for port in server.ports)
    return [*map(Gear.server, lab.servers), *map(Gear.drive, lab.drives), *ports]
