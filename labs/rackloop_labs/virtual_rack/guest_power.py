"""The power of guests, for the peers of their controllers and PDUs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from typing import Any, Protocol

from rackloop.clock import Clock
from rackloop.lab import Part, PartKind
from rackloop_drivers.boxes import Chassis, EventKind, PowerListener, PowerSwitching

# A guest that holds its drives must not keep another without power.
_SETTLES_S = 5.0
_SWITCH = str(Part(PartKind.SWITCH))


class PoweredMachine(Protocol):
    """A machine whose power can be switched, as :class:`~rackloop_labs.virtual_rack.machine.Machine`."""

    async def power_on(self) -> None: ...  # noqa: D102
    async def power_off(self) -> None: ...  # noqa: D102
    async def is_on(self) -> bool: ...  # noqa: D102
    async def press_button(self) -> None: ...  # noqa: D102
    async def interrupt(self) -> None: ...  # noqa: D102
    def power_changes(self) -> AsyncIterator[None]: ...  # noqa: D102


class GuestSwitching:
    """The :class:`~rackloop_drivers.boxes.PowerSwitching` of a virtual rack.

    A guest's power is that of its machine, and ``rackd`` is told of it, as its ports have no signal without; the
    switch's is ``switch``, and all other power is rackd's alone. ``changed`` is called when a machine was switched, off
    or on: it lets go of drives at that moment. A machine is given power once drives that moved meanwhile are
    ``settled``, as a switch has done it at once, or after some seconds. :meth:`follow_guests` must be running.
    """

    def __init__(
        self,
        rackd: PowerSwitching,
        machines: Mapping[str, PoweredMachine],
        switch: Callable[[bool], Coroutine[Any, Any, None]],
        changed: Callable[[], None],
        settled: Callable[[], Coroutine[Any, Any, None]],
    ) -> None:
        self._rackd = rackd
        self._machines = {str(Part.server(name)): machine for name, machine in machines.items()}
        self._switch = switch
        self._changed = changed
        self._settled = settled
        self._turns = {target: asyncio.Lock() for target in self._machines}

    async def set(self, target: str, *, on: bool) -> None:
        """Switch it; a guest that is given power boots by itself, and is not waited for."""
        if target == _SWITCH:
            await self._switch(on)
        elif machine := self._machines.get(target):
            async with self._turns[target]:
                # Without power its ports answer no more: requests that a drive holds do not hold up the machine.
                await self._rackd.set(target, on=on)
                if await machine.is_on() != on:
                    await (self._turn_on(machine) if on else machine.power_off())
                    self._changed()
        else:
            await self._rackd.set(target, on=on)

    async def _turn_on(self, machine: PoweredMachine) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._settled(), _SETTLES_S)
        await machine.power_on()

    async def is_on(self, target: str) -> bool:
        """Whether the target has power now; a guest may have turned itself off."""
        machine = self._machines.get(target)
        return await (machine.is_on() if machine else self._rackd.is_on(target))

    def follow(self, listener: PowerListener) -> None:
        """Have ``listener`` called at each change."""
        self._rackd.follow(listener)

    async def follow_guests(self) -> None:
        """Note that guests turn themselves off, and that they reset themselves; never returns."""
        await asyncio.gather(*(self._follow(target, machine) for target, machine in self._machines.items()))

    async def _follow(self, target: str, machine: PoweredMachine) -> None:
        async for _ in machine.power_changes():
            async with self._turns[target]:
                await self._rackd.set(target, on=await machine.is_on())
            self._changed()


class GuestChassis(Chassis):
    """The chassis of a guest: its power button is pressed, and its interrupt reaches the guest's kernel."""

    def __init__(self, server: str, switching: PowerSwitching, clock: Clock, machine: PoweredMachine) -> None:
        super().__init__(server, switching, clock)
        self._machine = machine

    async def shut_down(self) -> None:
        """Press the power button, which asks the operating system."""
        if await self.is_on():
            self._note(EventKind.SHUTDOWN)
            await self._machine.press_button()

    async def interrupt(self) -> None:
        """Pulse the diagnostic interrupt: the kernel gets an NMI."""
        await super().interrupt()
        await self._machine.interrupt()
