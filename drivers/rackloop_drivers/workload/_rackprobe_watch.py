"""A session with a running rackprobe that watches the I/O of a mapping."""

from __future__ import annotations

import queue
from collections.abc import Sequence
from threading import Thread

from rackloop.abilities import Executor
from rackloop.clock import Clock, Deadline
from rackloop.errors import DeadlineExceeded
from rackloop_drivers.workload._rackprobe_results import Event, WatchInterval, WatchResult
from rackloop_drivers.workload._rackprobe_session import ProbeSession, raise_failure

_END_GRACE_S = 5.0


class Watch(ProbeSession):
    """Watches the I/O of a mapping that stays. Made by :meth:`RackProbe.watch`.

    A thread of its own takes what the probe says as it comes, and looks at the host's clock every second.
    """

    def __init__(self, executor: Executor, clock: Clock, argv: Sequence[str], deadline: Deadline) -> None:
        super().__init__(executor, clock, argv)
        self._intervals: list[Event] = []
        self._result: Event | None = None
        self._said: queue.SimpleQueue[Event | BaseException] = queue.SimpleQueue()
        try:
            self._ready_ns = int(self._ready(deadline)["t_ns"])
        except BaseException:
            self._process.kill()
            raise
        self._reader = Thread(target=self._follow, name="watch", daemon=True)
        self._reader.start()

    @property
    def started_ns(self) -> int:
        """The moment of its beginning."""
        return self.host_clock.moment(self._ready_ns).at_ns

    @property
    def intervals(self) -> list[WatchInterval]:
        """The intervals heard of so far."""
        return [self._related(WatchInterval, event) for event in self._intervals]

    def next_interval(self, deadline: Deadline) -> WatchInterval | None:
        """The next interval; None when the watch is over. Raises DeadlineExceeded when none ends in time."""
        event = self._next_said(deadline)
        return None if event is None else self._related(WatchInterval, event)

    def wait_for_read(self, deadline: Deadline) -> None:
        """Return once a read has come back, or the watch is over. Raises DeadlineExceeded when neither is in time."""
        while (interval := self.next_interval(deadline)) is not None:
            if interval.completed:
                return

    def result(self, deadline: Deadline, *, stop: bool = True) -> WatchResult:
        """The result of the watch, after ending it; with ``stop=False`` it runs out its duration first.

        Raises LabError when the target failed while it was watched, ClockUnknown where the host's clock jumped.
        """
        if stop and self._result is None:
            self._ask_clock()
            self._quit()
        while self._next_said(deadline) is not None:
            pass
        completed = self._process.wait(deadline)
        if completed.status != 0:
            raise_failure(completed)
        assert self._result is not None  # noqa: S101 - the events end with it
        return self._related(WatchResult, self._result)

    def close(self) -> None:
        """End the probe at once; what was not asked for is lost. Closing twice does nothing."""
        super().close()
        self._reader.join(_END_GRACE_S)

    def _next_said(self, deadline: Deadline) -> Event | None:
        """The event of the next interval; None where there is a result."""
        if self._result is not None:
            return None
        try:
            said = self._said.get(timeout=deadline.remaining_s())
        except queue.Empty:
            raise DeadlineExceeded("the watch printed no interval in time") from None
        if isinstance(said, BaseException):
            self._said.put(said)
            raise said
        if said.get("event") == "result":
            self._result = said
            return None
        self._intervals.append(said)
        return said

    def _follow(self) -> None:
        try:
            for event in self._followed():
                self._said.put(event)
                if event.get("event") == "result":
                    return
        except BaseException as error:  # noqa: BLE001 - whoever asks next is told
            self._said.put(error)
