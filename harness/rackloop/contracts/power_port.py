"""The contract of every :class:`~rackloop.abilities.PowerPort` with its callers.

The factory may be called several times and gives drivers of the same outlet; each clause leaves the outlet as it was.
On a real arm the outlet has to feed something that may lose its power at any moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rackloop.abilities import PowerPort
from rackloop.contracts._clause import clauses, must_raise, past, soon
from rackloop.errors import DeadlineExceeded

PowerPortFactory = Callable[[], PowerPort]


def says_what_it_was_told(make: PowerPortFactory) -> None:
    """Once ``turn_on`` or ``turn_off`` has returned, ``is_on`` answers accordingly."""
    with _left_as_found(make()) as port:
        for is_on in (False, True, False):
            _turn(port, is_on=is_on)
            assert port.is_on(soon()) is is_on


def may_be_told_twice(make: PowerPortFactory) -> None:
    """To turn on what is on, or off what is off, is no error and changes nothing."""
    with _left_as_found(make()) as port:
        for is_on in (True, True, False, False):
            _turn(port, is_on=is_on)
            assert port.is_on(soon()) is is_on


def keeps_its_state_in_the_box(make: PowerPortFactory) -> None:
    """A second driver of the same outlet sees what the first one did: nothing is remembered outside the box."""
    with _left_as_found(make()) as port:
        other = make()
        for is_on in (False, True):
            _turn(port, is_on=is_on)
            assert other.is_on(soon()) is is_on


def refuses_a_deadline_that_is_over(make: PowerPortFactory) -> None:
    """A call that comes too late raises DeadlineExceeded and does not switch."""
    with _left_as_found(make()) as port:
        _turn(port, is_on=True)
        for late in (port.turn_on, port.turn_off, port.is_on):
            with must_raise(DeadlineExceeded):
                late(past())
        assert port.is_on(soon()), "a turn_off whose deadline was over switched the outlet off"


CONTRACT = clauses(__name__)


def _turn(port: PowerPort, *, is_on: bool) -> None:
    (port.turn_on if is_on else port.turn_off)(soon())


@contextmanager
def _left_as_found(port: PowerPort) -> Iterator[PowerPort]:
    was_on = port.is_on(soon())
    try:
        yield port
    finally:
        _turn(port, is_on=was_on)
