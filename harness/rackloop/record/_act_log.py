"""Acts in the event stream: announced durably before they are made, closed with what came of them."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import Any

from rackloop.record._event_log import EventSink
from rackloop.record._events import ActAnnounced, ActDone
from rackloop.record.acts import Act, announced_json


class ActLog:
    """Numbers the acts of one run and writes them to its event stream. Safe to call from several threads.

    ``test`` is the test that acts belong to; whoever runs tests sets it. ``start`` keeps the numbers of several
    processes of one run apart.
    """

    def __init__(self, events: EventSink, *, start: int = 0) -> None:
        self.test: str | None = None
        self._events = events
        self._lock = Lock()
        self._last = start

    def announce(self, act: Act, resource: str | None = None) -> int:
        """Write that ``act`` is about to be made on ``resource``, and return its number; it is on disk on return.

        Raises LabError when the disk refuses: the act must not happen.
        """
        with self._lock:
            self._last += 1
            number = self._last
        self._events.write(ActAnnounced(number, self.test, act.ability, announced_json(act, resource)), durable=True)
        return number

    def done(self, act: int, *, error: str | None = None, result: Mapping[str, Any] | None = None) -> None:
        """Write how the act ended."""
        self._events.write(ActDone(act, self.test, error, result or {}))
