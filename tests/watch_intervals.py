"""Parts of watches, as rackprobe reports them."""

from __future__ import annotations

from rackloop_drivers.workload import WatchInterval


def interval(until_s: float, *, completed: int = 10, errors: int = 0, clock_error_ns: int = 0) -> WatchInterval:
    """A part of a watch that ended ``until_s`` seconds after its beginning."""
    return WatchInterval(
        t_ns=round(until_s * 1e9),
        completed=completed,
        in_flight=1,
        errors=errors,
        last_error=None,
        bytes=0,
        max_us=0.0,
        max_submit_ns=0,
        max_complete_ns=0,
        verdicts={},
        offenders=(),
        clock_error_ns=clock_error_ns,
    )
