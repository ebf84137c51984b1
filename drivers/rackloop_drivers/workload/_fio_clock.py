"""The wall clock of fio's host, which its logs are stamped with, on the run's clock."""

from __future__ import annotations

from dataclasses import dataclass

from rackloop.abilities import Executor
from rackloop.clock import Clock, Deadline
from rackloop.errors import ToolError
from rackloop_drivers.clock_rate import DRIFT_PPM
from rackloop_drivers.host_clock import ClockUnknown
from rackloop_drivers.host_tools import name_of, wall_clock

# The error of a reading that no other is taken for: each takes a program on the host.
ENOUGH_S = 5e-3


@dataclass(frozen=True)
class WallReading:
    """A moment on the host's wall clock and the run's, off by at most ``error_s``."""

    unix_s: float
    run_ns: int
    error_s: float


def wall_reading(printed: str, before_ns: int, after_ns: int) -> WallReading:
    """The reading that ``date +%s%N`` printed between two stamps of the run's. Raises ToolError where it is no time."""
    if not printed.isdigit():
        raise ToolError(f"'date +%s%N' where fio runs printed {printed!r}, not nanoseconds: install GNU coreutils")
    return WallReading(int(printed) / 1e9, (before_ns + after_ns) // 2, (after_ns - before_ns) / 2e9)


def refined_reading(first: WallReading, executor: Executor, clock: Clock, deadline: Deadline) -> WallReading:
    """The moment with the smaller error, by a second reading of the wall clock; it holds for all stamps since then.

    On a busy server the first reading, which begins fio, may have taken half a second. Raises ClockUnknown where the
    wall clock was set meanwhile: no stamp says whether it is of before or behind that.
    """
    wall = wall_clock(executor, clock, deadline, enough_s=ENOUGH_S)
    again_ns, again_s = wall.run_ns(round(first.unix_s * 1e9)), wall.error_ns / 1e9
    off_s = abs(again_ns - first.run_ns) / 1e9
    drift_s = (clock.now_ns() - first.run_ns) / 1e9 * DRIFT_PPM / 1e6
    if off_s > first.error_s + again_s + drift_s:
        raise ClockUnknown(
            f"the wall clock of {name_of(executor)} was set by about {off_s:.3f} s while fio ran: its series cannot be "
            "compared with anything; measure anew"
        )
    if again_s + drift_s < first.error_s:
        return WallReading(first.unix_s, again_ns, again_s + drift_s)
    return WallReading(first.unix_s, first.run_ns, max(first.error_s, off_s + again_s))
