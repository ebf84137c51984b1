"""The recovery from a failed server: other servers take its drives through the fabric, or spares are rebuilt."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from rackloop_models.disaggregation import CapacityGone, FailureController, Move, Redistribution, Shape


class ServerLoss(StrEnum):
    """``MOVE``: its drives are well, so survivors take them. ``REBUILD``: what was on them is written to spares."""

    MOVE = "move"
    REBUILD = "rebuild"


@dataclass(frozen=True)
class Recovery:
    """The way to make a store whole again: drives that change places, and the moves of spares for lost ones."""

    moves: tuple[Move, ...] = ()
    spares: tuple[tuple[str, Move], ...] = ()


class RecoveryController:
    """Says what becomes of drives when servers and drives of the failure design fail, by either policy.

    It starts with nk/2 drives, dealt to the servers, and the shape's spares at none.
    """

    def __init__(
        self, shape: Shape, policy: ServerLoss, redistribution: Redistribution = Redistribution.SPREAD
    ) -> None:
        self.policy = policy
        self._failures = FailureController(shape, redistribution)

    @property
    def at(self) -> dict[str, tuple[str, str]]:
        """The server and port of each drive that has one."""
        return self._failures.placement.at

    @property
    def spares(self) -> list[str]:
        """The drives that wait for another to fail."""
        return list(self._failures.spares)

    def drives_of(self, server: str) -> list[str]:
        """The drives at a server."""
        return self._failures.placement.drives_of(server)

    def server_failed(self, server: str) -> Recovery:
        """The recovery for its drives. Raises CapacityGone: no ports are free for them, or too few spares are left."""
        if self.policy is ServerLoss.MOVE:
            return Recovery(moves=tuple(self._failures.server_failed(server)))
        placement, controller = self._failures.placement, self._failures
        lost = placement.drives_of(server)
        left = [name for name in controller.up if name != server]
        room = sum(len(placement.free(name)) for name in left)
        if len(controller.spares) < len(lost) or room < len(lost):
            raise CapacityGone(
                f"{len(lost)} drives of {server} want as many spares at other servers, {len(controller.spares)} are "
                f"left, and the servers have {room} free ports"
            )
        controller.up = left
        spares = []
        for drive in lost:
            placement.take(drive)
            taker = min(
                (name for name in left if placement.free(name)), key=lambda name: len(placement.drives_of(name))
            )
            move = Move(controller.spares.pop(0), None, placement.free(taker)[0])
            placement.make([move])
            spares.append((drive, move))
        return Recovery(spares=tuple(spares))

    def drive_failed(self, drive: str) -> Recovery:
        """The spare that takes a drive's place. Raises CapacityGone where none is left."""
        return Recovery(spares=((drive, self._failures.drive_failed(drive)),))
