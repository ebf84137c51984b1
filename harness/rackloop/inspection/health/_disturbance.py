"""What a test's own acts reach: which links it took away, whose power, and what it broke."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rackloop.inspection.health._faults import BROKEN_BY
from rackloop.portmap import Pair

if TYPE_CHECKING:
    from rackloop.lab import Lab
    from rackloop.safety.undo import Entry


@dataclass(frozen=True)
class Disturbed:
    """What lost its link or its power by the test's own acts, or was broken by them. A server port is (server, port).

    ``broken_drives`` and ``broken_ports``, through which broken drives were reached, have the rules that the faults
    made there break by their nature.
    """

    linked_ports: frozenset[tuple[str, str]] = frozenset()
    linked_drives: frozenset[str] = frozenset()
    powered_servers: frozenset[str] = frozenset()
    powered_drives: frozenset[str] = frozenset()
    broken_drives: Mapping[str, frozenset[str]] = field(default_factory=dict)
    broken_ports: Mapping[tuple[str, str], frozenset[str]] = field(default_factory=dict)


def disturbed(lab: Lab, entries: Iterable[Entry]) -> Disturbed:
    """What the acts of ``entries``, and those that undo them, reach in ``lab``.

    A circuit that was made or broken reaches what is at both ends, a PHY that was dropped also what it was or may have
    been joined to, a server's power its links, a drive's power the drive, the switch's power every link. A fault
    reaches what its part is: a drive, a server that crashes as if its power were cut, the links of a port.
    """
    reach = _Reach(lab)
    made = list(entries)
    for entry in made:
        reach.learn_circuits(entry)
    for entry in made:
        reach.add(entry)
    return reach.disturbed()


class _Reach:
    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._circuits: set[Pair] = set(lab.baseline_map())
        self._switch_ports: set[int] = set()
        self._server_ports: set[tuple[str, str]] = set()
        self._links: set[str] = set()
        self._servers: set[str] = set()
        self._drives: set[str] = set()
        self._broken: dict[str, frozenset[str]] = {}

    def learn_circuits(self, entry: Entry) -> None:
        """Remember every circuit that an act made or its undoing gives back."""
        if entry.ability == "fabric":
            for act in (*entry.inverse, entry.what.get("change", {})):
                self._circuits |= _pairs(act)

    def add(self, entry: Entry) -> None:
        """Add what one act reaches."""
        match entry.ability:
            case "fabric":
                self._switch_ports |= _touched(entry)
            case "phy" if not self._lab.has_switch:
                places = [(name, port) for name, server in self._lab.servers.items() for port in server.ports]
                for number in entry.what["ports"]:
                    self._links |= self._slot(*places[number - 1])
            case "phy":
                ports = set(entry.what["ports"])
                self._switch_ports |= ports
                self._switch_ports |= {port for pair in self._circuits for port in pair if ports & set(pair)}
            case "power" if _switched(entry):
                self._power(entry.resource)
            case "fault":
                self._break(entry.resource, entry.what)

    def disturbed(self) -> Disturbed:
        """All of it, by the names of the lab description."""
        lab = self._lab
        ports = {
            (server, port)
            for server, described in lab.servers.items()
            for port, number in described.ports.items()
            if number in self._switch_ports
        }
        drives = {
            name
            for name, drive in lab.drives.items()
            if (lab.expanders[drive.expander].port if drive.expander else drive.port) in self._switch_ports
        }
        return Disturbed(
            frozenset(ports | self._server_ports),
            frozenset(drives | self._links | self._drives),
            frozenset(self._servers),
            frozenset(self._drives),
            dict(self._broken),
            self._broken_ports(),
        )

    def _broken_ports(self) -> dict[tuple[str, str], frozenset[str]]:
        """The server ports that broken drives were or may have been reached through, with the rules that breaks."""
        found: dict[tuple[str, str], frozenset[str]] = {}
        for drive, rules in self._broken.items():
            for place in self._places_of(drive):
                found[place] = found.get(place, frozenset()) | rules
        return found

    def _places_of(self, drive: str) -> set[tuple[str, str]]:
        lab = self._lab
        described = lab.drives[drive]
        above = lab.expanders[described.expander] if described.expander else described
        reached = self._joined_to(above.port)
        places = {
            (server, port)
            for server, its in lab.servers.items()
            for port, number in its.ports.items()
            if number is not None and number in reached
        }
        return places | ({above.attached} if above.attached is not None else set())

    def _break(self, resource: str, fault: Mapping[str, Any]) -> None:
        kind, _, name = resource.partition(":")
        lab = self._lab
        match kind:
            case "drive":
                self._broken[name] = self._broken.get(name, frozenset()) | BROKEN_BY.get(fault["kind"], frozenset())
            case "server" if fault["kind"] == "crash":
                self._cut_server(name)
            case "server":
                self._server_ports |= {(name, port) for port in lab.servers[name].ports}
            case "port":
                self._switch_ports |= {int(name)} | self._joined_to(int(name))
            case "cabling":
                self._switch_ports |= {end for port in fault["ports"] for end in {port, *self._joined_to(port)}}
            case "slot" | "phy":
                gone = self._slot(*name.split("/"))
                self._links |= gone
                self._drives |= gone if fault["kind"] in {"slot_power_off", "device_off"} else set()

    def _slot(self, server: str, port: str, slot: str | None = None) -> set[str]:
        """The drives at a server's port, or the one in a slot of the expander there; the port is touched either way."""
        self._server_ports.add((server, port))
        drives = self._lab.drives
        far = self._lab.joined(server).get(port)
        at = {name for name, drive in drives.items() if far in {name, drive.expander}}
        return at if slot is None else {name for name in at if drives[name].slot == slot}

    def _power(self, resource: str) -> None:
        kind, _, name = resource.partition(":")
        lab = self._lab
        match kind:
            case "switch":
                self._switch_ports |= {port for pair in self._circuits for port in pair}
            case "server":
                self._cut_server(name)
            case "outlet":
                for server, described in lab.servers.items():
                    if described.outlet is not None and "{}/{}".format(*described.outlet) == name:
                        self._cut_server(server)
            case "drive":
                self._drives.add(name)
                self._switch_ports |= self._joined_to(lab.drives[name].port)
                if (attached := lab.drives[name].attached) is not None:
                    self._server_ports.add(attached)

    def _cut_server(self, server: str) -> None:
        self._servers.add(server)
        ports = self._lab.servers[server].ports
        self._server_ports |= {(server, port) for port in ports}
        self._links |= set(self._lab.drives_of(server))
        for number in ports.values():
            self._switch_ports |= self._joined_to(number)

    def _joined_to(self, number: int | None) -> set[int]:
        """``number`` and every port it was joined to; a port of a rack without a switch has no number."""
        return {port for pair in self._circuits for port in pair if number in pair}


def _touched(entry: Entry) -> set[int]:
    """The ports whose circuits an act on the map changed: those whose circuits its inverse gives back."""
    if entry.what["do"] != "apply":
        return set()
    given_back = {port for act in entry.inverse for pair in _pairs(act) for port in pair}
    return given_back | {port for act in entry.inverse for port in act.get("ports", ())}


def _switched(entry: Entry) -> bool:
    """Whether an act on a power port changed its state: its inverse gives back another."""
    return any(act["act"] == "power" and act["on"] != (entry.what["do"] == "turn_on") for act in entry.inverse)


def _pairs(act: Mapping[str, Any]) -> set[Pair]:
    return {(low, high) for low, high in act.get("pairs", ())}
