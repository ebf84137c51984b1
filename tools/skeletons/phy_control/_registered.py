"""The box as a lab description names it: the keys that it has there, and how it is opened."""

from __future__ import annotations

from collections.abc import Iterator

from rackloop.abilities import PhyControl
from rackloop.lab.yaml import Text
from rackloop_drivers.boxes import PhyDriver, PhyOpening
from rackloop_drivers.endpoint import host_and_port
from skeletons.phy_control._driver import ExamplePhyControl

_PORT = 4001


class ExamplePhyDriver(PhyDriver):
    """An example box that takes the signal from ports."""

    address: Text | None = None
    """The box's address, as host or host:port."""

    def lacking(self) -> Iterator[tuple[str, str]]:
        """The address."""
        if self.address is None:
            yield "address", "is missing: where the box answers, such as breaker1.lab:4001"

    def open(self, opening: PhyOpening) -> PhyControl:  # noqa: ARG002 - nothing here stays open
        """The PHY control, by port number."""
        return ExamplePhyControl(*host_and_port(str(self.address), _PORT))
