"""The unit as a lab description names it: the keys that it has there, and how it is opened."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rackloop.abilities import PowerPort
from rackloop.lab.yaml import Text
from rackloop_drivers.boxes import Opening, PduDriver
from rackloop_drivers.endpoint import host_and_port
from skeletons.power_port._driver import ExamplePowerPort

_PORT = 4001


class ExamplePduDriver(PduDriver):
    """A unit that is an example box."""

    address: Text | None = None
    """The unit's address, as host or host:port."""

    def lacking(self) -> Iterator[tuple[str, str]]:
        """The address."""
        if self.address is None:
            yield "address", "is missing: where the unit answers, such as strip1.lab:4001"

    def open(self, opening: Opening) -> Callable[[int], PowerPort]:  # noqa: ARG002 - nothing here stays open
        """A function from the number of an outlet to its power port."""
        host, port = host_and_port(str(self.address), _PORT)
        return lambda number: ExamplePowerPort(host, port, number)
