"""A strip of outlets in banks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Annotated, Any, ClassVar

from rackloop.abilities import PowerPort
from rackloop.clock import Deadline
from rackloop.lab.yaml import Text, whole
from rackloop_drivers.boxes import Opening, Outlets, PduDriver, SimulatedPlace

from .line import ask, serving


class AcmePowerPort:
    """One outlet; see :class:`~rackloop.abilities.PowerPort`."""

    def __init__(self, address: str, bank: int, outlet: int) -> None:
        self._address = address
        self._outlet = f"{bank}-{outlet}"

    def turn_on(self, deadline: Deadline) -> None:
        """Feed the outlet."""
        ask(self._address, "ON", self._outlet, deadline=deadline)

    def turn_off(self, deadline: Deadline) -> None:
        """Stop feeding the outlet."""
        ask(self._address, "OFF", self._outlet, deadline=deadline)

    def is_on(self, deadline: Deadline) -> bool:
        """Whether the outlet is fed."""
        return ask(self._address, "STATE", self._outlet, deadline=deadline) == ["ON"]


class AcmeStripDriver(PduDriver):
    """A strip of ACME, over TCP."""

    is_simulated: ClassVar[bool] = True

    address: Text | None = None
    """Where the strip answers, as host or host:port; a simulated one makes its own."""
    bank: Annotated[int, whole(1, 4)] = 1
    """Which of its banks the outlets are in."""

    def lacking(self) -> Iterator[tuple[str, str]]:
        """The address."""
        if self.address is None:
            yield "address", "is missing: where the strip answers, such as strip1.lab.example"

    def open(self, opening: Opening) -> Callable[[int], PowerPort]:
        """A function from the number of an outlet to its power port."""
        return lambda number: AcmePowerPort(str(self.address), self.bank, number)

    @asynccontextmanager
    async def simulated(self, outlets: Outlets, place: SimulatedPlace) -> AsyncIterator[Mapping[str, Any]]:
        """The strip, switching ``outlets``."""

        async def answer(words: list[str]) -> str:
            verb, where = words
            bank, outlet = map(int, where.split("-"))
            if bank != self.bank or not 1 <= outlet <= outlets.count:
                raise LookupError(f"no outlet {where}")
            if verb != "STATE":
                await outlets.switch(outlet, on=verb == "ON")
            return "ON" if outlets.is_on(outlet) else "OFF"

        async with serving(answer) as address:
            yield {"address": address}
