"""The history of a rack, for the rules of a design. Times are seconds on one clock."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeVar

Pairs = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Mapped:
    """A drive (or an expander) was joined to a server port."""

    t_s: float
    drive: str
    server: str
    port: str


@dataclass(frozen=True)
class Unmapped:
    """A drive was taken from its server, to go to another."""

    t_s: float
    drive: str
    server: str


@dataclass(frozen=True)
class Chosen:
    """The policy chose, for one I/O, the server that does it."""

    t_s: float
    io: int
    drive: str
    server: str


@dataclass(frozen=True)
class Located:
    """The rack-local service was asked for a drive's server; None where it was moving."""

    t_s: float
    drive: str
    server: str | None


@dataclass(frozen=True)
class Erred:
    """A request that ``server``, which it went to at ``asked_s``, answered with an error at ``answered_s``."""

    asked_s: float
    answered_s: float
    server: str
    why: str


@dataclass(frozen=True)
class Io:
    """One I/O of a client. ``record`` names what was written or read, ``crc`` its content; ``ok`` is its outcome.

    One that ``gave_up`` was not done in the time that its client had for it.

    ``io`` numbers it where a policy chose for it. ``server`` is the one that answered, ``asked_s`` the moment at which
    the request that it answered went to it, later than ``began_s`` where others were tried before or a drive had to
    come first. ``errors`` are the requests of it that were answered with an error, whatever became of it afterwards;
    those that were not answered are not among them.
    """

    began_s: float
    ended_s: float
    drive: str
    server: str
    is_write: bool
    record: str
    crc: int
    ok: bool
    asked_s: float
    io: int | None = None
    gave_up: bool = False
    errors: tuple[Erred, ...] = ()


@dataclass(frozen=True)
class Need:
    """The load from a moment on: 1 is the most that all servers together can do."""

    t_s: float
    load: float


@dataclass(frozen=True)
class Active:
    """These servers have drives from now on; the others may do something else."""

    t_s: float
    servers: frozenset[str]


@dataclass(frozen=True)
class ServerFailed:
    """A server stopped answering. What made it fail may have begun before that, at ``began_s``."""

    t_s: float
    server: str
    began_s: float = math.inf


@dataclass(frozen=True)
class ServerRecovered:
    """A server that had failed answers again."""

    t_s: float
    server: str


@dataclass(frozen=True)
class DriveFailed:
    """A drive is given up; its place is free for a spare. What made it fail may have begun before, at ``began_s``."""

    t_s: float
    drive: str
    began_s: float = math.inf


@dataclass(frozen=True)
class Announced:
    """A server told the name service which blocks are on a drive that it has."""

    t_s: float
    server: str
    drive: str
    blocks: frozenset[str]


@dataclass(frozen=True)
class Reconfiguring:
    """A reconfiguration began (``is_on``) or ended; ``name`` is the configuration that comes of it."""

    t_s: float
    name: str
    is_on: bool


@dataclass(frozen=True)
class PowerCycled:
    """Power was cut and came back; the live maps before and after."""

    t_s: float
    what: str
    before: Pairs
    after: Pairs


@dataclass(frozen=True)
class Wiped:
    """A drive was erased, by which method, and whether it read back erased."""

    t_s: float
    drive: str
    method: str
    is_clean: bool


Event = (
    Mapped
    | Unmapped
    | Chosen
    | Located
    | Io
    | Need
    | Active
    | ServerFailed
    | ServerRecovered
    | DriveFailed
    | Announced
    | Reconfiguring
    | PowerCycled
    | Wiped
)
E = TypeVar("E")


@dataclass(frozen=True)
class Stay:
    """A drive at a server, from ``since_s`` until ``until_s`` (infinity where it stayed)."""

    drive: str
    server: str
    port: str
    since_s: float
    until_s: float

    def meets(self, began_s: float, ended_s: float) -> bool:
        """Whether any of this stay lies between two moments, both included."""
        return self.since_s <= ended_s and began_s <= self.until_s


class History:
    """Events in the order in which they were noted. Threads may note at once."""

    def __init__(self, events: list[Event] | None = None) -> None:
        self.events: list[Event] = events or []

    def note(self, event: Event) -> None:
        """Add an event."""
        self.events.append(event)

    def of(self, kind: type[E]) -> list[E]:
        """The events of one kind."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def ends_s(self) -> float:
        """The last moment of which anything is known."""
        ends = [event.ended_s if isinstance(event, Io) else event.t_s for event in self.events]
        return max(ends, default=0.0)

    def stays(self) -> list[Stay]:
        """Every stay of every drive at a server, by when it began. A failed drive stays no longer."""
        open_stays: dict[str, Mapped] = {}
        stays: list[Stay] = []

        def leave(drive: str, t_s: float) -> None:
            if (began := open_stays.pop(drive, None)) is not None:
                stays.append(Stay(drive, began.server, began.port, began.t_s, t_s))

        for event in self.events:
            match event:
                case Mapped():
                    leave(event.drive, event.t_s)
                    open_stays[event.drive] = event
                case Unmapped() | DriveFailed():
                    leave(event.drive, event.t_s)
        for drive in list(open_stays):
            leave(drive, math.inf)
        return sorted(stays, key=lambda stay: stay.since_s)
