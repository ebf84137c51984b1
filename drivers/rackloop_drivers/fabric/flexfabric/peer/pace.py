"""The pace of a serial line: bytes take ten bit times each and come out in order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

BITS_PER_BYTE = 10


class PacedLine:
    """Hands bytes on in order, each piece once its last byte would have crossed a line of ``baud``.

    ``baud`` None is a line that takes no time. A delay holds back what comes after it too, as on a wire.
    """

    def __init__(self, deliver: Callable[[bytes], None], loop: asyncio.AbstractEventLoop, baud: int | None) -> None:
        self._deliver = deliver
        self._loop = loop
        self._seconds_per_byte = BITS_PER_BYTE / baud if baud else 0.0
        self._waiting: deque[tuple[float, bytes]] = deque()
        self._free_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._then: Callable[[], None] | None = None

    def send(self, data: bytes, delay_s: float = 0.0) -> None:
        """Hand ``data`` on, now if the line is free and takes no time."""
        if not self._waiting and not self._seconds_per_byte and not delay_s:
            self._deliver(data)
            return
        start = max(self._free_at, self._loop.time() + delay_s)
        self._free_at = start + len(data) * self._seconds_per_byte
        self._waiting.append((self._free_at, data))
        if self._timer is None:
            self._timer = self._loop.call_at(self._free_at, self._due)

    def when_sent(self, then: Callable[[], None]) -> None:
        """Call ``then`` once everything so far has come out, now if it has; the last one asked for counts."""
        self._then = then
        self._tell_sent()

    def _tell_sent(self) -> None:
        if not self._waiting and self._then is not None:
            then, self._then = self._then, None
            then()

    def clear(self) -> None:
        """Lose what has not come out yet."""
        self._waiting.clear()
        self._then = None
        self._free_at = 0.0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _due(self) -> None:
        self._timer = None
        while self._waiting and self._waiting[0][0] <= self._loop.time():
            self._deliver(self._waiting.popleft()[1])
        self._tell_sent()
        if self._waiting and self._timer is None:
            self._timer = self._loop.call_at(self._waiting[0][0], self._due)
