"""Pumps with flow control between an SSH channel and the pipes of a command."""

from __future__ import annotations

import asyncio
from typing import cast

import asyncssh

Channel = asyncssh.SSHServerChannel[bytes]


class CommandOutput(asyncio.Protocol):
    """A command's output, on its way to the client as ``datatype``: None, or that of standard error."""

    def __init__(self, channel: Channel, datatype: asyncssh.DataType) -> None:
        self.has_ended = asyncio.Event()
        self._channel = channel
        self._datatype = datatype

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.ReadTransport, transport)

    def data_received(self, data: bytes) -> None:
        if not self._channel.is_closing():
            self._channel.write(data, self._datatype)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - a terminal ends with EIO
        self.has_ended.set()

    def pause(self) -> None:
        """Read no more: the client is slow."""
        if not self._transport.is_closing():
            self._transport.pause_reading()

    def resume(self) -> None:
        """Read on."""
        if not self._transport.is_closing():
            self._transport.resume_reading()

    def close(self) -> None:
        """Close the pipe."""
        self._transport.close()


class CommandInput(asyncio.BaseProtocol):
    """A client's input, on its way to the command; kept until the command has a pipe for it."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._early: list[bytes] = []
        self._is_over = False
        self._transport: asyncio.WriteTransport | None = None

    def flow_into(self, transport: asyncio.WriteTransport) -> None:
        """Pass on what came so far, and what will come.

        Not before asyncio has done all it does to a new pipe: one that is closed in ``connection_made`` already would
        be watched for ever by the number of its descriptor.
        """
        self._transport = transport
        transport.writelines(self._early)
        self._early.clear()
        if self._is_over:
            transport.write_eof()

    def pause_writing(self) -> None:
        self._channel.pause_reading()

    def resume_writing(self) -> None:
        # Not at once: asyncio is in the middle of a write, and what the channel kept, its end too, comes from here.
        asyncio.get_running_loop().call_soon(self._read_on)

    def write(self, data: bytes) -> None:
        """Pass it on; a command that closed its input misses it."""
        if self._transport is None:
            self._early.append(data)
        elif not self._transport.is_closing():
            self._transport.write(data)

    def end(self) -> None:
        """No more will come."""
        self._is_over = True
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write_eof()

    def close(self) -> None:
        """Close the pipe, and forget what it had not taken yet."""
        # A pipe that is closing with nothing left to write is as good as closed, and asyncio would close it twice.
        if self._transport is not None and (
            not self._transport.is_closing() or self._transport.get_write_buffer_size() > 0
        ):
            self._transport.abort()

    def _read_on(self) -> None:
        if not self._channel.is_closing():
            self._channel.resume_reading()
