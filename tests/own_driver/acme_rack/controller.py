"""A management controller without an event log."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, ClassVar

from rackloop.clock import Deadline
from rackloop.lab.yaml import Text
from rackloop_drivers.boxes import BmcDriver, Chassis, Controller, Opening, SimulatedPlace

from .line import ask, serving


class AcmeController:
    """The power of its server; see :class:`~rackloop.abilities.PowerPort`."""

    def __init__(self, address: str) -> None:
        self._address = address

    def turn_on(self, deadline: Deadline) -> None:
        """Press the button."""
        ask(self._address, "ON", deadline=deadline)

    def turn_off(self, deadline: Deadline) -> None:
        """Cut the power."""
        ask(self._address, "OFF", deadline=deadline)

    def is_on(self, deadline: Deadline) -> bool:
        """Whether the server has power."""
        return ask(self._address, "STATE", deadline=deadline) == ["ON"]


class SimAcmeController:
    """The controller, simulated."""

    def __init__(self, chassis: Chassis) -> None:
        self._chassis = chassis
        self.is_pulled = False

    async def pull_cable(self, *, out: bool) -> None:
        """Pull its network cable, or plug it in again."""
        self.is_pulled = out

    async def answer(self, words: list[str]) -> str:
        """What it says to a line."""
        if self.is_pulled:
            raise LookupError("there is nobody")
        match words:
            case ["ON"]:
                await self._chassis.turn_on()
            case ["OFF"]:
                await self._chassis.turn_off()
        return "ON" if await self._chassis.is_on() else "OFF"


class AcmeControllerDriver(BmcDriver):
    """A controller of ACME, over TCP."""

    is_simulated: ClassVar[bool] = True

    address: Text | None = None
    """Where the controller answers, as host or host:port; a simulated one makes its own."""

    def open(self, opening: Opening) -> Controller:
        """The controller."""
        return Controller(AcmeController(str(self.address)))

    @asynccontextmanager
    async def simulated(
        self, chassis: Chassis, place: SimulatedPlace
    ) -> AsyncIterator[tuple[SimAcmeController, Mapping[str, Any]]]:
        """The controller of a simulated server."""
        controller = SimAcmeController(chassis)
        async with serving(controller.answer) as address:
            yield controller, {"address": address}
