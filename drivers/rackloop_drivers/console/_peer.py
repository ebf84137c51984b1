"""A ser2net and a serial cable, simulated: the other ends of a server's serial line."""

from __future__ import annotations

import asyncio
import os
import pty
import tty
from typing import Any, Self, cast

from rackloop_drivers.boxes import SerialLine, stop_listening
from rackloop_drivers.socket_reset import reset_on_close

_READ_SIZE = 4096


class Ser2netPeer:
    """A ser2net for one line, on a TCP port of its own. Several clients may listen and type; none is told the past.

    With ``is_telnet`` it speaks RFC 2217. Clients that do not read lose what does not fit in their buffers.
    """

    def __init__(self, line: SerialLine, *, is_telnet: bool = False) -> None:
        self._line = line
        self._is_telnet = is_telnet
        self._server: asyncio.Server | None = None
        self._clients: set[_Client] = set()

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        made = _TelnetClient if self._is_telnet else _Client
        self._server = await loop.create_server(lambda: made(self._line, self._clients), "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None, "it serves from __aenter__ on"  # noqa: S101
        await stop_listening(self._server)
        self.cut()

    @property
    def address(self) -> str:
        """Its address, as a lab description has it."""
        assert self._server is not None, "it serves from __aenter__ on"  # noqa: S101
        port = self._server.sockets[0].getsockname()[1]
        return f"{'rfc2217://' if self._is_telnet else ''}127.0.0.1:{port}"

    def cut(self, *, is_reset: bool = False) -> None:
        """End every client's connection; ``is_reset`` with a TCP reset, as a box that started anew answers."""
        for client in tuple(self._clients):
            client.end(is_reset=is_reset)


class _Client(asyncio.Protocol):
    def __init__(self, line: SerialLine, clients: set[_Client]) -> None:
        self._line = line
        self._clients = clients
        self._transport: asyncio.Transport | None = None
        self._is_full = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._clients.add(self)
        self._line.listen(self._said)

    def data_received(self, data: bytes) -> None:
        self._line.type(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self._line.leave(self._said)
        self._clients.discard(self)

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False

    def end(self, *, is_reset: bool) -> None:
        if self._transport is not None:
            if is_reset:
                reset_on_close(self._transport.get_extra_info("socket"))
            self._transport.close()

    def _said(self, data: bytes) -> None:
        if self._transport is not None and not self._is_full:
            self._transport.write(data)


class _TelnetClient(_Client):
    """With telnet options around the line's bytes."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        from serial import rfc2217, serial_for_url

        super().connection_made(transport)
        self._telnet: Any = rfc2217.PortManager(cast(Any, serial_for_url("loop://")), cast(Any, self._transport))

    def data_received(self, data: bytes) -> None:
        if plain := b"".join(self._telnet.filter(data)):
            super().data_received(plain)

    def _said(self, data: bytes) -> None:
        super()._said(b"".join(self._telnet.escape(data)))


class TtyPeer:
    """A serial cable between the line and ``device``, a pseudo terminal of this machine.

    Output that is not read is lost once the terminal's buffer is full.
    """

    def __init__(self, line: SerialLine) -> None:
        self._line = line
        self.device = ""

    async def __aenter__(self) -> Self:
        self._master, self._slave = pty.openpty()
        tty.setraw(self._slave)
        os.set_blocking(self._master, False)
        self.device = os.ttyname(self._slave)
        asyncio.get_running_loop().add_reader(self._master, self._typed)
        self._line.listen(self._said)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._line.leave(self._said)
        asyncio.get_running_loop().remove_reader(self._master)
        os.close(self._master)
        os.close(self._slave)

    def _typed(self) -> None:
        self._line.type(os.read(self._master, _READ_SIZE))

    def _said(self, data: bytes) -> None:
        try:
            os.write(self._master, data)
        except BlockingIOError:
            return
