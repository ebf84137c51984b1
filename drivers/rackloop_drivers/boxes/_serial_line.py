"""The serial line of a simulated server, for the boxes that serve its console."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

Listener = Callable[[bytes], None]


class SerialLine:
    """The line: output of the server goes to all its listeners of that moment, and input to ``on_input``.

    For the thread of one event loop. Output waits for ``gather_s`` for more, as in a port's FIFO, and goes on together.
    """

    def __init__(self, gather_s: float = 0.0) -> None:
        self.on_input: Listener = lambda _data: None
        self._gather_s = gather_s
        self._said = bytearray()
        self._listeners: list[Listener] = []

    def say(self, data: bytes) -> None:
        """Have the server's serial port send ``data``."""
        if not self._said and self._gather_s:
            asyncio.get_running_loop().call_later(self._gather_s, self._send)
        self._said += data
        if not self._gather_s:
            self._send()

    def _send(self) -> None:
        data = bytes(self._said)
        self._said.clear()
        for listener in tuple(self._listeners):
            listener(data)

    def type(self, data: bytes) -> None:
        """Have the server's serial port get ``data``."""
        self.on_input(data)

    def listen(self, listener: Listener) -> None:
        """Call ``listener`` with the output from now on."""
        self._listeners.append(listener)

    def leave(self, listener: Listener) -> None:
        """Call it no more."""
        if listener in self._listeners:
            self._listeners.remove(listener)
