"""The simulated switch: it speaks the switch's bytes on TCP and serial lines."""

from __future__ import annotations

import asyncio
import json
import os
from functools import partial
from pathlib import Path
from typing import cast

from rackloop.errors import BadInput, NotConnected
from rackloop.seed import stream
from rackloop_drivers.boxes import stop_listening
from rackloop_drivers.fabric.flexfabric.peer.control_lock import ControlLock
from rackloop_drivers.fabric.flexfabric.peer.engine import SwitchCore
from rackloop_drivers.fabric.flexfabric.peer.line_faults import LineFaults
from rackloop_drivers.fabric.flexfabric.peer.matrix import PortMatrix
from rackloop_drivers.fabric.flexfabric.peer.wires import PtyWire, Rfc2217Wire, TcpWire

BAUD = 115200


class SwitchPeer:
    """A simulated switch in front of a :class:`PortMatrix`. Make and use it inside a running event loop.

    It owns connections, what they staged, their error queues, the control lock and the ids of PHY drops; the map,
    its generation, the PHYs and the saved map are the matrix's. ``state_path`` is the file that keeps the highest
    token ever granted; without one it is forgotten with the object. Raises :class:`~rackloop.errors.BadInput` where
    that file holds something else.
    """

    def __init__(
        self,
        matrix: PortMatrix,
        *,
        state_path: Path | None = None,
        line_faults: LineFaults | None = None,
        serial: str = "FF000001",
    ) -> None:
        self.line_faults = line_faults or LineFaults(stream(0, "flexfabric"))
        self._state_path = state_path
        self.core = SwitchCore(matrix, ControlLock(self._read_token()), serial=serial, keep_token=self._keep_token)
        self._wires: set[TcpWire] = set()
        self._ttys: list[PtyWire] = []
        self._servers: list[asyncio.Server] = []
        self._is_on = True

    async def serve_tcp(self, host: str = "127.0.0.1", port: int = 0) -> tuple[str, int]:
        """Listen for controllers; returns where. Port 0 takes a free one.

        Raises :class:`~rackloop.errors.NotConnected` where the address cannot be had.
        """
        return await self._listen(TcpWire, host, port)

    async def serve_rfc2217(self, host: str = "127.0.0.1", port: int = 0) -> tuple[str, int]:
        """Listen as a serial device server does (RFC 2217); returns where."""
        return await self._listen(Rfc2217Wire, host, port)

    async def _listen(self, wire: type[TcpWire], host: str, port: int) -> tuple[str, int]:
        try:
            server = await asyncio.get_running_loop().create_server(partial(self._accept, wire), host, port)
        except OSError as error:
            raise NotConnected(f"the switch cannot listen on {host}:{port}: {error}; choose another port") from None
        self._servers.append(server)
        bound_host, bound_port = server.sockets[0].getsockname()[:2]
        return bound_host, bound_port

    def _accept(self, wire: type[TcpWire]) -> asyncio.BaseProtocol:
        return wire(self, self._wires) if self._is_on else _Refused()

    def serve_pty(self, link: Path | None = None, *, baud: int = BAUD, is_paced: bool = True) -> str:
        """Offer the serial port on a pseudo-terminal; returns its path, to which ``link`` points when given.

        With ``is_paced`` every byte takes ten bit times of ``baud`` in either direction.
        """
        wire = PtyWire(self, link, baud, is_paced=is_paced)
        self._ttys.append(wire)
        return wire.path

    async def power_cycle(self) -> None:
        """Cut the power and give it back: connections and staged maps are lost, the saved map is live again."""
        await self.power_off()
        await self.power_on()

    async def power_off(self) -> None:
        """Cut the power: connections drop, the lock is free, nothing answers any more."""
        self._is_on = False
        for wire in tuple(self._wires):
            wire.abort()
        self.core.lose_power()
        for serial_wire in self._ttys:
            serial_wire.power_off()
        await self.core.matrix.power(on=False)

    async def power_on(self) -> None:
        """Give the power back; the matrix loads its saved map."""
        await self.core.matrix.power(on=True)
        for serial_wire in self._ttys:
            serial_wire.power_on()
        self._is_on = True

    async def stick(self, port: int, *, stuck: bool) -> None:
        """Make a port ignore map changes, or let it follow them again."""
        await self.core.matrix.stick(port, stuck=stuck)

    async def close(self) -> None:
        """Stop listening, drop every connection, take the terminals away."""
        for server in self._servers:
            await stop_listening(server)
        for wire in tuple(self._wires):
            wire.abort()
        for serial_wire in self._ttys:
            serial_wire.close()
        for server in self._servers:
            await server.wait_closed()
        self._servers.clear()
        self._ttys.clear()

    def _read_token(self) -> int:
        if self._state_path is None or not self._state_path.exists():
            return 0
        try:
            token = json.loads(self._state_path.read_text("utf-8"))["highest_token"]
        except (OSError, ValueError, KeyError, TypeError):
            token = None
        if not isinstance(token, int) or token < 0:
            raise BadInput(
                f"{self._state_path}: this is not a switch's state; delete it to start with no token granted"
            )
        return token

    def _keep_token(self, token: int) -> None:
        if self._state_path is None:
            return
        fresh = self._state_path.with_name(self._state_path.name + ".new")
        with fresh.open("w", encoding="utf-8") as file:
            json.dump({"schema": 1, "highest_token": token}, file)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._state_path)


class _Refused(asyncio.Protocol):
    """The end of a controller's connection to a switch without power."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast(asyncio.Transport, transport).abort()
