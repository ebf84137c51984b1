"""The comparison of what hosts see with the description: disagreements, and the likely cable for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rackloop.abilities.inventory import HostInventory
from rackloop.drive_identifiers import normal_identifier
from rackloop.inspection.cabling._seen import Sighting, Sightings, identity_problems, sightings
from rackloop.inspection.cabling._wiring import ServerPort, Wiring
from rackloop.lab import Lab
from rackloop.portmap import PortMap

NOTHING = "nothing"
# More suspects than these are no help at the rack.
_MOST_SUSPECTS = 3
# A shelf or a server that is off is no matter of swapped cables; neither is looking for some worth the time.
_MOST_WRONG = 64


@dataclass(frozen=True)
class Disagreement:
    """A port at which a server does not see what it should, and what to do about it.

    ``port`` is a device's name where a drive is at none of the server's described ports. ``switch_port`` is None
    there and in a rack without a switch. ``drive`` is what it is about where that is less than the port.
    """

    server: str
    port: str
    switch_port: int | None
    expected: str
    found: str
    advice: str
    drive: str | None = None

    def __str__(self) -> str:
        through = f" (switch port {self.switch_port})" if self.switch_port is not None else ""
        return f"{self.server}.{self.port}{through}: expected {self.expected}, found {self.found}; {self.advice}"


@dataclass(frozen=True)
class PortCheck:
    """One server port: what should be there, what is, and where the two disagree."""

    server: str
    port: str
    switch_port: int | None
    expected: str
    found: str
    disagreements: tuple[Disagreement, ...] = ()


def check_ports(lab: Lab, live: PortMap, inventories: Mapping[str, HostInventory]) -> list[PortCheck]:
    """Every port of the servers in ``inventories``, and every described drive that is seen at none of them.

    ``live`` is the switch's map as it is now; a rack without a switch has the empty one. A server port should see
    what is plugged into the switch port that the map joins it to, or what is attached to it.
    """
    return _Check(lab, live, inventories).ports()


class _Check:
    def __init__(self, lab: Lab, live: PortMap, inventories: Mapping[str, HostInventory]) -> None:
        self._lab = lab
        self._wiring = Wiring.of(lab, live)
        self._expected = {at: far for at, far in self._wiring.view().items() if at.server in inventories}
        drives = {at: set(self._lab.behind(far)) for at, far in self._expected.items()}
        self._seen: Sightings = sightings(lab, inventories, drives)
        observed = {at: self._far_of(seen) for at, seen in self._seen.at.items()}
        wrong = {at: far for at, far in observed.items() if far != self._visible(self._expected[at])}
        self._explanations = self._wiring.explanations(wrong) if len(wrong) <= _MOST_WRONG else []

    def ports(self) -> list[PortCheck]:
        """Every port in the order of the description, then what is at none of them."""
        strays = ((sighting, sighting.drive_id) for sighting in self._seen.elsewhere)
        return [*map(self._port, self._in_order()), *(self._stray(at, name) for at, name in strays if name is not None)]

    def _in_order(self) -> Iterator[ServerPort]:
        for server, described in self._lab.servers.items():
            yield from (at for port in described.ports if (at := ServerPort(server, port)) in self._expected)

    def _port(self, at: ServerPort) -> PortCheck:
        far, seen = self._expected[at], self._seen.at[at]
        expected = self._name(far)
        unreadable = self._seen.unreadable.get(at)
        found = ", ".join(map(str, seen)) or ("a drive that cannot be read" if unreadable else NOTHING)
        wrong: list[tuple[str, ...]] = []
        if self._far_of(seen) == self._visible(far) and not unreadable:
            wrong += self._at_its_port(at, far, seen)
        elif unreadable:
            wrong.append((expected, found, unreadable))
        else:
            wrong.append((expected, found, self._advice(at, far, seen)))
        number = self._lab.servers[at.server].ports[at.port]
        named = tuple(Disagreement(at.server, at.port, number, *texts) for texts in wrong)
        return PortCheck(at.server, at.port, number, expected, found, named)

    def _at_its_port(self, at: ServerPort, far: str | None, seen: list[Sighting]) -> Iterator[tuple[str, ...]]:
        """The disagreements where the right drive, or the right expander, is there."""
        if far is not None and far in self._lab.expanders:
            yield from self._in_slots(far, seen)
        strangers = [sighting for sighting in seen if sighting.drive_id not in self._lab.behind(far)]
        if strangers:
            yield self._name(far), ", ".join(map(str, strangers)), self._advice(at, far, strangers)
        for drive_id in self._lab.behind(far):
            own = [sighting for sighting in seen if sighting.drive_id == drive_id]
            for sighting in own[:1]:
                if problems := identity_problems(self._lab.drives[drive_id], sighting.drive):
                    advice = f"{'; '.join(problems)}; correct the description, or find out who exchanged the drive"
                    yield self._name(drive_id), str(sighting), advice, drive_id
            if len(own) > 1:
                yield self._name(drive_id), self._twice(own), self._duplicate_advice(drive_id)

    def _in_slots(self, expander: str, seen: list[Sighting]) -> Iterator[tuple[str, str, str, str]]:
        """Drives of the expander that are missing or in a slot that is not theirs."""
        here = {sighting.drive_id: sighting for sighting in seen if sighting.drive_id is not None}
        slots = {drive_id: self._lab.drives[drive_id].expander_slot for drive_id in self._lab.behind(expander)}
        in_slot = {slot: drive_id for drive_id, slot in slots.items()}
        for drive_id, slot in slots.items():
            expected = f"{self._name(drive_id)} in slot {slot} of {expander}"
            if drive_id not in here:
                advice = f"is {drive_id} seated in slot {slot} of {expander}, and has it power?"
                yield expected, NOTHING, advice, drive_id
                continue
            found = here[drive_id].slot
            if found is None or normal_identifier("slot", found) == str(slot):
                continue
            other = in_slot.get(int(found)) if found.isdigit() else None
            is_swap = other in here and here[other].slot == str(slot)
            advice = (
                f"{drive_id} and {other} are swapped (slots {slot} and {found} of {expander})"
                if is_swap
                else f"move {drive_id} from slot {found} to slot {slot} of {expander}, or correct the description"
            )
            yield expected, f"{here[drive_id]} in slot {found}", advice, drive_id

    def _advice(self, at: ServerPort, far: str | None, seen: list[Sighting]) -> str:
        """The likely fault at a port that sees something else than it should."""
        for sighting in seen:
            if sighting.drive_id is not None and len(self._seen.all_of(sighting.drive_id)) > 1:
                return self._duplicate_advice(sighting.drive_id)
        suspects, explained = self._suspects(at)
        if suspects and (seen or explained > 1):
            return suspects
        if known := [sighting.drive_id for sighting in seen if sighting.drive_id is not None]:
            return f"{known[0]} belongs {self._home(known[0])}: follow its cable, or correct the description"
        cable = f"the cable of {at}{self._socket_of(at)}"
        if seen:
            return f"add the drive to the description, or find out whose it is: follow {cable}"
        question = f"is {far} powered, and are its cable{self._socket_of(far)} and {cable} where they belong?"
        return f"{question} Or {suspects}" if suspects else question

    def _suspects(self, at: ServerPort) -> tuple[str, int]:
        """The swaps of two plugs that explain the most of what is seen, and how many ports they do explain.

        Empty where none does, or too many do.
        """
        told = [(swap, ports) for swap, ports in self._explanations if at in ports]
        most = max((len(ports) for _, ports in told), default=0)
        likely = [str(swap) for swap, ports in told if len(ports) == most]
        return (", or ".join(likely) if len(likely) <= _MOST_SUSPECTS else ""), most

    def _stray(self, sighting: Sighting, drive_id: str) -> PortCheck:
        """A described drive at none of the described ports."""
        name = sighting.drive.by_paths[0] if sighting.drive.by_paths else sighting.drive.device
        advice = (
            self._duplicate_advice(drive_id)
            if len(self._seen.all_of(drive_id)) > 1
            else f"{drive_id} belongs {self._home(drive_id)}; no port of {sighting.server} has a path that leads there"
        )
        found = Disagreement(sighting.server, name, None, NOTHING, str(sighting), advice, drive_id)
        return PortCheck(sighting.server, name, None, NOTHING, str(sighting), (found,))

    def _duplicate_advice(self, drive_id: str) -> str:
        where = self._twice(self._seen.all_of(drive_id))
        return f"two drives share an identity, or one is on two cables: {drive_id} is seen at {where}"

    @staticmethod
    def _twice(seen: list[Sighting]) -> str:
        return " and ".join(f"{sighting.server}:{sighting.drive.device}" for sighting in seen)

    def _home(self, drive_id: str) -> str:
        """The port of a described drive, in words."""
        drive = self._lab.drives[drive_id]
        if drive.expander is not None:
            return f"in slot {drive.slot} of {drive.expander}"
        if drive.attached is not None:
            return f"at {ServerPort(*drive.attached)}"
        joined = next((at for at, far in self._expected.items() if far == drive_id), None)
        return f"in switch port {drive.port}, which the map joins to {joined or 'no server'}"

    def _socket_of(self, plug: ServerPort | str | None) -> str:
        if not self._lab.has_switch:
            return ""
        number = next((socket for socket, there in self._wiring.plugs.items() if there == plug), None)
        return f" in switch port {number}" if number is not None else ""

    def _name(self, far: str | None) -> str:
        drive = self._lab.drives.get(far) if far is not None else None
        return f"{far} ({drive.model}, serial {drive.serial})" if drive else far or NOTHING

    def _visible(self, far: str | None) -> str | None:
        """An expander without drives is not to be seen."""
        return far if self._lab.behind(far) else None

    def _far_of(self, seen: list[Sighting]) -> str | None:
        """The drive or expander that a port must be joined to, to see this; an unknown drive is itself."""
        for sighting in seen:
            if sighting.drive_id is not None:
                return self._lab.drives[sighting.drive_id].expander or sighting.drive_id
        return str(seen[0]) if seen else None
