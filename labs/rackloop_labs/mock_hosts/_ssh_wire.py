"""A client's TCP connection to a mock server, which can be blocked."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any, cast

import asyncssh

from rackloop_drivers.socket_blackhole import block, unblock
from rackloop_drivers.socket_reset import reset_on_close


class SshWire(asyncio.Transport):
    """The transport that asyncssh writes to, in front of that of the socket: what is sent while it is cut waits.

    An end that comes while it is cut, from either side, is not told to the client before :meth:`join`.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        super().__init__()
        self._transport = transport
        self._socket = cast(socket.socket, transport.get_extra_info("socket"))
        self._is_cut = False
        self._held: list[bytes] = []
        self._ending: Callable[[], None] | None = None

    def cut(self) -> None:
        """Pull the cable."""
        block(self._socket)
        self._is_cut = True

    def join(self) -> None:
        """Plug it in again; what waited leaves."""
        self._is_cut = False
        unblock(self._socket)
        held, self._held = self._held, []
        self._transport.writelines(held)
        if self._ending is not None:
            self._ending()

    def reset(self) -> None:
        """End the connection as a server does that has lost everything it knew: with a reset."""
        if self._is_cut:
            self._held.clear()
            self._ending = self._reset
        else:
            self._reset()

    def _reset(self) -> None:
        if not self._transport.is_closing():
            reset_on_close(self._socket)
            self._transport.abort()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send, or keep to be sent."""
        if not self._is_cut:
            self._transport.write(data)
        elif self._ending is None:
            self._held.append(bytes(data))

    def close(self) -> None:
        """End the connection once all is sent."""
        self._end(self._transport.close)

    def abort(self) -> None:
        """End the connection at once."""
        self._end(self._transport.abort)

    def _end(self, ending: Callable[[], None]) -> None:
        if not self._is_cut:
            ending()
        elif self._ending is None:
            self._ending = ending

    def is_closing(self) -> bool:
        """Whether it has ended or is about to."""
        return self._ending is not None or self._transport.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """The socket, and its addresses."""
        return self._transport.get_extra_info(name, default)

    def pause_reading(self) -> None:
        """Read nothing more; what comes waits in the kernel."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read again."""
        self._transport.resume_reading()


class SshConnection(asyncssh.SSHServerConnection):
    """A connection of asyncssh's whose wire is among ``wires`` for as long as its socket is open."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        options: asyncssh.SSHServerConnectionOptions,
        wires: set[SshWire],
    ) -> None:
        super().__init__(loop, options)
        self._wires = wires

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, over a wire that can be cut."""
        self._wire = SshWire(cast(asyncio.Transport, transport))
        self._wires.add(self._wire)
        super().connection_made(self._wire)

    def connection_lost(self, exc: Exception | None = None) -> None:
        """The socket is closed."""
        self._wires.discard(self._wire)
        super().connection_lost(exc)
