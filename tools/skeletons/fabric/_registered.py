"""The switch as a lab description names it: the keys that it has there, and how it is opened."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from rackloop.lab.yaml import Text, whole
from rackloop_drivers.boxes import FabricDriver, FabricOpening, OpenedFabric
from rackloop_drivers.endpoint import host_and_port
from skeletons.fabric._driver import ExampleFabric

_PORT = 4001


class ExampleFabricDriver(FabricDriver):
    """A switch that is an example box."""

    ports: Annotated[int, whole(2, 4096)] = 16
    """The number of the switch's ports, which are numbered from 1."""
    address: Text | None = None
    """The switch's address, as host or host:port."""

    def lacking(self) -> Iterator[tuple[str, str]]:
        """The address."""
        if self.address is None:
            yield "address", "is missing: where the switch answers, such as switch.lab:4001"

    def open(self, opening: FabricOpening) -> OpenedFabric:
        """The switch, locked with the token where one is given."""
        fabric = ExampleFabric(*host_and_port(str(self.address), _PORT))
        if opening.token is not None:
            fabric.take_lock(opening.token, opening.deadline)
        return OpenedFabric(fabric)
