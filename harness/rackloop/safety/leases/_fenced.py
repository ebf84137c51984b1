"""The switch as several controllers share it: each act under a fencing token of its own.

The holder of the whole rack locks the switch once, with the token of its lease. Holders of parts share it: for each act
a holder waits for its turn, draws a token higher than all before, takes the lock with it, and gives both back. Where a
turn is not given back in time the next holder has it too: its token is higher, and the switch refuses the other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TypeVar

from rackloop.abilities import (
    Applied,
    Fabric,
    FabricFilter,
    HiddenPorts,
    LiveMap,
    PhyControl,
    PhyFilter,
    SignalRestorer,
    Staged,
    stager,
)
from rackloop.clock import Deadline
from rackloop.errors import BadInput, HigherToken, LabError, LockedOut, NotSupported, StaleGeneration
from rackloop.lab import Parts
from rackloop.portmap import MapChange
from rackloop.safety.leases._holding import HeldLease

T = TypeVar("T")


def fenced(fabric: Fabric, phy: PhyControl | None, held: HeldLease) -> tuple[Fabric, PhyControl | None]:
    """The switch for the holder of a part of the rack: its ports alone, each act locked for itself."""
    turns, parts = _Turns(fabric, held), held.parts
    own = HiddenPorts(fabric, lambda port: port not in parts.switch_ports, partial(_not_leased, parts), strict=True)
    return PerActLock(own, turns), None if phy is None else FencedPhyControl(phy, turns, parts)


class _Turns:
    """The turns of holders at one switch, each with the switch's lock for one act."""

    def __init__(self, fabric: Fabric, held: HeldLease) -> None:
        self._fabric = fabric
        self._held = held

    @contextmanager
    def turn(self, deadline: Deadline) -> Iterator[None]:
        leases = self._held.leases
        with leases.store.turn(leases.lab, deadline.remaining_s()) as is_mine:
            if not is_mine:
                raise LockedOut(
                    f"the switch of lab {leases.lab} was not free for this act in time: other leases act on it one "
                    "after the other; allow it more time, or lease the whole rack"
                )
            token = self._held.fresh_token()
            try:
                self._take_lock(token, deadline)
                yield
            finally:
                # A holder that was overtaken has nothing to give back.
                with suppress(LabError, NotSupported):
                    self._fabric.release_lock(token, deadline)

    def act(self, deadline: Deadline, act: Callable[[], T], *, is_repeated_when_stale: bool = False) -> T:
        """Have ``act`` made in a turn of its own at the switch, again where another holder came between."""
        while True:
            try:
                with self.turn(deadline):
                    return act()
            except LockedOut as error:
                if deadline.is_over() or isinstance(error, HigherToken):
                    raise
            except StaleGeneration:
                if not is_repeated_when_stale or deadline.is_over():
                    raise

    def _take_lock(self, token: int, deadline: Deadline) -> None:
        try:
            self._fabric.take_lock(token, deadline)
        except HigherToken as error:
            leases = self._held.leases
            if error.highest > leases.last_token():
                # No token of this store will do, however often another is asked for.
                raise unknown_token(error, leases.lab) from None
            raise LockedOut(str(error), error.code) from None


def unknown_token(error: HigherToken, lab: str) -> HigherToken:
    """The error for a switch that knows a higher token than the lab's store ever gave, with the remedy."""
    above = f" --above {error.highest}" if error.holder else ""
    return HigherToken(
        error.seen,
        f". The store of lab {lab} never gave that number: it replaced another store, or another leases the rack as "
        f"well. See that it is not in use, then run `rackloop heal {lab}{above}`, which goes above it",
        error.code,
        highest=error.highest,
        holder=error.holder,
    )


class PerActLock(FabricFilter):
    """A Fabric that takes the switch's lock for each act. Safe to use from several threads."""

    def __init__(self, fabric: Fabric, turns: _Turns) -> None:
        super().__init__(fabric)
        self._turns = turns

    def apply(self, change: MapChange, deadline: Deadline, *, on: LiveMap | None = None) -> Applied:
        """Make ``change`` under a lock of its own.

        Raises LeaseLost where the lease is over, StaleGeneration as the switch would, LockedOut where holders of
        higher tokens came between again and again until the deadline.
        """
        return self._turns.act(
            deadline, lambda: self._fabric.apply(change, deadline, on=on), is_repeated_when_stale=on is None
        )

    def stage(self, change: MapChange, deadline: Deadline, *, on: LiveMap | None = None) -> Staged:
        """Stage ``change``; any act of another lease makes it stale. Raises as :meth:`apply` does, and NotSupported."""
        switch = stager(self._fabric)
        return self._turns.act(
            deadline, lambda: switch.stage(change, deadline, on=on), is_repeated_when_stale=on is None
        )

    def trigger(self, staged: Staged, deadline: Deadline) -> Applied:
        """Execute what was staged. Raises StaleGeneration where another lease's act came between: stage it again."""
        return self._turns.act(deadline, partial(super().trigger, staged, deadline))

    def take_lock(self, token: int, deadline: Deadline) -> None:  # noqa: ARG002 - Fabric's own shape
        """Refused: each act takes the lock for itself."""
        raise _belongs_to_all("its lock, which each act takes for itself")

    def release_lock(self, token: int, deadline: Deadline) -> None:
        """Nothing is held between acts."""

    def save_boot_map(self, deadline: Deadline) -> None:  # noqa: ARG002 - Fabric's own shape
        """Refused: the power-on map belongs to all leases."""
        raise _belongs_to_all("its power-on map")


class FencedPhyControl(PhyFilter):
    """A PhyControl of the leased ports, each act under a lock of its own."""

    def __init__(self, phy: PhyControl, turns: _Turns, parts: Parts) -> None:
        super().__init__(phy)
        self._turns = turns
        self._parts = parts

    def restore(self, ports: Collection[int], deadline: Deadline) -> None:
        """End drops and flaps of ``ports`` early, where the PHYs beneath can; else they end by themselves."""
        if isinstance(self._phy, SignalRestorer):
            self._act(ports, deadline, partial(self._phy.restore, ports, deadline))

    def _act(self, ports: Collection[int], deadline: Deadline, act: Callable[[], None]) -> None:
        if others := sorted(frozenset(ports) - self._parts.switch_ports):
            raise _not_leased(self._parts, others)
        # Repeating one does nothing: it has an id of its own, or ends what has ended.
        self._turns.act(deadline, act)


def _not_leased(parts: Parts, ports: list[int]) -> BadInput:
    return BadInput(
        f"ports {', '.join(map(str, ports))} are not in the lease, which has {parts}; lease them too, or leave them"
    )


def _belongs_to_all(what: str) -> NotSupported:
    return NotSupported(f"the switch is shared with other leases, and {what} with it; lease the whole rack")
