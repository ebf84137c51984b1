"""Time as an argument: the only module that may ask the machine what time it is."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol, TypeVar

T = TypeVar("T")
Errors = tuple[type[Exception], ...]


class Clock(Protocol):
    """A monotonic clock in nanoseconds, a wall clock for people, and a way to wait.

    On one machine ``now_ns`` of a :class:`RealClock` is CLOCK_MONOTONIC, the same clock that rackd and
    rackprobe stamp with, so stamps of different processes may be subtracted.
    """

    def now_ns(self) -> int:
        """Nanoseconds since an arbitrary start; never goes back."""
        ...

    def wall(self) -> datetime:
        """The time of day, in UTC."""
        ...

    def sleep_until_ns(self, when_ns: int) -> None:
        """Return once ``now_ns() >= when_ns``."""
        ...


class RealClock:
    """The machine's clocks."""

    def now_ns(self) -> int:
        """CLOCK_MONOTONIC in nanoseconds."""
        return time.monotonic_ns()

    def wall(self) -> datetime:
        """The machine's time of day, in UTC."""
        return datetime.now(UTC)

    def sleep_until_ns(self, when_ns: int) -> None:
        """Sleep at least until ``when_ns``; the kernel may wake late, never early."""
        while (left_ns := when_ns - self.now_ns()) > 0:
            time.sleep(left_ns / 1e9)


class VirtualClock:
    """A clock for tests: it stands still until a caller sleeps on it or advances it."""

    def __init__(self, start_ns: int = 0, epoch: datetime | None = None) -> None:
        self._now_ns = start_ns
        self._epoch = epoch or datetime(2026, 1, 1, tzinfo=UTC)

    def now_ns(self) -> int:
        """The virtual time."""
        return self._now_ns

    def wall(self) -> datetime:
        """The epoch plus the virtual time."""
        return self._epoch + timedelta(microseconds=self._now_ns / 1000)

    def sleep_until_ns(self, when_ns: int) -> None:
        """Jump to ``when_ns`` at once."""
        self._now_ns = max(self._now_ns, when_ns)

    def advance(self, seconds: float) -> None:
        """Move the clock on by ``seconds``."""
        self._now_ns += round(seconds * 1e9)


@dataclass(frozen=True)
class Deadline:
    """A moment on a clock by which something must be done. Deadlines travel through calls, durations do not."""

    clock: Clock
    at_ns: int

    @classmethod
    def after(cls, clock: Clock, seconds: float) -> Deadline:
        """The deadline ``seconds`` from now."""
        return cls(clock, clock.now_ns() + round(seconds * 1e9))

    def remaining_s(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, (self.at_ns - self.clock.now_ns()) / 1e9)

    def is_over(self) -> bool:
        """Whether the moment has passed."""
        return self.clock.now_ns() >= self.at_ns

    def sooner(self, seconds: float) -> Deadline:
        """The earlier of this deadline and ``seconds`` from now."""
        return Deadline(self.clock, min(self.at_ns, self.clock.now_ns() + round(seconds * 1e9)))

    def in_turn(self, items: Collection[T]) -> Iterator[tuple[T, Deadline]]:
        """Each of ``items`` with its own deadline: an equal share of the time that is left when its turn comes."""
        for left, item in zip(range(len(items), 0, -1), items, strict=True):
            yield item, self.sooner(self.remaining_s() / left)

    def poll(self, look: Callable[[], T], done: Callable[[T], object] = bool, *, every_s: float) -> T:
        """Call ``look`` every ``every_s`` until what it returns is ``done``; the last that it returned in time.

        A wake-up that was due in time is followed by a look, however late this machine makes it.
        """
        while not done(seen := look()) and self._pause(every_s):
            pass
        return seen

    def retry(self, attempt: Callable[[], T], *transient: type[Exception], every_s: float, final: Errors = ()) -> T:
        """Make ``attempt`` every ``every_s`` while it raises one of these, not ``final``; raises the last in time."""
        while True:
            try:
                return attempt()
            except transient as error:
                if isinstance(error, final) or not self._pause(every_s):
                    raise

    def _pause(self, seconds: float) -> bool:
        """Sleep, no longer than until this moment; False where that was to be until it, or it had come."""
        wake = self.sooner(seconds)
        self.clock.sleep_until_ns(wake.at_ns)
        return wake.at_ns < self.at_ns
