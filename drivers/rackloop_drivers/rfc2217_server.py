"""The side of RFC 2217 that serves a serial line: telnet options around its bytes."""

from __future__ import annotations

import asyncio
from typing import Any, cast

__all__ = ["Rfc2217Server"]


class Rfc2217Server:
    """Offers the options to the client behind ``transport``, which has just connected, and speaks them with it."""

    def __init__(self, transport: asyncio.Transport) -> None:
        from serial import rfc2217, serial_for_url

        self._options: Any = rfc2217.PortManager(cast(Any, serial_for_url("loop://")), cast(Any, transport))

    def received(self, data: bytes) -> bytes:
        """The line's bytes among those of the client; its telnet commands are followed."""
        return b"".join(self._options.filter(data))

    def to_send(self, data: bytes) -> bytes:
        """The bytes to send to the client for bytes of the line."""
        return b"".join(self._options.escape(data))
