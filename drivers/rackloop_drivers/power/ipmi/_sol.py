"""The controller's end of Serial over LAN (IPMI specification v2.0 rev. 1.1, chapters 15 and 24)."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING

from rackloop_drivers.boxes import SerialLine

if TYPE_CHECKING:
    from rackloop_drivers.power.ipmi._session import Session

APPLICATION, TRANSPORT = 0x06, 0x0C
ACTIVATE, DEACTIVATE, GET_STATUS = (APPLICATION, 0x48), (APPLICATION, 0x49), (APPLICATION, 0x4A)
GET_PARAMETERS = (TRANSPORT, 0x22)
COMMANDS = frozenset({ACTIVATE, DEACTIVATE, GET_STATUS, GET_PARAMETERS})
FOR_OPERATORS = frozenset({ACTIVATE, DEACTIVATE})

OK, ALREADY, DISABLED, NO_SUCH_PARAMETER, BAD_FIELD = 0x00, 0x80, 0x81, 0x80, 0xCC
_SOL = 0x01
_DATA_BYTES = 200
_NOT_TAKEN, _DEACTIVATED = 0x40, 0x10
_RETRIES = 7
_RETRY_S = 0.5
# As a serial port's buffer in a controller: what is said while nobody takes it is lost.
_MOST_KEPT = 1 << 16
_LAST_SEQUENCE = 15

Result = tuple[int, bytes]


class SerialOverLan:
    """The one SOL session that a controller has: which client it is of, what is under way, what was heard last.

    ``send`` sends a payload to a session. A client that acknowledges nothing any more loses it.
    """

    def __init__(self, line: SerialLine, port: Callable[[], int], send: Callable[[Session, bytes], None]) -> None:
        self.is_enabled = True
        self._line = line
        self._port = port
        self._send = send
        self._client: Session | None = None
        self._kept = bytearray()
        self._under_way = b""
        self._sequence = self._heard = self._tries = 0
        self._timer: asyncio.TimerHandle | None = None

    def run(self, asked: tuple[int, int], data: bytes, session: Session) -> Result:
        """The answer to one of :data:`COMMANDS`."""
        if asked == GET_PARAMETERS:
            # In progress or not, enabled, at operator level, every 60 ms or 96 characters, 7 retries of 500 ms.
            known = {0: b"\x00", 1: bytes([self.is_enabled]), 2: b"\x83", 3: b"\x0c\x60", 4: b"\x07\x32"}
            known |= {5: b"\x0a", 6: b"\x0a", 7: b"\x01", 8: struct.pack("<H", self._port())}
            value = known.get(data[1])
            return (NO_SUCH_PARAMETER, b"") if value is None else (OK, b"\x11" + value)
        if data[0] != _SOL:
            return BAD_FIELD, b""
        if asked == GET_STATUS:
            return OK, bytes([1, int(self._client is not None), 0])
        if asked == DEACTIVATE:
            self.forget(self._client)
            return OK, b""
        if not self.is_enabled:
            return DISABLED, b""
        if self._client is not None and self._client is not session:
            return ALREADY, b""
        self.forget(self._client)
        self._client = session
        self._line.listen(self._said)
        size = _DATA_BYTES + 4
        return OK, struct.pack("<IHHHH", 0, size, size, self._port(), 0xFFFF)

    def receive(self, session: Session, payload: bytes) -> None:
        """Take a packet of a client."""
        if session is not self._client or len(payload) < 4:
            return
        number, acknowledged, taken, status = payload[:4]
        if self._under_way and acknowledged & 0x0F == self._sequence:
            rest = self._under_way[taken:] if status & _NOT_TAKEN else b""
            self._kept[:0] = rest
            self._under_way = b""
            self._stop_waiting()
        if number & 0x0F:
            if number != self._heard:
                self._heard = number
                self._line.type(payload[4:])
            self._send(session, bytes([0, number, len(payload) - 4, 0]))
        self._go_on()

    def forget(self, session: Session | None) -> None:
        """The session has ended, or its payload has."""
        if session is None or session is not self._client:
            return
        self._line.leave(self._said)
        self._client = None
        self._kept.clear()
        self._under_way = b""
        self._sequence = self._heard = 0
        self._stop_waiting()

    def drop(self) -> None:
        """End the session by the controller's own choice, and say so."""
        if (client := self._client) is not None:
            self._send(client, bytes([0, 0, 0, _DEACTIVATED]))
            self.forget(client)

    def _said(self, data: bytes) -> None:
        self._kept += data[: _MOST_KEPT - len(self._kept)]
        self._go_on()

    def _go_on(self) -> None:
        """Send the next packet, unless one is under way: each waits for the one before to be acknowledged."""
        if self._client is None or self._under_way or not self._kept:
            return
        self._under_way = bytes(self._kept[:_DATA_BYTES])
        del self._kept[:_DATA_BYTES]
        self._sequence = self._sequence % _LAST_SEQUENCE + 1
        self._tries = 0
        self._try()

    def _try(self) -> None:
        if (client := self._client) is None:
            return
        if self._tries > _RETRIES:
            self.forget(client)
            return
        self._tries += 1
        self._send(client, bytes([self._sequence, 0, 0, 0]) + self._under_way)
        self._timer = asyncio.get_running_loop().call_later(_RETRY_S, self._try)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
