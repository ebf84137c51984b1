"""A running rackprobe: commands to it, events from it, and the relation of its host's clock to the run's."""

from __future__ import annotations

import contextlib
import json
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from threading import Lock
from types import TracebackType
from typing import NoReturn, Self, TypeVar
from weakref import WeakKeyDictionary

from rackloop.abilities import Completed, Executor, Process
from rackloop.clock import Clock, Deadline
from rackloop.errors import BadInput, DeadlineExceeded, LabError, ProtocolError, ToolError
from rackloop_drivers.clock_rate import Exchange, own_steering
from rackloop_drivers.host_clock import ClockUnknown, HostClock, own_clock_id
from rackloop_drivers.host_tools import name_of
from rackloop_drivers.workload._rackprobe_results import STAMPS, Event, build, on_clock, parse_line
from rackloop_drivers.workload._shown_clock import ShownClock, ShowsClock

_T = TypeVar("_T")
_END_GRACE_S = 5.0
# A few tell the offset better than one; more are worth their time where it takes milliseconds to ask.
_EXCHANGES = 8
_MOST_EXCHANGES = 32
_ENOUGH_NS = 300_000
# So long a look at the host's clock is good for; also at one's own: a host that was resumed may have another.
_AGAIN_S = 1.0
_SOON_S = 0.25
_STARTED = 0
_BAD_INPUT = 2
_TARGET_FAILED = 3
# All sessions of a host look at one clock: the longer it is known the better its rate is.
_CLOCKS: WeakKeyDictionary[Executor, HostClock] = WeakKeyDictionary()
# One of them has it shown by TCP.
_SHOWN: WeakKeyDictionary[HostClock, ShownClock] = WeakKeyDictionary()
_CLOCKS_LOCK = Lock()


def raise_failure(completed: Completed) -> NoReturn:
    """Raise what a rackprobe that ended without its result means: BadInput, LabError or ToolError."""
    said = completed.stderr.strip() or "it said nothing"
    if completed.status == _BAD_INPUT:
        raise BadInput(said)
    if completed.status == _TARGET_FAILED:
        raise LabError(said)
    raise ToolError(f"{completed.argv[0]} ended with status {completed.status}: {said}")


@dataclass(frozen=True)
class _ClockSaid:
    """The probe's part in an exchange."""

    t_ns: int
    boot_id: str | None
    clock_id: str | None
    steering: str | None


class ProbeSession:
    """A running rackprobe. One thread at a time; leaving the ``with`` block ends it.

    ``host_clock`` relates the clock that it stamps with to the run's, by exchanges between its commands and events, or
    by TCP where the host is reached so; ``clock_refusal`` is what kept the probe from having the port for that.
    """

    def __init__(self, executor: Executor, clock: Clock, argv: Sequence[str]) -> None:
        self._clock = clock
        self._executor = executor
        self.host_clock = HostClock(name_of(executor), own_clock_id())
        self.clock_refusal: str | None = None
        self._exchange_numbers = count(1)
        # What the probe says first answers what started it.
        self._sent_ns: dict[int, int] = {_STARTED: clock.now_ns()}
        self._process: Process = executor.start(argv)
        self._unread: deque[Event] = deque()
        self._own_shown: ShownClock | None = None
        self._has_answered_show = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the probe at once; what was not asked for is lost. Closing twice does nothing."""
        if self._own_shown is not None:
            self._own_shown.close()
        self._process.kill()

    def _quit(self) -> None:
        """Ask the probe to end. One that has ended by itself needs no telling."""
        with contextlib.suppress(ToolError):
            self._process.write_line(json.dumps({"op": "quit"}))

    def _say(self, command: dict[str, object]) -> None:
        try:
            self._process.write_line(json.dumps(command))
        except ToolError:
            self._fail()

    def _next_event(self, deadline: Deadline) -> Event:
        while not self._unread:
            if not self._read(deadline):
                self._fail()
        event = self._unread.popleft()
        if event.get("event") == "error":
            raise BadInput(f"rackprobe refused a command: {event.get('message')}")
        return event

    def _read(self, deadline: Deadline) -> bool:
        """Take the next line: the answer to an exchange, or an event that is kept; False at the end of them."""
        line = self._process.read_line(deadline)
        received_ns = self._clock.now_ns()
        if line is None:
            return False
        event = parse_line(line)
        if event.get("event") == "clock":
            self._take_exchange(self._sent_ns.pop(event["id"]), event, received_ns)
        elif event.get("event") == "clock_shown":
            self._share_shown(event)
        else:
            self._unread.append(event)
        return True

    def _ready(self, deadline: Deadline) -> Event:
        """Wait until the probe is ready, and relate the host's clock to the run's; its event."""
        event = self._expect_event("ready", deadline)
        received_ns = self._clock.now_ns()
        said = build(_ClockSaid, event)
        with _CLOCKS_LOCK:
            known = _CLOCKS.get(self._executor)
            if known is not None and known.is_of(said.boot_id, said.clock_id):
                self.host_clock = known
            else:
                _CLOCKS[self._executor] = self.host_clock
        self._take_exchange(self._sent_ns.pop(_STARTED), event, received_ns)
        self._have_clock_shown(deadline)
        self._relate(deadline, most=_MOST_EXCHANGES)
        return event

    def _have_clock_shown(self, deadline: Deadline) -> None:
        """Have the probe show its host's clock by TCP, where that is reached so and no other session's does."""
        executor = self._executor
        if self.host_clock.is_own or self.is_clock_shown:
            return
        if not isinstance(executor, ShowsClock) or executor.clock_access is None:
            return
        self._own_shown = ShownClock(executor.clock_access)
        with contextlib.suppress(ToolError):
            self._process.write_line(self._own_shown.command)
        while not self._has_answered_show and self._read(deadline):
            pass

    def _share_shown(self, event: Event) -> None:
        self._has_answered_show = True
        self.clock_refusal = event.get("refused")
        if self.clock_refusal is None and self._own_shown is not None:
            with _CLOCKS_LOCK:
                _SHOWN[self.host_clock] = self._own_shown

    @property
    def is_clock_shown(self) -> bool:
        """Whether the host's clock is asked for by TCP."""
        return self._shown is not None

    @property
    def _shown(self) -> ShownClock | None:
        with _CLOCKS_LOCK:
            shown = _SHOWN.get(self.host_clock)
        return None if shown is None or shown.is_over else shown

    def _take_exchange(self, sent_ns: int, event: Event, received_ns: int) -> None:
        said = build(_ClockSaid, event)
        own = None if said.steering is None else own_steering()
        steering = None if own is None else f"{own}, {said.steering}"
        self.host_clock.add(Exchange(sent_ns, said.t_ns, received_ns, said.boot_id, said.clock_id, steering))

    def _look(self) -> bool:
        """Exchange once by TCP; whether that can be had."""
        shown = self._shown
        exchanged = None if shown is None else shown.ask(self._clock)
        if exchanged is None:
            return False
        self._take_exchange(*exchanged)
        return True

    def _ask_clock(self) -> None:
        """Exchange by TCP until the clock is well known, a few times at most, or begin to by a line of the session's.

        The answer to a line is taken as it comes. A probe that has ended is not asked.
        """
        if not self._look():
            self._ask_by_line()
            return
        for _ in range(1, _EXCHANGES):
            if self._is_well_known() or not self._look():
                return

    def _ask_by_line(self) -> int:
        number = next(self._exchange_numbers)
        self._sent_ns[number] = self._clock.now_ns()
        with contextlib.suppress(ToolError):
            self._process.write_line(json.dumps({"op": "clock", "id": number}))
        return number

    def _relate(self, deadline: Deadline, least: int = _EXCHANGES, most: int = _EXCHANGES) -> None:
        """Look at the host's clock so often, keeping what else it says meanwhile; once where it is the run's own.

        At ``most``, until it is known well.
        """
        for asked in range(1, most + 1):
            if not self._look():
                number = self._ask_by_line()
                while number in self._sent_ns:
                    if not self._read(deadline):
                        return
            if self.host_clock.is_own or (asked >= least and self._is_well_known()):
                return

    def _is_well_known(self) -> bool:
        """Whether more looks at the host's clock would tell little more, or nothing at all."""
        try:
            return self.host_clock.is_own or self.host_clock.offset().error_ns <= _ENOUGH_NS
        except ClockUnknown:
            return True

    def _followed(self) -> Iterator[Event]:
        """The probe's events as they come; its host's clock is looked at now and then. For a thread of its own."""
        while True:
            with contextlib.suppress(DeadlineExceeded):
                yield self._next_event(Deadline.after(self._clock, self._again_s))
            if not self._is_related() and not self._sent_ns:
                self._ask_clock()

    @property
    def _again_s(self) -> float:
        return _AGAIN_S if self._is_well_known() else _SOON_S

    def _is_related(self) -> bool:
        """Whether the host's clock was looked at within the last second, or less where it is known but roughly."""
        return self.host_clock.is_fresh(self._clock.now_ns(), round(self._again_s * 1e9))

    def _relate_again(self, deadline: Deadline) -> None:
        """Look at the host's clock once more; at one that is the run's own now and then."""
        if not (self.host_clock.is_own and self._is_related()):
            self._relate(deadline, least=2, most=_EXCHANGES if self.is_clock_shown else 2)

    def _related(self, kind: type[_T], event: Event) -> _T:
        """The value that ``event`` describes, its stamps on the run's clock. Raises ClockUnknown where they cannot."""
        return build(kind, on_clock(event, STAMPS[kind], self.host_clock))

    def _expect_event(self, name: str, deadline: Deadline) -> Event:
        event = self._next_event(deadline)
        if event.get("event") != name:
            raise ProtocolError(f"rackprobe should have said {name!r}, but said {event}")
        return event

    def _fail(self) -> NoReturn:
        raise_failure(self._process.wait(Deadline.after(self._clock, _END_GRACE_S)))
