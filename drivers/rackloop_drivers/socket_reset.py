"""The reset of a connection, in place of its orderly end."""

from __future__ import annotations

import socket
import struct

from rackloop_drivers.socket_blackhole import Filterable

_NO_LINGER = struct.pack("ii", 1, 0)


def reset_on_close(sock: Filterable) -> None:
    """Have ``sock`` reset when it is closed: what the other end has not taken is lost (``SO_LINGER``, socket(7))."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
