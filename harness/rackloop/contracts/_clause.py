"""Helpers of several contracts: their lists of clauses, deadlines, errors and ends that must come."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FunctionType
from typing import Any

from rackloop.abilities import Executor
from rackloop.clock import Deadline, RealClock
from rackloop.errors import RackloopError

CLOCK = RealClock()
PATIENCE_S: ContextVar[float] = ContextVar("patience_s", default=60.0)
"""The time for a step of a clause that has no deadline of its own: longer than any box that works takes."""


def clauses(contract: str) -> tuple[Callable[[Any], None], ...]:
    """The clauses of a contract, in their order: the public functions that its module defines above the call."""
    defined = [found for found in vars(sys.modules[contract]).values() if isinstance(found, FunctionType)]
    return tuple(one for one in defined if one.__module__ == contract and not one.__name__.startswith("_"))


def soon() -> Deadline:
    """The deadline of such a step."""
    return Deadline.after(CLOCK, PATIENCE_S.get())


def past() -> Deadline:
    """A moment that is over."""
    return Deadline(CLOCK, CLOCK.now_ns())


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


def await_end(executor: Executor, pid: str) -> None:
    """Return once process ``pid`` runs no more; a zombie that waits for its parent has ended."""
    script = 'test ! -e "/proc/$1" || grep -q "^State:.[ZX]" "/proc/$1/status"'
    is_gone = soon().poll(lambda: executor.run(("sh", "-c", script, "gone", pid), soon()).status == 0, every_s=0.01)
    assert is_gone, f"process {pid} still runs"
