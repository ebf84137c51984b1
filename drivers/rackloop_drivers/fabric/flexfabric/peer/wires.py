"""The wires of the simulated switch: TCP, RFC 2217 (a serial port over telnet) and a pseudo-terminal."""

from __future__ import annotations

import asyncio
import os
import pty
import socket
import termios
import tty
from pathlib import Path
from typing import Any, cast

from rackloop.errors import BadInput
from rackloop_drivers.fabric.flexfabric.peer.connection import Connection, Switch
from rackloop_drivers.fabric.flexfabric.peer.pace import PacedLine

_READ_SIZE = 16384


class TcpWire(asyncio.BufferedProtocol):
    """One TCP connection: raw bytes both ways.

    It brings its own buffer: asyncio's would be 256 KiB new memory for each question, which can cost 20 us.
    """

    def __init__(self, switch: Switch, wires: set[TcpWire]) -> None:
        self._switch = switch
        self._wires = wires
        self._buffer = bytearray(_READ_SIZE)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A controller has connected."""
        self._transport = cast(asyncio.Transport, transport)
        sock: socket.socket = transport.get_extra_info("socket")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        output = PacedLine(self._write, asyncio.get_running_loop(), None)
        self._connection = Connection(self._switch, output, self._throttle, self._transport.close)
        self._wires.add(self)

    def _throttle(self, on: bool) -> None:  # noqa: FBT001 - a callback
        if on:
            self._transport.pause_reading()
        elif not self._transport.is_closing():
            self._transport.resume_reading()

    def _write(self, data: bytes) -> None:
        self._transport.write(data)

    def get_buffer(self, sizehint: int) -> bytearray:  # noqa: ARG002 - asyncio's signature
        """A buffer for the bytes that come next."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes have come."""
        self._receive(bytes(self._buffer[:nbytes]))

    def _receive(self, data: bytes) -> None:
        self._connection.feed(data)

    def pause_writing(self) -> None:
        """The controller does not read."""
        self._connection.block(is_blocked=True)

    def resume_writing(self) -> None:
        """The controller reads again."""
        self._connection.block(is_blocked=False)

    def eof_received(self) -> bool:
        """The controller says nothing more, and may still be listening."""
        self._connection.end()
        return True

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """The controller has gone."""
        self._wires.discard(self)
        self._connection.lose()

    def abort(self) -> None:
        """Drop the connection with whatever is still unsent."""
        self._connection.close()
        self._transport.abort()


class Rfc2217Wire(TcpWire):
    """One connection of a serial device server (RFC 2217): telnet options around the switch's bytes."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A controller has connected: offer the telnet options."""
        from serial import rfc2217, serial_for_url

        super().connection_made(transport)
        self._telnet: Any = rfc2217.PortManager(cast(Any, serial_for_url("loop://")), cast(Any, self._transport))

    def _write(self, data: bytes) -> None:
        self._transport.write(b"".join(self._telnet.escape(data)))

    def _receive(self, data: bytes) -> None:
        """Take the telnet commands out."""
        if plain := b"".join(self._telnet.filter(data)):
            self._connection.feed(plain)


class PtyWire:
    """The switch's serial port on a pseudo-terminal: one connection that outlives its clients.

    The line runs at ``baud``, 8N1. Who opens the terminal at another speed reads noise. ``is_paced`` says whether
    bytes take their time on it.
    """

    def __init__(self, switch: Switch, link: Path | None, baud: int, *, is_paced: bool) -> None:
        speed = getattr(termios, f"B{baud}", None)
        if speed is None:
            raise BadInput(f"a terminal cannot run at {baud} baud; choose a standard rate such as 115200")
        self._switch = switch
        self._speed: int = speed
        self._loop = asyncio.get_running_loop()
        self._master, self._slave = pty.openpty()
        tty.setraw(self._slave)
        attributes = termios.tcgetattr(self._slave)
        attributes[4] = attributes[5] = self._speed
        termios.tcsetattr(self._slave, termios.TCSANOW, attributes)
        os.set_blocking(self._master, False)
        self.path = os.ttyname(self._slave)
        self._link = link
        if link is not None:
            link.unlink(missing_ok=True)
            link.symlink_to(self.path)
        pace = baud if is_paced else None
        self._unsent = b""
        self._is_on = True
        self._connection = Connection(switch, PacedLine(self._write, self._loop, pace), self._throttle)
        self._input = PacedLine(self._connection.feed, self._loop, pace)
        self._loop.add_reader(self._master, self._readable)

    def _throttle(self, on: bool) -> None:  # noqa: FBT001 - a callback
        if on:
            self._loop.remove_reader(self._master)
        else:
            self._loop.add_reader(self._master, self._readable)

    def _readable(self) -> None:
        data = os.read(self._master, _READ_SIZE)
        if self._is_on:
            self._input.send(data)

    def _write(self, data: bytes) -> None:
        if termios.tcgetattr(self._slave)[5] != self._speed:
            data = self._switch.line_faults.noise(len(data))
        if not self._unsent:
            data = data[self._send(data) :]
        if data:
            self._unsent += data
            self._loop.add_writer(self._master, self._flush)
            self._connection.block(is_blocked=True)

    def _send(self, data: bytes) -> int:
        try:
            return os.write(self._master, data)
        except BlockingIOError:
            return 0

    def _flush(self) -> None:
        self._unsent = self._unsent[self._send(self._unsent) :]
        if not self._unsent:
            self._loop.remove_writer(self._master)
            self._connection.block(is_blocked=False)

    def power_off(self) -> None:
        """Lose what is on the line; the terminal stays, and nothing answers on it."""
        self._is_on = False
        self._input.clear()
        self._unsent = b""
        self._loop.remove_writer(self._master)
        self._connection.restart()
        self._connection.block(is_blocked=False)

    def power_on(self) -> None:
        """Listen again."""
        self._is_on = True

    def close(self) -> None:
        """Take the terminal and its link away."""
        self._loop.remove_reader(self._master)
        self._loop.remove_writer(self._master)
        self._input.clear()
        self._connection.close()
        os.close(self._master)
        os.close(self._slave)
        if self._link is not None:
            self._link.unlink(missing_ok=True)
