"""The contract of every :class:`~rackloop.abilities.SystemEventLog` with its callers.

On a real arm ``provoke`` does something the controller takes note of, such as cycling the power of a spare server.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from rackloop.abilities import SystemEventLog
from rackloop.contracts._clause import clauses, must_raise, past, soon
from rackloop.errors import DeadlineExceeded

# Controllers keep time in whole seconds.
_RESOLUTION = timedelta(seconds=1)


@dataclass(frozen=True)
class EventLogArm:
    """Access to a log, several times, and a way to have its controller note something."""

    make: Callable[[], SystemEventLog]
    provoke: Callable[[], None]


def tells_what_happened_since(arm: EventLogArm) -> None:
    """An event gets entries behind those there were, which say what and when, by the controller's own clock."""
    log = arm.make()
    before, began = log.events(soon()), log.now(soon())
    arm.provoke()
    after, ended = log.events(soon()), log.now(soon())
    last = max((event.number for event in before), default=-1)
    fresh = [event for event in after if event.number > last]
    assert fresh, f"none of {len(after)} entries is newer than number {last}"
    for event in fresh:
        assert event.sensor, f"{event} names no sensor"
        assert event.text, f"{event} says nothing"
        assert event.at is None or began - _RESOLUTION <= event.at <= ended + _RESOLUTION, f"not in time: {event}"
    assert [event for event in after if event.number <= last] == before, "what had been noted before has changed"


def counts_its_entries(arm: EventLogArm) -> None:
    """Entries come oldest first, each with a number of its own."""
    for _ in range(2):
        arm.provoke()
    numbers = [event.number for event in arm.make().events(soon())]
    assert numbers == sorted(set(numbers)), f"numbers are not in order: {numbers}"


def reads_without_changing(arm: EventLogArm) -> None:
    """To read the log adds nothing to it; a second driver reads the same."""
    arm.provoke()
    assert arm.make().events(soon()) == arm.make().events(soon())


def knows_the_time(arm: EventLogArm) -> None:
    """The controller's clock has a time zone and does not go back."""
    log = arm.make()
    first, second = log.now(soon()), log.now(soon())
    assert first.tzinfo is not None, "a time without a time zone"
    assert first <= second


def refuses_a_deadline_that_is_over(arm: EventLogArm) -> None:
    """A call that comes too late raises DeadlineExceeded."""
    log = arm.make()
    for late in (log.events, log.now):
        with must_raise(DeadlineExceeded):
            late(past())


CONTRACT = clauses(__name__)
