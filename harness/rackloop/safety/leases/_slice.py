"""What of a rack a lease is for."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rackloop.errors import BadInput

if TYPE_CHECKING:
    from rackloop.lab import Lab

_OF_A_SERVER = frozenset({"server", "network", "bmc"})
_OF_A_HOST = frozenset({"slot", "phy"})


@dataclass(frozen=True)
class Slice:
    """Servers, switch ports, drives and outlets (``pdu1/2``) by the lab's names; ``whole`` is all there is.

    A whole slice also has what belongs to no part: the switch's power, its power-on map, its control link.
    """

    servers: frozenset[str] = frozenset()
    ports: frozenset[int] = frozenset()
    drives: frozenset[str] = frozenset()
    outlets: frozenset[str] = frozenset()
    whole: bool = False

    def overlaps(self, other: Slice) -> bool:
        """Whether somebody who has this one keeps others from ``other``."""
        return (
            self.whole
            or other.whole
            or bool(self.servers & other.servers or self.ports & other.ports)
            or bool(self.drives & other.drives or self.outlets & other.outlets)
        )

    def contains(self, other: Slice) -> bool:
        """Whether ``other`` is a part of this one."""
        return self.whole or (
            not other.whole
            and other.servers <= self.servers
            and other.ports <= self.ports
            and other.drives <= self.drives
            and other.outlets <= self.outlets
        )

    def covers(self, resource: str, ports: Iterable[int] = ()) -> bool:
        """Whether an act on ``resource`` that touches these switch ports stays within the slice.

        Resources are named as in the undo journal: ``switch`` with its ports, ``server:srv1``, ``drive:d01``,
        ``outlet:pdu1/1``, ``port:17``, ``slot:node1/p0``; one of no known kind belongs to the whole rack.
        """
        if self.whole:
            return True
        touched = frozenset(ports)
        if not touched <= self.ports:
            return False
        kind, _, name = resource.partition(":")
        if kind in _OF_A_SERVER:
            return name in self.servers
        if kind in _OF_A_HOST:
            return name.partition("/")[0] in self.servers
        match kind:
            case "drive":
                return name in self.drives
            case "outlet":
                return name in self.outlets
            case "port":
                return name.isdigit() and int(name) in self.ports
            case "switch" | "cabling":
                return bool(touched)
            case _:
                return False

    def as_json(self) -> str:
        """For the store."""
        return json.dumps(
            {
                "servers": sorted(self.servers),
                "ports": sorted(self.ports),
                "drives": sorted(self.drives),
                "outlets": sorted(self.outlets),
                "whole": self.whole,
            }
        )

    @classmethod
    def of_json(cls, text: str) -> Slice:
        """What :meth:`as_json` wrote."""
        value = json.loads(text)
        sets = {name: frozenset(value[name]) for name in ("servers", "ports", "drives", "outlets")}
        return cls(**sets, whole=value["whole"])

    @property
    def short(self) -> str:
        """The servers, whose drives, ports and outlets go without saying; where there are none, all of it."""
        return str(self) if self.whole or not self.servers else ", ".join(sorted(self.servers))

    def __str__(self) -> str:
        if self.whole:
            return "the whole rack"
        parts = [
            ", ".join(sorted(self.servers)),
            f"drives {', '.join(sorted(self.drives))}" if self.drives else "",
            f"ports {', '.join(map(str, sorted(self.ports)))}" if self.ports else "",
            f"outlets {', '.join(sorted(self.outlets))}" if self.outlets else "",
        ]
        return "; ".join(part for part in parts if part) or "nothing"


def slice_of(lab: Lab, servers: Iterable[str] | None = None) -> Slice:
    """These servers with the drives, ports and outlets they have at the baseline; without ``servers``, the whole rack.

    Raises BadInput for an unknown server and for none.
    """
    names = list(lab.servers) if servers is None else list(dict.fromkeys(servers))
    if not names:
        raise BadInput(f"a slice of lab {lab.name} has at least one server; it has {', '.join(lab.servers)}")
    drives = frozenset(drive for name in names for drive in lab.drives_of(name))
    ports = {number for name in names for number in lab.servers[name].ports.values() if number is not None}
    if lab.has_switch:
        far_ports = {number: port for low, high in lab.baseline_map() for number, port in ((low, high), (high, low))}
        ports |= {far_ports[number] for number in tuple(ports) if number in far_ports}
    outlets = frozenset(_outlet(outlet) for name in names if (outlet := lab.servers[name].outlet) is not None)
    if servers is not None:
        return Slice(frozenset(names), frozenset(ports), drives, outlets)
    everything = frozenset(f"{unit}/{n}" for unit, pdu in lab.pdus.items() for n in range(1, pdu.outlets + 1))
    return Slice(
        frozenset(names), frozenset(range(1, lab.fabric.ports + 1)), frozenset(lab.drives), everything, whole=True
    )


def slice_of_ports(lab: Lab, ports: Iterable[int]) -> Slice:
    """These switch ports, with the drives that are reached through them and nothing of the servers."""
    numbers = frozenset(ports)
    drives = frozenset(name for name in lab.drives if lab.where_is(name) in numbers) if lab.has_switch else frozenset()
    return Slice(ports=numbers, drives=drives)


def slice_of_resource(lab: Lab, resource: str) -> Slice:
    """What has to be leased to act on one thing, by its name in the undo journal; the whole rack for a shared one."""
    kind, _, name = resource.partition(":")
    if kind == "server" and name in lab.servers:
        return Slice(servers=frozenset({name}))
    if kind == "drive" and name in lab.drives:
        return Slice(drives=frozenset({name}))
    if kind == "outlet":
        fed = frozenset(
            server
            for server, described in lab.servers.items()
            if described.outlet and _outlet(described.outlet) == name
        )
        return Slice(servers=fed, outlets=frozenset({name}))
    return slice_of(lab)


def _outlet(outlet: tuple[str, int]) -> str:
    return f"{outlet[0]}/{outlet[1]}"
