"""The driver: what :class:`~rackloop.abilities.BlockDevice` asks, in the box's words."""

from __future__ import annotations

from rackloop.abilities import BlockUsage, Claim
from rackloop.clock import Deadline
from rackloop.errors import ProtocolError
from skeletons.line_box._codec import Request
from skeletons.line_box._wire import exchange


class ExampleBlockDevice:
    """One volume of an example box at ``host:port``, over NBD; see :class:`~rackloop.abilities.BlockDevice`."""

    def __init__(self, host: str, port: int, volume: str, deadline: Deadline) -> None:
        address = (host, port)
        size = exchange(address, Request("SIZE", (volume,)), deadline).words
        if len(size) != 1 or not size[0].isdecimal():
            raise ProtocolError(f"expected the size of {volume} in bytes, got {size}")
        place = exchange(address, Request("EXPORT", (volume,)), deadline).words
        if len(place) != 1 or not place[0].startswith(("nbd://", "nbd+unix://")):
            raise ProtocolError(f"expected the NBD URI of {volume}, got {place}")
        self._claims = exchange(address, Request("CLIENTS", (volume,)), deadline).words
        self._size_bytes = int(size[0])
        self._uri = place[0]

    @property
    def size_bytes(self) -> int:
        """The size of the volume."""
        return self._size_bytes

    def fio_options(self) -> dict[str, str]:
        """Fio's own NBD engine."""
        return {"ioengine": "nbd", "uri": self._uri}

    def probe_target(self) -> str:
        """The NBD URI."""
        return self._uri

    def usage(self) -> BlockUsage:
        """The other connections to the volume when the driver was made."""
        return BlockUsage(tuple(f"in use by {client}" for client in self._claims))

    def claim_exclusive(self) -> Claim | None:
        """Nothing local can claim an NBD export."""
        return None
