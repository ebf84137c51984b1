"""What really happened in the simulated rack, as it happens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rackloop.clock import Clock, Deadline
from rackloop.errors import NotConnected, ProtocolError
from rackloop_drivers.rackd._lines import LineSocket

_SUBSCRIBE_S = 2.0


class TruthStream(Iterator[dict[str, Any]]):
    """The truth records of a rackd since this was made, oldest first; iteration ends when either side closes.

    Each record has ``event``, ``t_ns`` (CLOCK_MONOTONIC) and the fields of its event. A context manager.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self._lines = LineSocket(path, clock)
        self._early: list[dict[str, Any]] = []
        deadline = Deadline.after(clock, _SUBSCRIBE_S)
        self._lines.send({"id": 0, "op": "subscribe"})
        answer = self._lines.receive(deadline)
        while "event" in answer:
            self._early.append(answer)
            answer = self._lines.receive(deadline)
        if answer.get("ok") is not True:
            self._lines.close()
            raise ProtocolError(f"rackd at {path} refused a subscription: {answer.get('error')}")

    def __next__(self) -> dict[str, Any]:
        try:
            return self.next_before(None)
        except NotConnected as error:
            raise StopIteration from error

    def next_before(self, deadline: Deadline | None) -> dict[str, Any]:
        """The next record. Raises DeadlineExceeded where none comes in time, NotConnected where rackd ended."""
        return self._early.pop(0) if self._early else self._lines.receive(deadline)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the subscription."""
        self._lines.shut()
        self._lines.close()
