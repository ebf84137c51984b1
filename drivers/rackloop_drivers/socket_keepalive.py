"""Connections of which it is noticed that the other end has vanished, though nothing is sent."""

from __future__ import annotations

import socket

__all__ = ["keep_alive"]


def keep_alive(wire: socket.socket, *, idle_s: int, probes: int) -> None:
    """Have a connection that is silent for ``idle_s`` probed, and lost after as many ``probes`` that far apart."""
    wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, idle_s)
    wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, idle_s)
    wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, probes)
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
