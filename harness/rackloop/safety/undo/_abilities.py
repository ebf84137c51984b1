"""Fabric, PhyControl and PowerPort whose every act is in the undo journal before it is made."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import TypeVar

from rackloop.abilities import (
    Applied,
    Fabric,
    FabricFilter,
    LinkReset,
    LiveMap,
    PhyControl,
    PhyFilter,
    PortState,
    PowerPort,
    Staged,
    stager,
)
from rackloop.clock import Deadline
from rackloop.errors import NotSupported, StaleGeneration
from rackloop.portmap import Full, MapChange, inverse
from rackloop.record import acts
from rackloop.safety.undo._recorder import ActRecorder, IntendedAct

T = TypeVar("T")

SWITCH = "switch"
# What a FlexFabric says, too: a trigger of nothing.
_NOT_STAGED = -211


@dataclass(frozen=True)
class _Waiting:
    """A change that is journalled and staged, and the map it was computed on."""

    staged: Staged
    intended: IntendedAct
    change: MapChange
    live: LiveMap


class JournalledFabric(FabricFilter):
    """A Fabric whose acts can be undone. Safe to use from several threads: one change at a time.

    The map is read once and then known, because every change is executed only on the generation it was computed
    for; one that another controller overtook is computed again on a fresh map, unless the caller gave the map.
    """

    def __init__(self, fabric: Fabric, recorder: ActRecorder) -> None:
        super().__init__(fabric)
        self._recorder = recorder
        self._lock = Lock()
        self._known: LiveMap | None = None
        self._waiting: _Waiting | None = None
        self._newest: LiveMap | None = None
        self._prepared: dict[MapChange, IntendedAct] = {}

    def live_map(self, deadline: Deadline) -> LiveMap:
        """The live map, read from the switch."""
        with self._lock:
            self._known = self._newest = self._fabric.live_map(deadline)
            return self._known

    def prepare(self, change: MapChange, deadline: Deadline) -> None:
        """Announce and journal ``change`` ahead of the :meth:`stage` that follows, while others are made.

        Where the circuits that it takes away are others by then, that journals it anew. Raises as :meth:`stage` does.
        """
        live = self._newest or self.live_map(deadline)
        if change not in self._prepared:
            self._prepared[change] = self._intend(change, live, is_staged=True)

    def apply(self, change: MapChange, deadline: Deadline, *, on: LiveMap | None = None) -> Applied:
        """Make ``change``, having journalled what undoes it.

        Raises StaleGeneration, as the switch would, LinkKept for a drive that keeps its link.
        """
        return self._on_map(partial(self._apply, change, deadline), deadline, on)

    def stage(self, change: MapChange, deadline: Deadline, *, on: LiveMap | None = None) -> Staged:
        """Have the switch hold ``change`` ready, having journalled what will undo it. Raises as :meth:`apply` does.

        The journal's way to the disk is paid here, so that :meth:`trigger` costs the switch's own time. Others can
        use the switch meanwhile.
        """
        if on is None:
            self.prepare(change, deadline)
        return self._on_map(partial(self._stage, change, deadline), deadline, on)

    def trigger(self, staged: Staged, deadline: Deadline) -> Applied:
        """Execute what was staged. Raises StaleGeneration where it cannot be any more: stage it again.

        LeaseLost where the lease was found over since; nothing was done then.
        """
        with self._lock:
            waiting, self._waiting = self._waiting, None
            if waiting is None or waiting.staged is not staged:
                self._waiting = waiting
                raise StaleGeneration("another change was staged or made since this one: stage it again", _NOT_STAGED)
            trigger = partial(stager(self._fabric).trigger, staged, deadline)
            return self._make(waiting.intended, trigger, waiting.change, waiting.live)

    def forget_staged(self) -> None:
        """Withdraw from the journal what is staged or prepared and was not triggered, where anything is."""
        with self._lock:
            self._withdraw()
            while self._prepared:
                self._prepared.popitem()[1].withdraw("prepared, and never staged")

    def save_boot_map(self, deadline: Deadline) -> None:
        """Keep the live map as the power-on map, having journalled the one it replaces."""
        before = self._fabric.boot_map(deadline)
        self._recorder.perform(
            SWITCH, acts.SaveBootMap(), [acts.RestoreBootMap(before)], lambda: self._fabric.save_boot_map(deadline)
        )

    def _on_map(self, act: Callable[[LiveMap], T], deadline: Deadline, on: LiveMap | None) -> T:
        """Have ``act`` made on the map that is known, again on a fresh one where that was overtaken; or on ``on``."""
        with self._lock:
            self._withdraw()
            while True:
                live = on or self._known or self._fabric.live_map(deadline)
                if on is None:
                    self._known = self._newest = live
                try:
                    return act(live)
                except StaleGeneration:
                    self._known = None
                    if on is not None or deadline.is_over():
                        raise

    def _apply(self, change: MapChange, deadline: Deadline, live: LiveMap) -> Applied:
        apply = partial(self._fabric.apply, change, deadline, on=live)
        return self._make(self._intend(change, live), apply, change, live)

    def _stage(self, change: MapChange, deadline: Deadline, live: LiveMap) -> Staged:
        switch = stager(self._fabric)
        intended = self._ahead(change, live) or self._intend(change, live, is_staged=True)
        try:
            staged = switch.stage(change, deadline, on=live)
        except BaseException as error:
            # Whatever became of it, the live map is as it was.
            intended.withdraw(f"{type(error).__name__}: {error}")
            raise
        self._waiting = _Waiting(staged, intended, change, live)
        return staged

    def _withdraw(self) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting.intended.withdraw("staged, and never triggered")

    def _ahead(self, change: MapChange, live: LiveMap) -> IntendedAct | None:
        """The act of ``change`` where it was prepared, and takes the same circuits away on ``live`` as it did then."""
        intended = self._prepared.pop(change, None)
        if intended is not None and intended.entry.inverse != inverse(change, live.pairs):
            intended.withdraw("prepared, and the circuits were others when it was staged")
            return None
        return intended

    def _intend(self, change: MapChange, live: LiveMap, *, is_staged: bool = False) -> IntendedAct:
        if kept := self._recorder.kept_links:
            kept.require_map(live.pairs, change.after(live.pairs))
        act = acts.ChangeMap(change, live.generation, staged=is_staged or None)
        return self._recorder.intend(SWITCH, act, inverse(change, live.pairs))

    def _make(self, intended: IntendedAct, act: Callable[[], Applied], change: MapChange, live: LiveMap) -> Applied:
        self._known = None
        applied = intended.make(act, lambda done: {"generation": done.generation})
        if applied.generation == live.generation + 1:
            self._known = live.after(change)
            self._newest = self._known or self._newest
        return applied


class JournalledPhyControl(PhyFilter):
    """A PhyControl whose drops are waited out when they are undone: the signal comes back by itself.

    ``fabric`` tells which ports had a signal before; only these are waited for.
    """

    def __init__(self, phy: PhyControl, fabric: Fabric, recorder: ActRecorder) -> None:
        super().__init__(phy)
        self._fabric = fabric
        self._recorder = recorder

    def drop(self, ports: Collection[int], down_s: float, deadline: Deadline, *, request_id: int) -> None:
        """Take the signal away from ``ports`` for ``down_s``. Raises LinkKept for a drive that keeps its link."""
        act = acts.DropSignal(frozenset(ports), down_s * 1e3, request_id)
        self._disturb(
            ports, act, act.down_ms, deadline, lambda: self._phy.drop(ports, down_s, deadline, request_id=request_id)
        )

    def flap(
        self, ports: Collection[int], down_s: float, up_s: float, count: int, deadline: Deadline, *, request_id: int
    ) -> None:
        """Take the signal away from ``ports`` ``count`` times, ``up_s`` apart. Raises as :meth:`drop` does."""
        self._disturb(
            ports,
            acts.FlapSignal(frozenset(ports), down_s * 1e3, up_s * 1e3, count, request_id),
            (down_s + up_s) * count * 1e3,
            deadline,
            lambda: self._phy.flap(ports, down_s, up_s, count, deadline, request_id=request_id),
        )

    def reset_link(self, ports: Collection[int], deadline: Deadline, *, is_hard: bool = False) -> None:
        """Have ``ports`` train their links anew. Raises NotSupported where the PhyControl beneath cannot."""
        phy = self._phy
        if not isinstance(phy, LinkReset):
            raise NotSupported("nothing in this rack resets links without dropping them")
        act = acts.ResetLink(frozenset(ports), is_hard)
        self._disturb(ports, act, 0.0, deadline, lambda: phy.reset_link(ports, deadline, is_hard=is_hard))

    def _disturb(
        self, ports: Collection[int], act: acts.Act, lasts_ms: float, deadline: Deadline, make: Callable[[], None]
    ) -> None:
        """Make an act that takes the signal of ``ports`` away, whose inverse waits for those that have one now."""
        if kept := self._recorder.kept_links:
            kept.require_signal(ports, self._fabric.live_map(deadline).pairs)
        states = self._fabric.port_states(ports, deadline)
        lit = frozenset(port for port, state in states.items() if state is not PortState.DOWN)
        self._recorder.perform(SWITCH, act, [acts.SettleSignal(lit, lasts_ms)], make)


class JournalledPowerPort:
    """A PowerPort that can be given its state back. ``name`` is what the lab calls it.

    ``fabric`` is given where the port feeds the switch, whose live map goes with its power.
    """

    def __init__(self, port: PowerPort, name: str, recorder: ActRecorder, *, fabric: Fabric | None = None) -> None:
        self._port = port
        self._name = name
        self._recorder = recorder
        self._fabric = fabric

    def turn_on(self, deadline: Deadline) -> None:
        """Turn it on."""
        self._switch(deadline, on=True)

    def turn_off(self, deadline: Deadline) -> None:
        """Turn it off. Raises LinkKept where a drive that keeps its link would lose it."""
        if kept := self._recorder.kept_links:
            kept.require_power(self._name)
        self._switch(deadline, on=False)

    def is_on(self, deadline: Deadline) -> bool:
        """Whether it is on."""
        return self._port.is_on(deadline)

    def _switch(self, deadline: Deadline, *, on: bool) -> None:
        was_on = self._port.is_on(deadline)
        undo: list[acts.InverseAct] = [acts.RestorePower(was_on)]
        if self._fabric is not None and was_on:
            undo.append(Full(self._fabric.live_map(deadline).pairs))
        self._recorder.perform(
            self._name,
            acts.TurnOn() if on else acts.TurnOff(),
            undo,
            lambda: self._port.turn_on(deadline) if on else self._port.turn_off(deadline),
        )
