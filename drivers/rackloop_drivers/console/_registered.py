"""The consoles that are a serial line, as lab descriptions name them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from rackloop.abilities import Console
from rackloop.lab.yaml import matching
from rackloop_drivers.boxes import ConsoleDriver, ConsoleOpening, SimulatedController
from rackloop_drivers.serial_keys import Baud, SerialDevice

if TYPE_CHECKING:
    from rackloop_drivers.boxes import Chassis, SimulatedPlace

_PORT = r"(?:6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[1-5][0-9]{4}|[1-9][0-9]{0,3})"
_HOST = r"(?:\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._-]+)"


class Ser2netConsoleDriver(ConsoleDriver):
    """A console that a ser2net serves on the network."""

    is_simulated: ClassVar[bool] = True

    address: (
        Annotated[str, matching(f"(?:rfc2217://)?{_HOST}:{_PORT}", "'host:port', or 'rfc2217://host:port'")] | None
    ) = None
    """Its address: 'host:port' for plain TCP, or 'rfc2217://host:port'; a simulated one makes its own."""
    baud: Baud = 115_200
    """The speed that the line is set to with rfc2217, 8N1; with plain TCP it is as ser2net has it."""

    def open(self, opening: ConsoleOpening) -> Console:
        """The console."""
        from rackloop_drivers.console._driver import Ser2netConsole

        return Ser2netConsole(str(self.address), opening.clock, baud=self.baud)

    @asynccontextmanager
    async def simulated(
        self,
        chassis: Chassis,
        place: SimulatedPlace,  # noqa: ARG002 - a driver's signature
        bmc: SimulatedController | None,  # noqa: ARG002
    ) -> AsyncIterator[Mapping[str, Any]]:
        """The ser2net."""
        from rackloop_drivers.console._peer import Ser2netPeer

        async with Ser2netPeer(chassis.line, is_telnet=str(self.address).startswith("rfc2217:")) as peer:
            yield {"address": peer.address}

    def own_address(self) -> tuple[str, str] | None:
        """The address: a port of ser2net is one line."""
        return None if self.address is None else ("address", self.address.lower().removeprefix("rfc2217://"))

    def lacking(self) -> Iterator[tuple[str, str]]:
        """The address."""
        if self.address is None:
            yield "address", "is missing: where ser2net answers, as in 'ser2net.lab.example:2001'"


class TtyConsoleDriver(ConsoleDriver):
    """A console on a serial line of this machine."""

    is_simulated: ClassVar[bool] = True

    device: SerialDevice | None = None
    """The serial line, such as /dev/ttyUSB0; a simulated one makes a pseudo terminal."""
    baud: Baud = 115_200
    """The line's speed in bits per second, 8N1."""

    def open(self, opening: ConsoleOpening) -> Console:
        """The console."""
        from rackloop_drivers.console._driver import TtyConsole

        return TtyConsole(str(self.device), opening.clock, baud=self.baud)

    @asynccontextmanager
    async def simulated(
        self,
        chassis: Chassis,
        place: SimulatedPlace,  # noqa: ARG002 - a driver's signature
        bmc: SimulatedController | None,  # noqa: ARG002
    ) -> AsyncIterator[Mapping[str, Any]]:
        """The cable."""
        from rackloop_drivers.console._peer import TtyPeer

        async with TtyPeer(chassis.line) as peer:
            yield {"device": peer.device}

    def own_address(self) -> tuple[str, str] | None:
        """The device."""
        return None if self.device in {None, "auto"} else ("device", str(self.device))

    def lacking(self) -> Iterator[tuple[str, str]]:
        """The device."""
        if self.device in {None, "auto"}:
            yield "device", "is missing: the serial line, such as /dev/ttyUSB0"
