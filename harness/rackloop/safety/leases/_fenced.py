"""Several controllers at one switch: each act under a fencing token of its own.

Whoever has the whole rack locks the switch once, with the token of its lease. Holders of parts share it: for each act
one takes its turn, in the order in which they ask, a token that is higher than all before, and with it the lock, and
gives both back. Where a turn is not given back in time the next has it too: its token is the higher one, and the switch
refuses the other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from rackloop.abilities import (
    Applied,
    BoxIdentity,
    Fabric,
    LiveMap,
    PhyControl,
    PortState,
    SignalRestorer,
    Staged,
    stager,
)
from rackloop.clock import Deadline
from rackloop.errors import BadInput, HigherToken, LabError, LockedOut, NotSupported, StaleGeneration
from rackloop.lab import Parts
from rackloop.portmap import Full, MapChange, Open, PortMap, disturbed_ports
from rackloop.safety.leases._holding import HeldLease

T = TypeVar("T")


def fenced(fabric: Fabric, phy: PhyControl | None, held: HeldLease) -> tuple[FencedFabric, FencedPhyControl | None]:
    """The switch as the holder of a part of the rack has it: its ports alone, each act locked for itself."""
    turns = _Turns(fabric, held)
    return FencedFabric(fabric, turns, held.parts), None if phy is None else FencedPhyControl(phy, turns, held.parts)


class _Turns:
    """Gives the switch's lock for one act."""

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
                # One that was overtaken has nothing to give back.
                with suppress(LabError, NotSupported):
                    self._fabric.release_lock(token, deadline)

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
    """The refusal of every token of a lab's store, with what to do about it."""
    above = f" --above {error.highest}" if error.holder else ""
    return HigherToken(
        error.seen,
        f". The store of lab {lab} never gave that number: it replaced another store, or another leases the rack as "
        f"well. See that nobody works on it, then run `rackloop heal {lab}{above}`, which goes above it",
        error.code,
        highest=error.highest,
        holder=error.holder,
    )


class FencedFabric:
    """A Fabric of some ports: the rest of the map is neither seen nor changed. Safe to use from several threads."""

    def __init__(self, fabric: Fabric, turns: _Turns, parts: Parts) -> None:
        self._fabric = fabric
        self._turns = turns
        self._parts = parts

    def identify(self, deadline: Deadline) -> BoxIdentity:
        """Who the switch says it is."""
        return self._fabric.identify(deadline)

    def port_count(self, deadline: Deadline) -> int:
        """How many ports it has, all of them."""
        return self._fabric.port_count(deadline)

    def live_map(self, deadline: Deadline) -> LiveMap:
        """The circuits between ports of the slice; the generation is the switch's, and grows by others' acts too."""
        live = self._fabric.live_map(deadline)
        return LiveMap(live.generation, self._of_mine(live.pairs))

    def apply(self, change: MapChange, deadline: Deadline, *, if_generation: int | None = None) -> Applied:
        """Make ``change`` on the ports of the slice; a full map is one of these ports.

        Raises BadInput for a port outside the slice, LeaseLost where the lease is over, StaleGeneration as the switch
        would, LockedOut where somebody with a higher token came between again and again until the deadline.
        """
        self._require_named(change)

        def apply() -> Applied:
            wanted, generation = self._of_whole(change, deadline, if_generation)
            return self._fabric.apply(wanted, deadline, if_generation=generation)

        return self._act(deadline, apply, is_repeated_when_stale=if_generation is None)

    def stage(self, change: MapChange, deadline: Deadline, *, if_generation: int | None = None) -> Staged:
        """Stage ``change`` as :meth:`apply` would make it; any act of another lease makes it stale.

        Raises as :meth:`apply` does, NotSupported where the switch takes no map ahead.
        """
        self._require_named(change)
        switch = stager(self._fabric)

        def stage() -> Staged:
            wanted, generation = self._of_whole(change, deadline, if_generation)
            return switch.stage(wanted, deadline, if_generation=generation)

        return self._act(deadline, stage, is_repeated_when_stale=if_generation is None)

    def trigger(self, staged: Staged, deadline: Deadline) -> Applied:
        """Execute what was staged. Raises StaleGeneration where another lease's act came between: stage it again."""
        switch = stager(self._fabric)
        return self._act(deadline, lambda: switch.trigger(staged, deadline), is_repeated_when_stale=False)

    def _act(self, deadline: Deadline, act: Callable[[], T], *, is_repeated_when_stale: bool) -> T:
        """Have ``act`` made in a turn of its own at the switch, again where somebody came between."""
        while True:
            try:
                with self._turns.turn(deadline):
                    return act()
            except LockedOut as error:
                if deadline.is_over() or isinstance(error, HigherToken):
                    raise
            except StaleGeneration:
                if not is_repeated_when_stale or deadline.is_over():
                    raise

    def _of_whole(self, change: MapChange, deadline: Deadline, if_generation: int | None) -> tuple[MapChange, int]:
        """``change`` as it is to be made on the whole switch, and the generation of the map that says so."""
        live = self._fabric.live_map(deadline)
        live.require(if_generation)
        wanted = change
        if isinstance(change, Full):
            wanted = Full(PortMap.of((*live.pairs.without(self._parts.switch_ports), *change.pairs)))
        self._require_mine(disturbed_ports(live.pairs, wanted.after(live.pairs)))
        return wanted, live.generation

    def port_states(self, ports: Collection[int], deadline: Deadline) -> dict[int, PortState]:
        """What the switch sees on ``ports``."""
        return self._fabric.port_states(ports, deadline)

    def take_lock(self, token: int, deadline: Deadline) -> None:  # noqa: ARG002 - Fabric's own shape
        """Refused: each act takes the lock for itself."""
        raise _belongs_to_all("its lock, which each act takes for itself")

    def release_lock(self, token: int, deadline: Deadline) -> None:
        """Nothing is held between acts."""

    def save_boot_map(self, deadline: Deadline) -> None:  # noqa: ARG002 - Fabric's own shape
        """Refused: the power-on map is everybody's."""
        raise _belongs_to_all("its power-on map")

    def boot_map(self, deadline: Deadline) -> PortMap:
        """The power-on map between ports of the slice."""
        return self._of_mine(self._fabric.boot_map(deadline))

    def close(self) -> None:
        """Close the fabric beneath."""
        self._fabric.close()

    def _of_mine(self, pairs: PortMap) -> PortMap:
        return PortMap.of(pair for pair in pairs if self._parts.switch_ports.issuperset(pair))

    def _require_named(self, change: MapChange) -> None:
        self._require_mine(change.ports if isinstance(change, Open) else change.pairs.ports())

    def _require_mine(self, ports: Collection[int]) -> None:
        _require_mine(self._parts, ports)


class FencedPhyControl:
    """A PhyControl of some ports."""

    def __init__(self, phy: PhyControl, turns: _Turns, parts: Parts) -> None:
        self._phy = phy
        self._turns = turns
        self._parts = parts

    def drop(self, ports: Collection[int], down_s: float, deadline: Deadline, *, request_id: int) -> None:
        """Take the signal away from ``ports``. Raises BadInput for one outside the slice."""
        self._act(ports, deadline, lambda: self._phy.drop(ports, down_s, deadline, request_id=request_id))

    def flap(
        self,
        ports: Collection[int],
        down_s: float,
        up_s: float,
        count: int,
        deadline: Deadline,
        *,
        request_id: int,
    ) -> None:
        """Take the signal away from ``ports`` again and again. Raises BadInput for one outside the slice."""
        self._act(ports, deadline, lambda: self._phy.flap(ports, down_s, up_s, count, deadline, request_id=request_id))

    def restore(self, ports: Collection[int], deadline: Deadline) -> None:
        """End drops and flaps of ``ports`` early, where the PHYs beneath can; else they end by themselves."""
        if isinstance(self._phy, SignalRestorer):
            phy = self._phy
            self._act(ports, deadline, lambda: phy.restore(ports, deadline))

    def drop_counts(self, ports: Collection[int], deadline: Deadline) -> dict[int, int]:
        """Drops seen on each port."""
        return self._phy.drop_counts(ports, deadline)

    def _act(self, ports: Collection[int], deadline: Deadline, act: Callable[[], None]) -> None:
        _require_mine(self._parts, ports)
        while True:
            # Repeating one does nothing: it has an id of its own, or ends what has ended.
            try:
                with self._turns.turn(deadline):
                    return act()
            except LockedOut as error:
                if deadline.is_over() or isinstance(error, HigherToken):
                    raise


def _require_mine(parts: Parts, ports: Collection[int]) -> None:
    others = sorted(frozenset(ports) - parts.switch_ports)
    if others:
        raise BadInput(
            f"ports {', '.join(map(str, others))} are not in the lease, which has {parts}; "
            "lease them too, or leave them"
        )


def _belongs_to_all(what: str) -> NotSupported:
    return NotSupported(f"the switch is shared with other leases, and {what} with it; lease the whole rack")
