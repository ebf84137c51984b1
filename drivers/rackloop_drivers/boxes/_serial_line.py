"""The serial line of a simulated server, for the boxes that serve its console."""

from __future__ import annotations

from collections.abc import Callable

Listener = Callable[[bytes], None]


class SerialLine:
    """The line: output of the server goes to all its listeners of that moment, and input to ``on_input``.

    For the thread of one event loop.
    """

    def __init__(self) -> None:
        self.on_input: Listener = lambda _data: None
        self._listeners: list[Listener] = []

    def say(self, data: bytes) -> None:
        """Have the server's serial port send ``data``."""
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
