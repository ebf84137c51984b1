"""The offsets of a server's clocks from the harness's."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

from rackloop.abilities import Executor, Process
from rackloop.clock import Clock, Deadline
from rackloop.errors import LabError
from rackloop.inspection.timeline import ClockOffset, ClockReading, offset_of
from rackloop_drivers.host_tools._survey import name_of

# What both print of the same line gives the moment of the boot by the server's own time of day.
_FIRST_LINES: Final = "export LC_ALL=C; dmesg -r | head -n 1; dmesg --time-format iso | head -n 1"
_RAW = re.compile(r"<\d+>\[ *(\d+)\.(\d{6})\].*")
_ISO = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d),(\d{6})([+-]\d\d:\d\d)\s.*")
# One shell answers them all: what starting a command takes is not in the readings.
_TELL_TIME: Final = "while read -r line; do date +%s%N; done"
_READINGS = 10
_NS_PER_US = 1000


def kernel_clock(executor: Executor, clock: Clock, deadline: Deadline) -> ClockOffset:
    """The offset of the clock that stamps the kernel log of the server behind ``executor`` from ``clock``.

    By the server's time of day, which is read ten times between two stamps, and by what dmesg makes of the first
    line's stamp. A kernel's log clock is not steered and may have drifted since the boot by parts per million of its
    uptime, which the error does not have. Raises LabError where the server cannot be asked or answers in another form.
    """
    telling = executor.start(["sh", "-c", _TELL_TIME])
    try:
        wall = offset_of([_time_of_day(telling, name_of(executor), clock, deadline) for _ in range(_READINGS)])
    finally:
        telling.kill()
    return ClockOffset(wall.offset_ns - _booted_ns(executor, deadline), wall.error_ns + _NS_PER_US)


def _time_of_day(telling: Process, host: str, clock: Clock, deadline: Deadline) -> ClockReading:
    before_ns = clock.now_ns()
    telling.write_line("")
    said = telling.read_line(deadline)
    after_ns = clock.now_ns()
    if said is None or not said.isdigit():
        raise LabError(f"{host}: date printed {said!r} for the time in nanoseconds; install coreutils there")
    return ClockReading(before_ns, int(said), after_ns)


def _booted_ns(executor: Executor, deadline: Deadline) -> int:
    """The moment of the boot by the server's time of day, nanoseconds since 1970."""
    said = executor.run(["sh", "-c", _FIRST_LINES], deadline).stdout.splitlines()
    raw, iso = (_RAW.fullmatch(said[0]), _ISO.fullmatch(said[1])) if len(said) == 2 else (None, None)
    if raw is None or iso is None:
        raise LabError(
            f"{name_of(executor)}: dmesg does not give the same line with both stamps; its kernel log cannot be "
            "related to the run's clock"
        )
    wall = datetime.fromisoformat(iso[1] + iso[3])
    wall_us = round(wall.timestamp()) * 1_000_000 + int(iso[2])
    return (wall_us - int(raw[1]) * 1_000_000 - int(raw[2])) * _NS_PER_US
