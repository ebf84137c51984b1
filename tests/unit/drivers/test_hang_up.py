"""Closing a channel whose connection is lost."""

from __future__ import annotations

import socket
from contextlib import closing
from typing import Any

import paramiko

from rackloop_drivers.host._paramiko import hang_up


def test_a_channel_of_a_lost_connection_is_closed_all_the_same() -> None:
    """paramiko tells the other end that it closes, which nobody hears."""
    here, there = socket.socketpair()
    transport: Any = paramiko.Transport(here)
    with closing(transport):
        channel: Any = paramiko.Channel(1)
        channel._set_transport(transport)
        channel._set_remote_channel(2, 1024, 1024)
        # As between the loss and the moment when the transport's thread notices it.
        transport.active = True
        transport.clear_to_send.set()
        there.close()
        here.close()
        hang_up(channel)
        assert channel.closed
        transport.active = False
