"""The wall clock of fio's host, which its logs are stamped with, on the run's clock."""

from __future__ import annotations

from dataclasses import dataclass

from rackloop.abilities import Executor
from rackloop.clock import Clock, Deadline
from rackloop.errors import ToolError
from rackloop_drivers.host_clock import DRIFT_PPM, ClockUnknown
from rackloop_drivers.host_tools import name_of


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


def error_since(first: WallReading, executor: Executor, clock: Clock, deadline: Deadline) -> float:
    """The error of stamps since ``first``, in seconds, by another reading now.

    Raises ClockUnknown where the wall clock was set meanwhile: no stamp says whether it is of before or behind that.
    """
    before_ns = clock.now_ns()
    printed = executor.run(("date", "+%s%N"), deadline).stdout.strip()
    now = wall_reading(printed, before_ns, clock.now_ns())
    passed_s = (now.run_ns - first.run_ns) / 1e9
    off_s = abs(now.unix_s - first.unix_s - passed_s)
    if off_s > first.error_s + now.error_s + passed_s * DRIFT_PPM / 1e6:
        raise ClockUnknown(
            f"the wall clock of {name_of(executor)} was set by about {off_s:.3f} s while fio ran: its series cannot be "
            "compared with anything; measure anew"
        )
    return max(first.error_s, off_s + now.error_s)
