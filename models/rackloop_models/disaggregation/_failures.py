"""Failure disaggregation: a spare for a drive, and other servers for the drives of one that failed."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from rackloop.errors import RackloopError
from rackloop_models.disaggregation._elastic import balanced
from rackloop_models.disaggregation._placement import Move, dealt
from rackloop_models.disaggregation._shape import Shape


class Redistribution(StrEnum):
    """The new place of a failed server's drives: to one survivor, or to all of them evenly."""

    ONE = "one"
    SPREAD = "spread"


class CapacityGone(RackloopError):
    """The ports of the servers that are left do not suffice for the drives, or no spare is left."""


class FailureController:
    """Says which drives go where when something failed. Each server has k/2 drives at first."""

    def __init__(self, shape: Shape, policy: Redistribution) -> None:
        self.shape = shape
        self.policy = policy
        self.placement = dealt(shape)
        self.up = list(shape.servers)
        self.spares = list(shape.spares)

    def server_failed(self, server: str) -> list[Move]:
        """The moves that give its drives to survivors. Raises CapacityGone where they have not the ports for it."""
        if server not in self.up:
            return []
        self.up.remove(server)
        orphans = self.placement.drives_of(server)
        room = {other: len(self.placement.free(other)) for other in self.up}
        if sum(room.values()) < len(orphans):
            raise CapacityGone(
                f"{len(orphans)} drives of {server} need as many ports, {len(self.up)} servers have "
                f"{sum(room.values())} free: more than half of the servers are gone"
            )
        if self.policy is Redistribution.ONE:
            takers = _fewest(room, len(orphans))
        else:
            takers = _evenly({other: len(self.placement.drives_of(other)) for other in self.up}, room, len(orphans))
        free = {other: iter(self.placement.free(other)) for other in self.up}
        moves = [
            Move(drive, self.placement.place_of(drive), next(free[taker]))
            for drive, taker in zip(orphans, takers, strict=True)
        ]
        self.placement.make(moves)
        return moves

    def server_back(self, server: str) -> list[Move]:
        """The moves that give a server that answers again its share of the drives."""
        if server in self.up:
            return []
        self.up = [name for name in self.shape.servers if name in {*self.up, server}]
        moves = balanced(self.placement, self.up)
        self.placement.make(moves)
        return moves

    def drive_failed(self, drive: str) -> Move:
        """The spare that takes the place of a drive. Raises CapacityGone where none is left."""
        place = self.placement.take(drive)
        if place is None:
            raise ValueError(f"drive {drive} is at no server")
        if not self.spares:
            raise CapacityGone(f"drive {drive} failed and no spare is left")
        move = Move(self.spares.pop(0), None, place)
        self.placement.make([move])
        return move


def _fewest(room: dict[str, int], count: int) -> list[str]:
    """As few servers as there can be with room for ``count``: the one with the least that suffices, else the most."""
    takers: list[str] = []
    while count:
        enough = [name for name, free in room.items() if free >= count]
        taker = min(enough, key=lambda name: room[name]) if enough else max(room, key=lambda name: room[name])
        taken = min(count, room.pop(taker))
        takers += [taker] * taken
        count -= taken
    return takers


def _evenly(drives: dict[str, int], room: dict[str, int], count: int) -> list[str]:
    """One after the other to the server that was given the fewest so far, and of those to the one with the fewest."""
    given = dict.fromkeys(drives, 0)
    takers: list[str] = []
    for _ in range(count):
        open_to = [name for name in drives if given[name] < room[name]]
        taker = min(open_to, key=lambda name: (given[name], drives[name]))
        given[taker] += 1
        takers.append(taker)
    return takers


class Heartbeats:
    """Gives a server up that was not heard of for ``patience_s`` and did not answer ``misses`` questions in a row.

    Silence alone is not enough: a member that could not listen for a while hears none, and has asked in vain once at
    most. Times are the caller's.
    """

    def __init__(self, servers: Iterable[str], patience_s: float, now_s: float, *, misses: int = 2) -> None:
        self._patience_s = patience_s
        self._misses = misses
        self._heard_s = dict.fromkeys(servers, now_s)
        self._missed = dict.fromkeys(self._heard_s, 0)

    def heard(self, server: str, t_s: float) -> None:
        """The server answered at ``t_s``."""
        self._heard_s[server] = max(t_s, self._heard_s.get(server, t_s))
        self._missed[server] = 0

    def missed(self, server: str) -> None:
        """The server was asked, and did not answer."""
        self._missed[server] = self._missed.get(server, 0) + 1

    def lost(self, now_s: float) -> list[str]:
        """The servers that are given up, each once."""
        gone = [
            server
            for server, heard_s in self._heard_s.items()
            if now_s - heard_s >= self._patience_s and self._missed[server] >= self._misses
        ]
        for server in gone:
            del self._heard_s[server]
        return gone
