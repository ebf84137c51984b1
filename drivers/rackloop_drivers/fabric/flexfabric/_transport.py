"""The driver's end of the wire: reads and writes with deadlines, over any transport that a URL can name.

``tcp://HOST:PORT`` is a plain socket. Everything else is opened by pyserial: a device path, ``socket://HOST:PORT``,
``rfc2217://HOST:PORT``. Where pyserial has a file descriptor it is read and written directly, which takes a third
less time than pyserial's own loop.
"""

from __future__ import annotations

import math
import os
import select
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol
from urllib.parse import urlsplit

from rackloop.clock import Deadline
from rackloop.errors import BadInput, DeadlineExceeded, NotConnected
from rackloop_drivers.socket_reset import reset_on_close

_READ_SIZE = 16384
_SLICE_S = 0.02
_LOOKS = 100


class Transport(Protocol):
    """A byte stream to the switch."""

    def write(self, data: bytes, deadline: Deadline) -> None:
        """Send all of ``data``."""
        ...

    def read(self, timeout_s: float) -> bytes:
        """Read all bytes that have come, waiting at most ``timeout_s`` for the first; empty when nothing came."""
        ...

    def close(self) -> None:
        """Let go of the wire; closing twice is no error."""
        ...

    def abandon(self) -> None:
        """Let go of a wire that is silent: what was sent by it is lost, where it can be, and not heard late."""
        ...


@contextmanager
def _mapped(url: str) -> Iterator[None]:
    from serial import SerialException

    try:
        yield
    except (OSError, SerialException) as error:
        raise NotConnected(
            f"{url}: no switch there: {error}; check that it has power, that the address is right, "
            "and that no other program has the port open"
        ) from None


class DescriptorTransport:
    """A file descriptor that is read and written without blocking longer than asked."""

    def __init__(
        self, url: str, descriptor: int, close: Callable[[], None], abandon: Callable[[], None] | None = None
    ) -> None:
        self._url = url
        self._descriptor = descriptor
        self._close = close
        self._abandon = abandon or close
        os.set_blocking(descriptor, False)
        self._readable = select.poll()
        self._readable.register(descriptor, select.POLLIN)
        self._writable = select.poll()
        self._writable.register(descriptor, select.POLLOUT)

    def write(self, data: bytes, deadline: Deadline) -> None:
        """Send all of ``data``."""
        left = data
        while True:
            try:
                left = left[os.write(self._descriptor, left) :]
            except BlockingIOError:
                if not self._writable.poll(deadline.remaining_s() * 1000):
                    raise DeadlineExceeded(
                        f"{self._url}: the switch takes no more bytes; check that it has power and is not held up"
                    ) from None
            except OSError as error:
                raise self._lost(error) from None
            if not left:
                return

    def read(self, timeout_s: float) -> bytes:
        """Read all bytes that have come."""
        if not self._is_readable_soon() and not self._readable.poll(timeout_s * 1000):
            return b""
        try:
            data = os.read(self._descriptor, _READ_SIZE)
        except BlockingIOError:
            return b""
        except OSError as error:
            raise self._lost(error) from None
        if not data:
            raise self._lost("it was closed at the other end")
        return data

    def _is_readable_soon(self) -> bool:
        """Look again and again for some 50 us: a switch nearby answers sooner than a sleeping processor wakes."""
        for _ in range(_LOOKS):
            if self._readable.poll(0):
                return True
            os.sched_yield()
        return False

    def _lost(self, reason: object) -> NotConnected:
        return NotConnected(f"{self._url}: the connection to the switch was lost: {reason}; check that it has power")

    def close(self) -> None:
        """Let go of the wire."""
        self._close()

    def abandon(self) -> None:
        """Let go of the wire; a socket is reset."""
        self._abandon()


class PortTransport:
    """A pyserial port that has no file descriptor, such as ``rfc2217://``.

    Its time-out is set once: with RFC 2217 every change of a setting is negotiated anew.
    """

    def __init__(self, url: str, port: _Port) -> None:
        self._url = url
        self._port = port

    def write(self, data: bytes, deadline: Deadline) -> None:  # noqa: ARG002 - the port has a time-out of its own
        """Send all of ``data``."""
        with _mapped(self._url):
            self._port.write(data)

    def read(self, timeout_s: float) -> bytes:
        """Read all bytes that have come, waiting in slices of 20 ms."""
        with _mapped(self._url):
            for _ in range(max(1, math.ceil(timeout_s / _SLICE_S))):
                if first := self._port.read(1):
                    return first + self._port.read(self._port.in_waiting)
        return b""

    def close(self) -> None:
        """Let go of the wire."""
        self._port.close()

    def abandon(self) -> None:
        """Let go of the wire."""
        self.close()


class _Port(Protocol):
    @property
    def in_waiting(self) -> int: ...
    def read(self, size: int = 1, /) -> bytes: ...
    def write(self, data: bytes, /) -> int | None: ...
    def close(self) -> None: ...


def is_connected(url: str) -> bool:
    """Whether the wire is a connection, of which the other end may know nothing any more; a line is always there."""
    return "://" in url


def is_serial(url: str) -> bool:
    """Whether a baud rate matters: a device path or a serial device server."""
    return "://" not in url or url.startswith("rfc2217://")


def open_transport(url: str, deadline: Deadline, baud: int) -> Transport:
    """Open the wire to a switch.

    Raises :class:`~rackloop.errors.BadInput` for a URL nothing can open, :class:`~rackloop.errors.NotConnected`
    where there is no answer. ``socket://`` and ``rfc2217://`` connect within pyserial's own time-outs (5 s and 3 s).
    """
    if url.startswith("tcp://"):
        return _open_tcp(url, deadline)
    from rackloop_drivers.serial_ports import open_port

    try:
        with _mapped(url):
            port = open_port(url, baudrate=baud, timeout=_SLICE_S, exclusive=True)
    except ValueError as error:
        raise BadInput(
            f"{url}: this is no way to a switch ({error}); give tcp://HOST:PORT, a device such as /dev/ttyUSB0, "
            "socket://HOST:PORT or rfc2217://HOST:PORT"
        ) from None
    try:
        descriptor = port.fileno()
    except (OSError, AttributeError):
        return PortTransport(url, port)
    return DescriptorTransport(url, descriptor, port.close)


def _open_tcp(url: str, deadline: Deadline) -> Transport:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or port is None:
        raise BadInput(f"{url}: this is no address of a switch; write tcp://HOST:PORT, such as tcp://switch1:5025")
    with _mapped(url):
        sock = socket.create_connection((host, port), timeout=max(deadline.remaining_s(), 0.001))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def abandon() -> None:
        reset_on_close(sock)
        sock.close()

    return DescriptorTransport(url, sock.fileno(), sock.close, abandon)
