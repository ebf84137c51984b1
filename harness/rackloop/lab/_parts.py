"""Parts of a rack, by kind and name, and sets of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from rackloop.errors import BadInput

SWITCH_PORT = re.compile(r"(?:switch_)?port[ :]([1-9][0-9]{0,3})")
"""A switch port as users, and older stores, write it."""


class PartKind(StrEnum):
    """The kinds of parts. ``PORT`` is a server's port with its cable; ``RACK`` is what belongs to no single part."""

    RACK = "rack"
    SERVER = "server"
    DRIVE = "drive"
    PORT = "port"
    SWITCH_PORT = "switch_port"
    SWITCH = "switch"
    CONTROL = "control"
    CABLING = "cabling"
    OUTLET = "outlet"
    NETWORK = "network"
    BMC = "bmc"
    SLOT = "slot"
    PHY = "phy"

    @property
    def noun(self) -> str:
        """The kind in a sentence that also speaks of other kinds."""
        return "server port" if self is PartKind.PORT else self.replace("_", " ")


_WRITTEN = frozenset(PartKind) - {PartKind.RACK, PartKind.SWITCH_PORT}
_UNNAMED = frozenset({PartKind.SWITCH, PartKind.CONTROL, PartKind.CABLING})
_IN_SERVERS = frozenset({PartKind.SERVER, PartKind.PORT, PartKind.NETWORK, PartKind.BMC, PartKind.SLOT, PartKind.PHY})


@dataclass(frozen=True, order=True)
class Part:
    """One part of a rack: ``srv1``, ``d01``, ``srv1.p0``, switch port ``17``, ``pdu1/2``, slot ``node1/p0/3``.

    The switch, its control link and the cabling have no name of their own.
    """

    kind: PartKind
    name: str = ""

    @classmethod
    def server(cls, name: str) -> Part:
        """A server."""
        return cls(PartKind.SERVER, name)

    @classmethod
    def drive(cls, name: str) -> Part:
        """A drive."""
        return cls(PartKind.DRIVE, name)

    @classmethod
    def port(cls, server: str, port: str) -> Part:
        """A port of a server."""
        return cls(PartKind.PORT, f"{server}.{port}")

    @classmethod
    def switch_port(cls, number: int) -> Part:
        """A port of the switch."""
        return cls(PartKind.SWITCH_PORT, str(number))

    @classmethod
    def outlet(cls, pdu: str, number: int) -> Part:
        """An outlet of a PDU."""
        return cls(PartKind.OUTLET, f"{pdu}/{number}")

    @classmethod
    def of(cls, text: str) -> Part:
        """The part that ``str()`` wrote, or of ``port:17``, as older stores call a switch port. Raises BadInput."""
        if number := SWITCH_PORT.fullmatch(text):
            return cls(PartKind.SWITCH_PORT, number[1])
        kind, _, name = text.partition(":")
        is_whole = bool(name) is (kind not in _UNNAMED) and (kind != PartKind.PORT or "." in name)
        if not is_whole or kind not in _WRITTEN:
            raise BadInput(
                f"{text!r} is no part of a rack; expected server:NAME, drive:NAME, port:SERVER.PORT or alike"
            )
        return cls(PartKind(kind), name)

    @classmethod
    def of_resource(cls, text: str) -> Part:
        """The part that a journal entry or a piece of equipment names; an unknown one belongs to the whole rack."""
        try:
            return cls.of(text)
        except BadInput:
            return cls(PartKind.RACK, text)

    def __str__(self) -> str:
        if self.kind is PartKind.RACK:
            return self.name
        return f"{self.kind}:{self.name}" if self.name else str(self.kind)

    @property
    def said(self) -> str:
        """The part in a sentence."""
        return f"{self.kind.replace('_', ' ')} {self.name}".strip()

    @property
    def names(self) -> tuple[str, ...]:
        """The names that lead to it: of a server port its server's and its own."""
        return tuple(re.split("[./]", self.name))

    @property
    def server_name(self) -> str | None:
        """The server that it is, or belongs to; None where it belongs to none."""
        return self.names[0] if self.kind in _IN_SERVERS else None

    @property
    def number(self) -> int:
        """The number of a switch port."""
        return int(self.name)


class Parts(frozenset[Part]):
    """A set of parts. One that holds :data:`WHOLE_RACK` has everything, also what belongs to no single part."""

    def __or__(self, other: Iterable[Part]) -> Parts:  # type: ignore[override]  # parts alone
        return Parts(frozenset.__or__(self, frozenset(other)))

    @classmethod
    def all_of(cls, sets: Iterable[Iterable[Part]]) -> Parts:
        """The parts of all of ``sets``."""
        return cls(part for parts in sets for part in parts)

    @cached_property
    def whole(self) -> bool:
        """Whether it is the whole rack."""
        return WHOLE_RACK in self

    @cached_property
    def servers(self) -> frozenset[str]:
        """The servers, by name."""
        return self._names(PartKind.SERVER)

    @cached_property
    def drives(self) -> frozenset[str]:
        """The drives, by name."""
        return self._names(PartKind.DRIVE)

    @cached_property
    def outlets(self) -> frozenset[str]:
        """The outlets, as ``pdu1/2``."""
        return self._names(PartKind.OUTLET)

    @cached_property
    def switch_ports(self) -> frozenset[int]:
        """The switch ports, by number."""
        return frozenset(part.number for part in self if part.kind is PartKind.SWITCH_PORT)

    @cached_property
    def server_ports(self) -> frozenset[tuple[str, str]]:
        """The server ports, as (server, port)."""
        return frozenset((part.names[0], part.names[1]) for part in self if part.kind is PartKind.PORT)

    def overlaps(self, other: Parts) -> bool:
        """Whether the two have a part in common."""
        return self.whole or other.whole or not self.isdisjoint(other)

    def contains(self, other: Parts) -> bool:
        """Whether all of ``other`` is in it."""
        return self.whole or other <= self

    def covers(self, part: Part, switch_ports: Iterable[int] = ()) -> bool:
        """Whether an act on ``part`` that touches these switch ports stays within it.

        What belongs to a server is covered with the server; the switch and the cabling by the ports that are touched.
        """
        touched = frozenset(switch_ports)
        if self.whole or not touched <= self.switch_ports:
            return self.whole
        if part.kind in {PartKind.SWITCH, PartKind.CABLING}:
            return bool(touched)
        return part in self or part.server_name in self.servers

    def reaches(self, part: Part) -> bool:
        """Whether a part is in it, a server by any of its ports, and a port by its server."""
        return (
            part in self
            or part.server_name in self.servers
            or (part.kind is PartKind.SERVER and any(part.name == server for server, _ in self.server_ports))
        )

    def may_touch(self, *, server: str, port: str | None = None, drive: str | None = None) -> bool:
        """Whether I/O of a server, through a port of it and to a drive, passes through any of the parts."""
        return server in self.servers or (server, port) in self.server_ports or drive in self.drives

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
            f"ports {', '.join(map(str, sorted(self.switch_ports)))}" if self.switch_ports else "",
            f"outlets {', '.join(sorted(self.outlets))}" if self.outlets else "",
        ]
        return "; ".join(part for part in parts if part) or "nothing"

    def _names(self, kind: PartKind) -> frozenset[str]:
        return frozenset(part.name for part in self if part.kind is kind)


WHOLE_RACK = Part(PartKind.RACK, "the whole rack")
"""The part that makes a set the whole rack."""
