"""Drives whose links no act takes away: those that are not scratch, unless the plan names them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from rackloop.errors import BadInput
from rackloop.lab import Part, PartKind, phy_number, reach_of, server_ports
from rackloop.portmap import PortMap, disturbed_ports

if TYPE_CHECKING:
    from rackloop.lab import Lab


class LinkKept(BadInput):
    """An act would take the link from drives that keep theirs. ``drives`` names them."""

    def __init__(self, drives: Collection[str]) -> None:
        self.drives = tuple(sorted(drives))
        named = ", ".join(self.drives)
        super().__init__(
            f"{named} would lose the link to its server, and is not marked scratch: true; "
            f"where that may be, write disturbs: [{named}] into the plan's entry"
        )


class KeptLinks:
    """The links of ``lab`` that no act may take away: of drives that are not scratch and not in ``disturbs``.

    Acts that give such a drive the circuit back that it has at the baseline are allowed whatever they interrupt.
    """

    def __init__(self, lab: Lab, disturbs: Collection[str]) -> None:
        self._lab = lab
        self._drives = {name for name, drive in lab.drives.items() if not drive.scratch and name not in disturbs}
        self._by_port: dict[int, list[str]] = {}
        for number, drive in _places(lab):
            if drive in self._drives:
                self._by_port.setdefault(number, []).append(drive)
        # Where there is none, the lab may be a part of a rack, whose baseline names drives that it does not have.
        self._due = lab.baseline_map() if self._by_port else PortMap()

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self._by_port)

    def require_map(self, before: PortMap, after: PortMap) -> None:
        """Return where going from one map to the other takes none away. Raises LinkKept."""
        lost = before.ports() & disturbed_ports(before, after)
        self._require(port for port in lost if after.peer_of(port) != self._due.peer_of(port))

    def require_signal(self, ports: Iterable[int], live: PortMap) -> None:
        """Return where none goes over these ports, whichever end they are. Raises LinkKept."""
        given = set(ports)
        self._require(given.union(peer for port in given if (peer := live.peer_of(port)) is not None))

    def require_part(self, name: str, fault: Mapping[str, object]) -> None:
        """Return where breaking a part of the rack, by its name among the equipment, takes none away. Raises LinkKept.

        Those are the cables that ``fault`` names, and a slot or a PHY of a server port.
        """
        part = Part.of_resource(name)
        if part.kind is PartKind.CABLING:
            ports = fault.get("ports")
            self.require_signal(ports if isinstance(ports, list) else [], self._lab.baseline_map())
        elif part.kind in {PartKind.SLOT, PartKind.PHY}:
            self._require_drives(reach_of(self._lab, part).drives)

    def require_power(self, name: str) -> None:
        """Return where turning off the power of a part of the rack takes none away. Raises LinkKept."""
        linked = {drive for server in self._lab.servers for drive in self._lab.drives_of(server)}
        self._require_drives(linked & reach_of(self._lab, Part.of_resource(name)).drives)

    def _require(self, ports: Iterable[int]) -> None:
        self._require_drives(drive for port in ports for drive in self._by_port.get(port, ()))

    def _require_drives(self, drives: Iterable[str]) -> None:
        if lost := self._drives.intersection(drives):
            raise LinkKept(lost)


def _places(lab: Lab) -> Iterator[tuple[int, str]]:
    """Each drive with the number of the port it is reached by: the switch's, or without one that of the server port."""
    if lab.has_switch:
        yield from ((at, name) for name in lab.drives if (at := lab.wired_port(name)) is not None)
        return
    for place in server_ports(lab):
        yield from ((phy_number(lab, place), drive) for drive in sorted(reach_of(lab, place).drives))
