"""Waiting until a box says that it is as it was told to be: many take a command long before they carry it out."""

from __future__ import annotations

from collections.abc import Callable

from rackloop.clock import Deadline
from rackloop.errors import DeadlineExceeded

__all__ = ["wait_until"]


def wait_until(reads_back: Callable[[], bool], deadline: Deadline, *, every_s: float, otherwise: str) -> None:
    """Ask until ``reads_back()`` is true; raises DeadlineExceeded with ``otherwise`` where it is not in time."""
    clock = deadline.clock
    while not reads_back():
        clock.sleep_until_ns(min(clock.now_ns() + round(every_s * 1e9), deadline.at_ns))
        if deadline.is_over():
            raise DeadlineExceeded(otherwise)
