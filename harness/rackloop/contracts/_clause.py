"""Helpers of several contracts' clauses: a deadline that is far enough, and an error that must come."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rackloop.clock import Deadline, RealClock
from rackloop.errors import RackloopError

CLOCK = RealClock()


def soon() -> Deadline:
    """Later than any box that works takes."""
    return Deadline.after(CLOCK, 20)


@contextmanager
def must_raise(kind: type[RackloopError], named: str = "") -> Iterator[None]:
    """Fail unless the body raises ``kind``, with ``named`` in its message."""
    try:
        yield
    except kind as error:
        message = str(error)
    else:
        raise AssertionError(f"no {kind.__name__} was raised")
    assert named in message, f"the error does not name {named}: {message}"
