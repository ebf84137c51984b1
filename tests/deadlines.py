"""Deadlines of single steps in tests."""

from __future__ import annotations

from rackloop.clock import Clock, Deadline, RealClock

CLOCK = RealClock()


def soon(seconds: float = 20.0, clock: Clock = CLOCK) -> Deadline:
    """A deadline that a step reaches only when it hangs, even on a busy machine."""
    return Deadline.after(clock, seconds)
