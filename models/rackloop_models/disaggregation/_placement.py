"""The placement of drives at server ports, and moves between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rackloop_models.disaggregation._shape import Place, Shape


@dataclass(frozen=True)
class Move:
    """A drive that goes to a place; ``source`` is where it was, None for one that was nowhere."""

    drive: str
    source: Place | None
    target: Place


class Placement:
    """The places of drives in a shape: a drive has one place at most, and a place one drive.

    Methods that change it raise ValueError where that would no longer hold.
    """

    def __init__(self, shape: Shape, at: Mapping[str, Place] | None = None) -> None:
        self.shape = shape
        self._at: dict[str, Place] = {}
        self._drive_at: dict[Place, str] = {}
        for drive, place in (at or {}).items():
            self.put(drive, place)

    @property
    def at(self) -> dict[str, Place]:
        """The place of each drive that has one."""
        return dict(self._at)

    def place_of(self, drive: str) -> Place | None:
        """The place of a drive."""
        return self._at.get(drive)

    def drive_at(self, place: Place) -> str | None:
        """The drive that is there."""
        return self._drive_at.get(place)

    def drives_of(self, server: str) -> list[str]:
        """The drives of a server, in the order of its ports."""
        found = (self._drive_at.get((server, port)) for port in self.shape.ports)
        return [drive for drive in found if drive is not None]

    def free(self, server: str) -> list[Place]:
        """The places of a server that have no drive."""
        return [(server, port) for port in self.shape.ports if (server, port) not in self._drive_at]

    def put(self, drive: str, place: Place) -> None:
        """Have a drive that is nowhere be at a place that is free."""
        if drive in self._at or place in self._drive_at:
            raise ValueError(f"{drive} cannot come to {'.'.join(place)}: one of them is taken")
        if place not in self.shape.places:
            raise ValueError(f"{'.'.join(place)} is no place of this shape")
        self._at[drive] = place
        self._drive_at[place] = drive

    def take(self, drive: str) -> Place | None:
        """Have a drive be nowhere; where it was."""
        place = self._at.pop(drive, None)
        if place is not None:
            del self._drive_at[place]
        return place

    def make(self, moves: Iterable[Move]) -> None:
        """Make all of these moves as one: every drive leaves before any comes."""
        moves = list(moves)
        for move in moves:
            if self.take(move.drive) != move.source:
                raise ValueError(f"{move.drive} was not at {move.source}")
        for move in moves:
            self.put(move.drive, move.target)


def dealt(shape: Shape, servers: Iterable[str] | None = None) -> Placement:
    """The drives of a shape dealt evenly to these servers, all of them by default, spares left out."""
    chosen = list(shape.servers if servers is None else servers)
    places = [(server, port) for port in shape.ports for server in chosen]
    return Placement(shape, dict(zip(shape.drives, places, strict=False)))
