"""A watch whose thread looks at the host's clock for as long as it lasts, with a probe that a test plays."""

from __future__ import annotations

import json
from collections.abc import Sequence
from queue import SimpleQueue
from typing import Any, cast

import pytest

from rackloop.abilities import Completed, Executor
from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import DeadlineExceeded, LabError
from rackloop_drivers.host_clock import ClockUnknown
from rackloop_drivers.workload import Watch

S = 1_000_000_000
MS = 1_000_000
SEEN: dict[str, Any] = {
    **dict.fromkeys(
        ("completed", "errors", "bytes", "max_submit_ns", "max_complete_ns", "in_flight", "lost", "submitted"), 0
    ),
    "last_error": None,
    "verdicts": {},
    "offenders": [],
    "bins_ns": [],
    "max_us": 0.0,
}


class Probe:
    """A host's rackprobe, an hour ahead of the run's clock; each question for its clock takes it a millisecond."""

    def __init__(self, clock: VirtualClock, status: int = 0) -> None:
        self._clock = clock
        self._status = status
        self._lines: SimpleQueue[str | None] = SimpleQueue()
        self.ahead_ns = 3600 * S
        self.boot_id = "b"
        self._questions: SimpleQueue[int] = SimpleQueue()

    def start(self, _argv: Sequence[str]) -> Probe:
        self._lines = SimpleQueue()
        self.say("ready")
        return self

    def say(self, event: str, **fields: Any) -> None:
        """Print an event with the time."""
        now_ns = self._clock.now_ns() + self.ahead_ns
        whose = {"boot_id": self.boot_id, "clock_id": self.boot_id, "steering": "0 10000"}
        self._lines.put(json.dumps({"event": event, "t_ns": now_ns, **whose, **fields}))

    def pass_the_time(self) -> None:
        """Let 1.5 s pass in which the probe says nothing; return when it was asked for the time once more."""
        while not self._questions.empty():
            self._questions.get()
        self._lines.put(None)
        self._questions.get(timeout=20)

    def write_line(self, line: str) -> None:
        match json.loads(line):
            case {"op": "clock", "id": number}:
                self._clock.advance(0.001)
                self.say("clock", id=number)
                self._questions.put(number)
            case {"op": "quit"}:
                self.say("result", start_ns=self.ahead_ns, **SEEN)

    def read_line(self, _deadline: Deadline) -> str | None:
        line = self._lines.get()
        if line is None:
            self._clock.advance(1.5)
            raise DeadlineExceeded("it printed no line in time")
        return line or None

    def end(self) -> None:
        """End without a result."""
        self._lines.put("")

    def wait(self, _deadline: Deadline) -> Completed:
        return Completed(("rackprobe",), self._status, "", "the drive is gone")

    def kill(self) -> None:
        self._lines.put("")


def watched(clock: VirtualClock, probe: Probe) -> Watch:
    return Watch(cast("Executor", probe), clock, ["rackprobe"], soon(clock))


def soon(clock: VirtualClock) -> Deadline:
    return Deadline.after(clock, 1e6)


def test_the_hosts_clock_is_looked_at_each_second_for_as_long_as_it_lasts() -> None:
    clock = VirtualClock(start_ns=S)
    probe = Probe(clock)
    with watched(clock, probe) as watch:
        for _ in range(5):
            probe.pass_the_time()
        probe.say("interval", **SEEN)
        interval = watch.next_interval(soon(clock))
        result = watch.result(soon(clock))
    assert interval is not None
    assert abs(interval.t_ns - clock.now_ns()) < 10 * MS
    assert interval.clock_error_ns < 2 * MS
    assert abs(result.t_ns - clock.now_ns()) <= result.clock_error_ns + 2 * MS


@pytest.mark.parametrize(("ahead_ns", "boot_id", "why"), [(3700 * S, "b", "jumped"), (0, "b2", "has booted since")])
def test_a_clock_that_became_another_leaves_nothing_to_compare(ahead_ns: int, boot_id: str, why: str) -> None:
    clock = VirtualClock(start_ns=S)
    probe = Probe(clock)
    with watched(clock, probe) as watch:
        probe.ahead_ns, probe.boot_id = ahead_ns, boot_id
        probe.pass_the_time()
        with pytest.raises(ClockUnknown, match=why):
            watch.result(soon(clock))
        with pytest.raises(ClockUnknown, match=why):
            assert watch.started_ns


def test_all_sessions_of_a_host_know_its_clock_by_all_exchanges_until_it_has_booted() -> None:
    clock = VirtualClock(start_ns=S)
    probe = Probe(clock)
    clocks = []
    for probe.boot_id in ("b", "b", "b2"):
        with watched(clock, probe) as watch:
            probe.pass_the_time()
            clocks.append(watch.host_clock)
    assert clocks[0] is clocks[1]
    assert clocks[2] is not clocks[1]


def test_a_probe_that_fails_is_told_to_whoever_asks_next_and_after() -> None:
    clock = VirtualClock(start_ns=S)
    probe = Probe(clock, status=3)
    with watched(clock, probe) as watch:
        probe.end()
        for _ in range(2):
            with pytest.raises(LabError, match="the drive is gone"):
                watch.next_interval(soon(clock))
