"""A switch connection in memory, fed bytes."""

from __future__ import annotations

import asyncio

from rackloop.clock import VirtualClock
from rackloop.seed import stream
from rackloop_drivers.fabric.flexfabric import LineFaults, MemoryMatrix
from rackloop_drivers.fabric.flexfabric.peer.connection import Connection
from rackloop_drivers.fabric.flexfabric.peer.control_lock import ControlLock
from rackloop_drivers.fabric.flexfabric.peer.engine import SwitchCore
from rackloop_drivers.fabric.flexfabric.peer.pace import PacedLine


class Wire:
    """The connection, and what is heard on it. ``hung_up`` is done once the switch has ended it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, matrix: MemoryMatrix | None = None) -> None:
        self.core = SwitchCore(matrix or MemoryMatrix(VirtualClock()), ControlLock(), keep_token=lambda _token: None)
        self.line_faults = LineFaults(stream(1, "wire"))
        self.heard = b""
        self.hung_up: asyncio.Future[None] = loop.create_future()
        output = PacedLine(self._hear, loop, None)
        self.connection = Connection(self, output, hang_up=lambda: self.hung_up.set_result(None))

    def _hear(self, data: bytes) -> None:
        self.heard += data

    async def power_cycle(self) -> None:
        """No test asks for it."""
        raise AssertionError

    def ask(self, data: bytes) -> bytes:
        """What is heard before the connection waits for something."""
        self.heard = b""
        self.connection.feed(data)
        return self.heard
