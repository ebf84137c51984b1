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
_NS_PER_S = 1_000_000_000
# Both of the same instant, as nearly as a shell can; the uptime counts hundredths of a second.
_UPTIME: Final = "read -r up _ </proc/uptime && echo $up && date +%s%N && read -r up _ </proc/uptime && echo $up"
_UPTIME_STEP_NS = 10_000_000
_UP = re.compile(r"(\d+)\.(\d\d)")


def wall_clock(executor: Executor, clock: Clock, deadline: Deadline, *, enough_s: float = 0.0) -> ClockOffset:
    """The offset of the time of day of ``executor``'s machine, in nanoseconds since 1970, from ``clock``.

    It is read ten times between two stamps, by one shell, and fewer where it is known to ``enough_s`` before. Raises
    LabError where the machine cannot be asked or answers in another form.
    """
    telling = executor.start(["sh", "-c", _TELL_TIME])
    readings: list[ClockReading] = []
    try:
        while len(readings) < _READINGS and (not readings or offset_of(readings).error_ns > enough_s * 1e9):
            readings.append(_time_of_day(telling, name_of(executor), clock, deadline))
    finally:
        telling.kill()
    return offset_of(readings)


def kernel_clock(executor: Executor, clock: Clock, deadline: Deadline) -> ClockOffset:
    """The offset of the clock that stamps the kernel log of the server behind ``executor`` from ``clock``.

    By the server's time of day, what dmesg makes of the first line's stamp, and the server's uptime: dmesg of
    util-linux 2.38 leaves out the fraction of the second in which the server booted. A kernel's log clock is not
    steered and may have drifted since the boot by parts per million of its uptime, which the error does not have.
    Raises LabError where the server cannot be asked or answers in another form.
    """
    wall = wall_clock(executor, clock, deadline)
    booted_ns, error_ns = _booted(executor, deadline)
    return ClockOffset(wall.offset_ns - booted_ns, wall.error_ns + error_ns)


def _time_of_day(telling: Process, host: str, clock: Clock, deadline: Deadline) -> ClockReading:
    before_ns = clock.now_ns()
    telling.write_line("")
    said = telling.read_line(deadline)
    after_ns = clock.now_ns()
    if said is None or not said.isdigit():
        raise LabError(f"{host}: date printed {said!r} for the time in nanoseconds; install coreutils there")
    return ClockReading(before_ns, int(said), after_ns)


def _booted(executor: Executor, deadline: Deadline) -> tuple[int, int]:
    """The moment of the boot by the server's time of day, nanoseconds since 1970, and the error of that."""
    said = executor.run(["sh", "-c", _FIRST_LINES], deadline).stdout.splitlines()
    raw, iso = (_RAW.fullmatch(said[0]), _ISO.fullmatch(said[1])) if len(said) == 2 else (None, None)
    if raw is None or iso is None:
        raise LabError(
            f"{name_of(executor)}: dmesg does not give the same line with both stamps; its kernel log cannot be "
            "related to the run's clock"
        )
    wall = datetime.fromisoformat(iso[1] + iso[3])
    wall_us = round(wall.timestamp()) * 1_000_000 + int(iso[2])
    booted_ns = (wall_us - int(raw[1]) * 1_000_000 - int(raw[2])) * _NS_PER_US
    if iso[2] != raw[2]:
        return booted_ns, _NS_PER_US
    # The boot seems to have been at a full second; the uptime says where in that second it was.
    by_uptime = _booted_by_uptime(executor, deadline)
    if by_uptime is not None and booted_ns <= by_uptime[1] and by_uptime[0] < booted_ns + _NS_PER_S:
        return sum(by_uptime) // 2, (by_uptime[1] - by_uptime[0]) // 2
    return booted_ns, _NS_PER_US


def _booted_by_uptime(executor: Executor, deadline: Deadline) -> tuple[int, int] | None:
    """The earliest and the latest moment of the boot, by the time of day and the uptime; None where neither is told."""
    said = executor.run(["sh", "-c", _UPTIME], deadline).stdout.split()
    ups = [_UP.fullmatch(each) for each in said[::2]]
    if len(said) != 3 or not said[1].isdigit() or None in ups:
        return None
    before_ns, after_ns = (int(up[1]) * _NS_PER_S + int(up[2]) * _UPTIME_STEP_NS for up in ups if up is not None)
    return int(said[1]) - after_ns - _UPTIME_STEP_NS, int(said[1]) - before_ns
