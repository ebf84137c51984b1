"""A socket filter that drops every packet, as a pulled network cable does.

A blocked socket acknowledges nothing and refuses nothing, so its clients meet what a real cable would leave them:
connections that stall, and new ones without an answer. The kernel drops the packets (``SO_ATTACH_FILTER`` in
socket(7)), which takes no privilege.
"""

from __future__ import annotations

import ctypes
import socket
import struct
from contextlib import suppress
from typing import Protocol

__all__ = ["Filterable", "block", "unblock"]

# From asm-generic/socket.h; the socket module does not name them.
_SO_ATTACH_FILTER = 26
_SO_DETACH_FILTER = 27
# One instruction of classic BPF, `return 0`: keep no byte of any packet (linux/filter.h).
_BPF_RETURN = 0x06
_KEEP_NOTHING = ctypes.create_string_buffer(struct.pack("=HBBI", _BPF_RETURN, 0, 0, 0), 8)
_PROGRAM = struct.pack("@HP", 1, ctypes.addressof(_KEEP_NOTHING))


class Filterable(Protocol):
    """A socket, or what asyncio shows of one."""

    def setsockopt(self, level: int, optname: int, value: int | bytes, /) -> None:
        """See :meth:`socket.socket.setsockopt`."""
        ...


def block(sock: Filterable) -> None:
    """Drop every packet to ``sock`` from now on, those of new connections to a listening socket as well.

    What the box itself sends still leaves; it has to keep silent by itself.
    """
    sock.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, _PROGRAM)


def unblock(sock: Filterable) -> None:
    """Let packets come again; clients that still retransmit get through with the next attempt."""
    with suppress(FileNotFoundError):  # it was not blocked
        sock.setsockopt(socket.SOL_SOCKET, _SO_DETACH_FILTER, 0)
