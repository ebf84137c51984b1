"""The driver: what :class:`~rackloop.abilities.PhyControl` asks, in the box's words."""

from __future__ import annotations

from collections.abc import Collection

from rackloop.clock import Deadline
from rackloop.errors import ProtocolError
from skeletons.line_box._codec import Request
from skeletons.line_box._wire import exchange


class ExamplePhyControl:
    """The ports of an example box at ``host:port``; see :class:`~rackloop.abilities.PhyControl`."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)

    def drop(self, ports: Collection[int], down_s: float, deadline: Deadline, *, request_id: int) -> None:
        """Take the signal away from ``ports`` once."""
        self.flap(ports, down_s, 0.0, 1, deadline, request_id=request_id)

    def flap(
        self,
        ports: Collection[int],
        down_s: float,
        up_s: float,
        count: int,
        deadline: Deadline,
        *,
        request_id: int,
    ) -> None:
        """Take the signal away from ``ports`` again and again; returns when the box has begun."""
        times = (str(round(seconds * 1e6)) for seconds in (down_s, up_s))
        words = (str(request_id), *times, str(count), *map(str, sorted(ports)))
        exchange(self._address, Request("FLAP", words), deadline)

    def drop_counts(self, ports: Collection[int], deadline: Deadline) -> dict[int, int]:
        """The number of times that each of ``ports`` has lost its signal so far."""
        asked = sorted(ports)
        words = exchange(self._address, Request("COUNTS", tuple(map(str, asked))), deadline).words
        if len(words) != len(asked) or not all(word.isdecimal() for word in words):
            raise ProtocolError(f"expected a count for each of ports {asked}, got {words}")
        return dict(zip(asked, map(int, words), strict=True))
