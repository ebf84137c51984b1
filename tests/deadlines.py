"""Deadlines of single steps in tests."""

from __future__ import annotations

from rackloop.clock import Clock, Deadline, RealClock

CLOCK = RealClock()


def soon(seconds: float = 120.0, clock: Clock = CLOCK) -> Deadline:
    """A deadline that a step reaches only when it hangs, even on a machine that stands still for a while."""
    return Deadline.after(clock, seconds)
