"""Complete disaggregation: a policy chooses, for each I/O, the server that does it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from rackloop.errors import RackloopError
from rackloop_models.disaggregation._placement import Move, Placement
from rackloop_models.disaggregation._shape import Place, Shape


class AllBusy(RackloopError):
    """Every server port works on an I/O; ask again when one is done."""


@dataclass(frozen=True)
class Slot:
    """A server port as a policy sees it: its drive, when it was last used, and the I/Os of its server so far."""

    place: Place
    drive: str | None
    used_s: float
    server_ios: int


class Policy(Protocol):
    """Chooses among the slots that work on no I/O; ``slots`` has one at least."""

    def choose(self, drive: str, slots: Sequence[Slot]) -> Slot: ...


class LeastRecentlyUsed:
    """Leaves a drive where it is; else gives it the port that is free, or was used longest ago."""

    def choose(self, drive: str, slots: Sequence[Slot]) -> Slot:
        """The slot for the next I/O on ``drive``."""
        return min(slots, key=lambda slot: (slot.drive != drive, slot.drive is not None, slot.used_s, slot.place))


class LeastWork:
    """Gives each I/O to the server that has done the fewest, wherever the drive is: load balancing per I/O."""

    def choose(self, drive: str, slots: Sequence[Slot]) -> Slot:
        """The slot for the next I/O on ``drive``."""
        return min(
            slots,
            key=lambda slot: (slot.server_ios, slot.drive != drive, slot.drive is not None, slot.used_s, slot.place),
        )


POLICIES: dict[str, type[LeastRecentlyUsed | LeastWork]] = {
    "least_recently_used": LeastRecentlyUsed,
    "least_work": LeastWork,
}


@dataclass(frozen=True)
class Assignment:
    """One I/O's place. ``move`` is None where the drive is there already, ``evicted`` the drive that has to leave."""

    io: int
    drive: str
    place: Place
    move: Move | None
    evicted: str | None


class PerIoController:
    """Places a drive for each I/O. A drive that works on one stays until it is :meth:`finished`.

    Raises AllBusy where no port can take the drive now: all work, or the drive itself does, at another place.
    """

    def __init__(self, shape: Shape, policy: Policy) -> None:
        self.placement = Placement(shape)
        self._policy = policy
        self._ios = 0
        self._working: set[Place] = set()
        self._used_s = dict.fromkeys(shape.places, 0.0)
        self._server_ios = dict.fromkeys(shape.servers, 0)

    def assign(self, drive: str, t_s: float) -> Assignment:
        """Choose for the next I/O on ``drive``, and take its place for it."""
        source = self.placement.place_of(drive)
        if source in self._working:
            raise AllBusy(f"drive {drive} works on another I/O")
        slots = [
            Slot(place, self.placement.drive_at(place), self._used_s[place], self._server_ios[place[0]])
            for place in self.placement.shape.places
            if place not in self._working
        ]
        if not slots:
            raise AllBusy("every server port works on an I/O")
        place = self._policy.choose(drive, slots).place
        move, evicted = None, None
        if place != source:
            evicted = self.placement.drive_at(place)
            if evicted is not None:
                self.placement.take(evicted)
            move = Move(drive, source, place)
            self.placement.make([move])
        self._working.add(place)
        self._used_s[place] = t_s
        self._server_ios[place[0]] += 1
        self._ios += 1
        return Assignment(self._ios, drive, place, move, evicted)

    def finished(self, assignment: Assignment) -> None:
        """The I/O is done: its drive may be moved."""
        self._working.discard(assignment.place)
