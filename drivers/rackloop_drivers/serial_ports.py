"""Serial ports of pyserial, by URL or device path."""

from __future__ import annotations

from typing import Any

from serial import SerialBase, rfc2217, serial_for_url
from serial.urlhandler import protocol_socket

from rackloop_drivers.socket_keepalive import keep_alive

__all__ = ["open_port"]


def open_port(url: str, **settings: Any) -> Any:
    """Open the port with pyserial's ``settings``. Raises what pyserial raises: ValueError, SerialException, OSError."""
    for scheme, kind in (("rfc2217://", _Rfc2217Port), ("socket://", _SocketPort)):
        if url.startswith(scheme):
            return kind(url, **settings)
    return serial_for_url(url, **settings)


class _ClosesSocket(SerialBase):
    """A ``close`` that closes the socket also where the other end went away first.

    pyserial 3.5 leaves it open where its shutdown fails with ENOTCONN.
    """

    _socket: Any = None

    def close(self) -> None:
        """Close the port."""
        wire = self._socket
        super().close()
        if wire is not None:
            wire.close()


class _Rfc2217Port(_ClosesSocket, rfc2217.Serial):
    """A port behind RFC 2217."""

    def keep_alive(self, *, idle_s: int, probes: int) -> None:
        """See :func:`~rackloop_drivers.socket_keepalive.keep_alive`."""
        keep_alive(self._socket, idle_s=idle_s, probes=probes)


class _SocketPort(_ClosesSocket, protocol_socket.Serial):
    """A port behind plain TCP."""
