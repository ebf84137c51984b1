"""The described drives that each server sees, by port."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from rackloop.abilities.inventory import HostInventory, SeenDrive
from rackloop.drive_identifiers import is_on_path, unique_of
from rackloop.inspection.cabling._wiring import ServerPort
from rackloop.lab import Drive, Lab, mismatches


@dataclass(frozen=True)
class Sighting:
    """A drive that a server sees. ``drive_id`` is its name in the description, None where it is not described."""

    server: str
    drive: SeenDrive
    drive_id: str | None

    @property
    def slot(self) -> str | None:
        """The slot it is in, where the server can tell."""
        return self.drive.identity.identifiers.get("slot")

    def __str__(self) -> str:
        return f"{self.drive_id} ({self.drive})" if self.drive_id else f"a drive that is not described ({self.drive})"


@dataclass
class Sightings:
    """The drives that servers see, by their port; ``elsewhere`` are those at none of the described ports.

    ``unreadable`` says of a port why the drive there cannot be read.
    """

    at: dict[ServerPort, list[Sighting]] = field(default_factory=dict)
    elsewhere: list[Sighting] = field(default_factory=list)
    unreadable: dict[ServerPort, str] = field(default_factory=dict)

    def all_of(self, drive_id: str) -> list[Sighting]:
        """Every place where the drive is seen."""
        seen = [sighting for found in self.at.values() for sighting in found]
        return [sighting for sighting in (*seen, *self.elsewhere) if sighting.drive_id == drive_id]


def sightings(lab: Lab, inventories: Mapping[str, HostInventory], expected: Mapping[ServerPort, set[str]]) -> Sightings:
    """Every drive of ``inventories`` at its port.

    A port with a path has what is on that path. What is left of a server is given to its ports without one: to the
    port where it is ``expected`` by its name, else to those that lack something, in their order.
    """
    found = Sightings(at={at: [] for at in expected})
    owner = {
        unique: name for name, drive in lab.drives.items() for unique in unique_of(drive.serial, drive.identifiers)
    }
    for server, inventory in inventories.items():
        paths = lab.servers[server].paths
        pathless = [at for at in expected if at.server == server and at.port not in paths]
        left: list[Sighting] = []
        for drive in inventory.drives:
            sighting = Sighting(server, drive, _name_of(drive, owner))
            port = next((port for port, path in paths.items() if drive.is_at(path)), None)
            if port is not None:
                found.at[ServerPort(server, port)].append(sighting)
            else:
                left.append(sighting)
        for node, reason in inventory.unreadable.items():
            names = inventory.unreadable_by_paths.get(node, ())
            for port, path in paths.items():
                if any(is_on_path(name, path) for name in names):
                    found.unreadable[ServerPort(server, port)] = reason
        found.elsewhere += _without_a_path(left, pathless, expected, found.at)
    return found


def _without_a_path(
    left: list[Sighting],
    ports: list[ServerPort],
    expected: Mapping[ServerPort, set[str]],
    at: dict[ServerPort, list[Sighting]],
) -> list[Sighting]:
    """Give described drives to ports whose path is unknown; returns the drives that no port takes."""
    strange: list[Sighting] = []
    for sighting in left:
        home = next((port for port in ports if sighting.drive_id in expected[port]), None)
        if home is None:
            strange.append(sighting)
        else:
            at[home].append(sighting)
    lacking = [port for port in ports if expected[port] and not at[port]]
    for sighting in [sighting for sighting in strange if sighting.drive_id is not None]:
        if lacking:
            at[lacking.pop(0)].append(sighting)
            strange.remove(sighting)
    return strange


def identity_problems(described: Drive, seen: SeenDrive) -> list[str]:
    """Differences between a drive's report and its description, besides its place."""
    reported = dict(seen.identity.identifiers)
    if described.by_path in seen.by_paths:
        reported["by_path"] = str(described.by_path)
    if described.expander is not None:
        # Where it is behind its expander is told of the slot, not of the drive.
        reported["slot"] = str(described.slot)
    problems = list(mismatches(described, replace(seen.identity, identifiers=reported)))
    if seen.identity.size_bytes != described.size:
        problems.append(f"the size is described as {described.size} bytes, the drive has {seen.identity.size_bytes}")
    return problems


def _name_of(seen: SeenDrive, owner: Mapping[tuple[str, str], str]) -> str | None:
    """The described drive that was seen, by anything that no two drives share, its serial first; None for none."""
    named = unique_of(seen.identity.serial, seen.identity.identifiers)
    by_serial_first = sorted(named, key=lambda unique: (unique[0] != "serial", unique))
    return next((owner[unique] for unique in by_serial_first if unique in owner), None)
