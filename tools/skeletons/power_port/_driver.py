"""The driver: what :class:`~rackloop.abilities.PowerPort` asks, in the box's words."""

from __future__ import annotations

from rackloop.clock import Deadline
from rackloop.errors import ProtocolError
from skeletons.line_box._codec import Request
from skeletons.line_box._wire import exchange


class ExamplePowerPort:
    """One outlet of an example box at ``host:port``; see :class:`~rackloop.abilities.PowerPort`."""

    def __init__(self, host: str, port: int, outlet: int) -> None:
        self._address = (host, port)
        self._outlet = str(outlet)

    def turn_on(self, deadline: Deadline) -> None:
        """Feed the outlet."""
        exchange(self._address, Request("ON", (self._outlet,)), deadline)

    def turn_off(self, deadline: Deadline) -> None:
        """Stop feeding the outlet."""
        exchange(self._address, Request("OFF", (self._outlet,)), deadline)

    def is_on(self, deadline: Deadline) -> bool:
        """Whether the outlet is fed."""
        words = exchange(self._address, Request("STATE", (self._outlet,)), deadline).words
        if words not in {("ON",), ("OFF",)}:
            raise ProtocolError(f"expected ON or OFF as the state of outlet {self._outlet}, got {words}")
        return words == ("ON",)
