"""Dynamic elastic disaggregation: as many servers as the load needs, and not a new number at every moment."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rackloop_models.disaggregation._history import Active, History, Mapped, Need, Unmapped
from rackloop_models.disaggregation._load import Load
from rackloop_models.disaggregation._placement import Move, Placement, dealt
from rackloop_models.disaggregation._shape import Shape


@dataclass(frozen=True)
class Damping:
    """``headroom`` is how much more than the load the servers must carry, 1.2 for a fifth.

    Servers are added at once. They are let go only after ``hold_s`` seconds, both of needing fewer and since the last
    change: a load that swings faster than that moves nothing.
    """

    headroom: float = 1.2
    hold_s: float = 1800.0


def servers_needed(shape: Shape, share: float, headroom: float) -> int:
    """The number of servers for this share of what all of them can do; never fewer than have ports for all drives."""
    least = math.ceil(len(shape.drives) / shape.k)
    return max(least, min(shape.n, math.ceil(share * headroom * shape.n - 1e-9)))


class ElasticController:
    """Says which drives move as the load changes. All drives are dealt evenly to all servers at first."""

    def __init__(self, shape: Shape, damping: Damping) -> None:
        self.shape = shape
        self.placement = dealt(shape)
        self.active = list(shape.servers)
        self._damping = damping
        self._changed_s = -math.inf
        self._fewer_since_s: float | None = None

    def observe(self, load: Load) -> list[Move]:
        """The moves to make now, as few as there can be; the placement is as it is after them."""
        needed = servers_needed(self.shape, load.share, self._damping.headroom)
        if needed >= len(self.active):
            self._fewer_since_s = None
        elif self._fewer_since_s is None:
            self._fewer_since_s = load.t_s
        if needed == len(self.active) or (needed < len(self.active) and not self._may_shrink(load.t_s)):
            return []
        self._changed_s = load.t_s
        self._fewer_since_s = None
        self.active = self._chosen(needed)
        moves = balanced(self.placement, self.active)
        self.placement.make(moves)
        return moves

    def _may_shrink(self, t_s: float) -> bool:
        fewer_since_s = t_s if self._fewer_since_s is None else self._fewer_since_s
        return t_s - max(fewer_since_s, self._changed_s) >= self._damping.hold_s

    def _chosen(self, count: int) -> list[str]:
        """The servers to keep: those with the most drives, in the order of the shape, then others."""
        by_drives = sorted(
            self.shape.servers, key=lambda server: (server not in self.active, -len(self.placement.drives_of(server)))
        )
        kept = set(by_drives[:count])
        return [server for server in self.shape.servers if server in kept]


def balanced(placement: Placement, active: Sequence[str]) -> list[Move]:
    """The fewest moves after which only ``active`` servers have drives, and none two more than another."""
    counts = {server: len(placement.drives_of(server)) for server in active}
    total = len(placement.at)
    share, extra = divmod(total, len(active))
    fullest = sorted(active, key=lambda server: -counts[server])
    quota = {server: share + (position < extra) for position, server in enumerate(fullest)}
    leaving = [drive for drive, (server, _) in placement.at.items() if server not in quota]
    for server in active:
        leaving += placement.drives_of(server)[quota[server] :]
    free = [place for server in active for place in placement.free(server)[: max(0, quota[server] - counts[server])]]
    return [Move(drive, placement.place_of(drive), place) for drive, place in zip(leaving, free, strict=True)]


def simulate(shape: Shape, loads: Sequence[Load], damping: Damping, *, move_s: float) -> History:
    """The history of a rack in virtual time under these loads, each move taking ``move_s``."""
    controller, history = ElasticController(shape, damping), History()
    begins_s = loads[0].t_s if loads else 0.0
    for drive, (server, port) in controller.placement.at.items():
        history.note(Mapped(begins_s, drive, server, port))
    history.note(Active(begins_s, frozenset(controller.active)))
    for load in loads:
        history.note(Need(load.t_s, load.share))
        before = controller.active
        moves = controller.observe(load)
        for move in moves:
            assert move.source is not None  # noqa: S101 - every drive is somewhere in this design
            history.note(Unmapped(load.t_s, move.drive, move.source[0]))
        for move in moves:
            history.note(Mapped(load.t_s + move_s, move.drive, *move.target))
        if controller.active != before:
            history.note(Active(load.t_s, frozenset(controller.active)))
    return history


@dataclass(frozen=True)
class Savings:
    """The result of elasticity: hours in which servers had no drives, as hours and as a share of all, and moves."""

    server_hours_saved: float
    share_saved: float
    migrations_per_hour: float


def savings(shape: Shape, history: History) -> Savings:
    """The savings of a history, from its first to its last need. Raises ValueError where there is no time between."""
    needs = history.of(Need)
    begins_s, ends_s = needs[0].t_s, needs[-1].t_s
    if ends_s <= begins_s:
        raise ValueError("one moment of load is no time in which servers could be saved")
    hours = (ends_s - begins_s) / 3600
    changes = [change for change in history.of(Active) if change.t_s <= ends_s]
    idle_s = 0.0
    for change, until_s in zip(changes, [*(later.t_s for later in changes[1:]), ends_s], strict=True):
        idle_s += (shape.n - len(change.servers)) * (until_s - max(begins_s, change.t_s))
    moves = len(history.of(Unmapped))
    return Savings(idle_s / 3600, idle_s / (shape.n * (ends_s - begins_s)), moves / hours)
