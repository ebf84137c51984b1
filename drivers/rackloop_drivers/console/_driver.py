"""The consoles that are a serial line: behind ser2net (plain TCP, or RFC 2217), or of this machine."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from typing import Any

from rackloop.clock import Clock, Deadline
from rackloop.errors import BadInput, DeadlineExceeded, NameUnknown, NotConnected
from rackloop_drivers.endpoint import host_and_port
from rackloop_drivers.socket_keepalive import keep_alive
from rackloop_drivers.stream_console import MOST_BYTES, DescriptorStream, Stream, StreamConsole

_RFC2217 = "rfc2217://"
# A port's FIFO gathers bytes for some 20 ms, a USB adapter for 16, and ser2net on the way to the network.
_TTY_DELAY_S = 0.05
_SER2NET_DELAY_S = 0.1
# Who vanishes without a word is noticed after 10 + 3 * 10 s.
_KEEPALIVE_S = 10
_KEEPALIVE_PROBES = 3


class Ser2netConsole(StreamConsole):
    """The console that a ser2net serves at ``address``: ``host:port`` for plain TCP, or ``rfc2217://host:port``.

    With RFC 2217 the line is set to ``baud``, 8N1; with plain TCP it is as ser2net has it. A host that takes the
    connection and vanishes is noticed after 40 s. ``rfc2217://`` connects within pyserial's own time-outs (5 s, 3 s).
    """

    def __init__(self, address: str, clock: Clock, *, baud: int = 115_200) -> None:
        self._address = address
        self._baud = baud
        super().__init__(f"ser2net {address}", clock, _SER2NET_DELAY_S, self._dial)

    def _dial(self, deadline: Deadline) -> Stream:
        if self._address.startswith(_RFC2217):
            return _PortStream(self.where, self._address, self._baud)
        host, port = host_and_port(self._address, 0)
        if not port:
            raise BadInput(f"{self.where}: the port is missing; write host:port, such as ser2net.lab.example:2001")
        try:
            wire = socket.create_connection((host, port), timeout=max(deadline.remaining_s(), 0.001))
        except TimeoutError:
            raise DeadlineExceeded(
                f"{self.where} did not answer in time; is its host on, and the network up?"
            ) from None
        except socket.gaierror as error:
            said = f"{self.where}: the name {host!r} does not resolve ({error.strerror})"
            raise NameUnknown(f"{said}; look at it in the lab description, or ask the name service") from None
        except OSError as error:
            raise NotConnected(f"{self.where}: {error.strerror}; is its host on, and ser2net running?") from None
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        keep_alive(wire, idle_s=_KEEPALIVE_S, probes=_KEEPALIVE_PROBES)
        return DescriptorStream(self.where, wire.fileno(), wire.close, why="; has another the port?")


class TtyConsole(StreamConsole):
    """The console at ``device``, a serial line of this machine, at ``baud``, 8N1, locked against other programs."""

    def __init__(self, device: str, clock: Clock, *, baud: int = 115_200) -> None:
        self._device = device
        self._baud = baud
        super().__init__(f"tty {device}", clock, _TTY_DELAY_S, self._open_line)

    def _open_line(self, deadline: Deadline) -> Stream:  # noqa: ARG002 - a line is opened at once
        from serial import Serial

        with _mapped(self.where):
            port = Serial(self._device, self._baud, timeout=0, exclusive=True)
        return DescriptorStream(self.where, port.fileno(), port.close, why="; is the adapter still plugged in?")


class _PortStream:
    """A pyserial port without a file descriptor. Its time-out is set once: with RFC 2217 each change is negotiated."""

    _SLICE_S = 0.02

    def __init__(self, where: str, url: str, baud: int) -> None:
        from rackloop_drivers.serial_ports import open_port

        self._where = where
        with _mapped(where):
            self._port: Any = open_port(url, baudrate=baud, timeout=self._SLICE_S)
            self._port.keep_alive(idle_s=_KEEPALIVE_S, probes=_KEEPALIVE_PROBES)

    def read(self, timeout_s: float) -> bytes:
        """Take the bytes that have come."""
        with _mapped(self._where):
            for _ in range(max(1, round(timeout_s / self._SLICE_S))):
                if first := self._port.read(1):
                    return bytes(first + self._port.read(min(self._port.in_waiting, MOST_BYTES - 1)))
        return b""

    def write(self, data: bytes, deadline: Deadline) -> None:  # noqa: ARG002 - the port has a time-out of its own
        """Send all of ``data``."""
        with _mapped(self._where):
            self._port.write(data)

    def wake(self) -> None:
        """Do nothing: a read ends soon by itself, and a port whose other end is far away has no way to wake it."""

    def close(self) -> None:
        """Let go of it."""
        with contextlib.suppress(OSError):
            self._port.close()


@contextlib.contextmanager
def _mapped(where: str) -> Iterator[None]:
    from serial import SerialException

    try:
        yield
    except ValueError as error:
        raise BadInput(f"{where} is no serial line that can be opened: {error}") from None
    except (OSError, SerialException) as error:
        raise NotConnected(
            f"{where} cannot be had: {error}; is it there, may this account open it, and has no other program it open?"
        ) from None
