"""The power of a simulated rack, for the peers of its controllers and PDUs.

What feeds what: an outlet feeds a chassis, the chassis feeds the server. The server has power while both are on;
who really switches it is a :class:`PowerSwitching`, in a mock rack rackd.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from typing import Protocol

from rackloop.clock import Clock
from rackloop_drivers.boxes._serial_line import SerialLine

PowerListener = Callable[[str, bool], None]
_LOG_ENTRIES = 4096
_FIFO_S = 0.02


class PowerSwitching(Protocol):
    """Switches the power of targets such as ``server:srv1``, and knows whether they have it."""

    async def set(self, target: str, *, on: bool) -> None:
        """Switch; done, and every listener told, when this returns. To the state it is in is no change."""
        ...

    async def is_on(self, target: str) -> bool:
        """Whether the target has power now."""
        ...

    def follow(self, listener: PowerListener) -> None:
        """Have ``listener(target, on)`` called on the event loop at each change."""
        ...


class MemorySwitching:
    """A :class:`PowerSwitching` that keeps the states in memory; everything is on at first."""

    def __init__(self) -> None:
        self._off: set[str] = set()
        self._listeners: list[PowerListener] = []

    async def set(self, target: str, *, on: bool) -> None:
        """Store the state."""
        if on == (target not in self._off):
            return
        (self._off.discard if on else self._off.add)(target)
        for listener in self._listeners:
            listener(target, on)

    async def is_on(self, target: str) -> bool:
        """True where it was turned on last."""
        return target not in self._off

    def follow(self, listener: PowerListener) -> None:
        """Add a listener."""
        self._listeners.append(listener)


class EventKind(Enum):
    """A kind of event that a management controller notes."""

    POWER_ON = auto()
    POWER_OFF = auto()
    AC_LOST = auto()
    SHUTDOWN = auto()
    INTERRUPT = auto()
    LOG_CLEARED = auto()


@dataclass(frozen=True)
class LoggedEvent:
    """An entry of a simulated event log; ``number`` counts from 1 and is never given again."""

    number: int
    at: datetime
    kind: EventKind


class Chassis:
    """A server's chassis: its power, its event log, its serial line, and whether anything feeds it.

    Without feed the controller is dead as well. When the feed returns, the server is as it was when it went. Any
    other box that an outlet feeds is a ``target`` of its own.
    """

    def __init__(self, server: str, switching: PowerSwitching, clock: Clock, target: str | None = None) -> None:
        self.server = server
        self.is_fed = True
        self.line = SerialLine(_FIFO_S)
        self.events: list[LoggedEvent] = []
        self._target = target or f"server:{server}"
        self._switching = switching
        self._clock = clock
        self._numbered = 0
        self._was_on = True
        self._feed_listeners: list[Callable[[bool], Awaitable[None]]] = []
        self.on_interrupt: Callable[[], object] = lambda: None
        switching.follow(self._note_power)

    def now(self) -> datetime:
        """The controller's clock."""
        return self._clock.wall()

    async def is_on(self) -> bool:
        """Whether the server has power."""
        return await self._switching.is_on(self._target)

    async def turn_on(self) -> None:
        """Press the button of a server that is off."""
        await self._switching.set(self._target, on=True)

    async def turn_off(self) -> None:
        """Cut the power at once."""
        await self._switching.set(self._target, on=False)

    async def cycle(self) -> None:
        """Off and on again; what is off stays off."""
        if await self.is_on():
            await self.turn_off()
            await self.turn_on()

    async def shut_down(self) -> None:
        """Ask the operating system, which obeys."""
        if await self.is_on():
            self._note(EventKind.SHUTDOWN)
            await self.turn_off()

    async def interrupt(self) -> None:
        """Pulse the diagnostic interrupt (NMI): ``on_interrupt`` is the server's kernel, which gets it."""
        self._note(EventKind.INTERRUPT)
        self.on_interrupt()

    async def feed(self, *, on: bool) -> None:
        """The outlet that feeds the chassis is switched."""
        if on == self.is_fed:
            return
        if on:
            self.is_fed = True
            await self._switching.set(self._target, on=self._was_on)
        else:
            self._was_on = await self.is_on()
            self.is_fed = False
            await self._switching.set(self._target, on=False)
        for listener in self._feed_listeners:
            await listener(on)

    def follow_feed(self, listener: Callable[[bool], Awaitable[None]]) -> None:
        """Have ``listener(on)`` awaited when the chassis loses its feed or gets it back."""
        self._feed_listeners.append(listener)

    def clear_events(self) -> None:
        """Empty the event log, which notes that."""
        self.events.clear()
        self._note(EventKind.LOG_CLEARED)

    def _note_power(self, target: str, on: bool) -> None:  # noqa: FBT001 - a PowerListener
        if target == self._target:
            self._note(EventKind.POWER_ON if on else EventKind.POWER_OFF if self.is_fed else EventKind.AC_LOST)

    def _note(self, kind: EventKind) -> None:
        self._numbered += 1
        self.events.append(LoggedEvent(self._numbered, self.now(), kind))
        del self.events[:-_LOG_ENTRIES]


class Outlets:
    """The outlets of a simulated PDU, numbered from 1, and the chassis that some of them feed.

    ``delay_s`` is how long the unit takes to carry out a command; until then the command is pending.
    """

    def __init__(self, name: str, count: int, feeds: Mapping[int, Chassis], *, delay_s: float = 0.0) -> None:
        self.name = name
        self.count = count
        self.delay_s = delay_s
        self._feeds = feeds
        self._on = dict.fromkeys(range(1, count + 1), True)
        self._pending: dict[int, asyncio.Task[None]] = {}

    def is_on(self, outlet: int) -> bool:
        """Whether the outlet's relay is closed."""
        return self._on[outlet]

    def is_pending(self, outlet: int) -> bool:
        """Whether a command for the outlet waits to be carried out."""
        return outlet in self._pending

    async def switch(self, outlet: int, *, on: bool, delay_s: float | None = None) -> None:
        """Switch an outlet, after ``delay_s`` or else the unit's own; a command that still waits is forgotten."""
        self.cancel(outlet)
        delay_s = self.delay_s if delay_s is None else delay_s
        if delay_s:
            self._pending[outlet] = asyncio.create_task(self._switch_later(outlet, delay_s, on=on))
        else:
            await self._switch(outlet, on=on)

    async def cycle(self, outlet: int, delay_s: float | None = None) -> None:
        """Off at once, and on again as :meth:`switch` does."""
        self.cancel(outlet)
        await self._switch(outlet, on=False)
        await self.switch(outlet, on=True, delay_s=delay_s)

    def cancel(self, outlet: int) -> None:
        """Forget the command that waits for the outlet, if one does."""
        if task := self._pending.pop(outlet, None):
            task.cancel()

    def close(self) -> None:
        """Forget every command that waits."""
        for outlet in list(self._pending):
            self.cancel(outlet)

    async def _switch_later(self, outlet: int, delay_s: float, *, on: bool) -> None:
        await asyncio.sleep(delay_s)
        # From here on it is carried out, and nobody can cancel it any more.
        del self._pending[outlet]
        await self._switch(outlet, on=on)

    async def _switch(self, outlet: int, *, on: bool) -> None:
        self._on[outlet] = on
        if chassis := self._feeds.get(outlet):
            await chassis.feed(on=on)
