"""The wall clock that fio stamps with, on the run's clock, when fio begins and when it has ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import pytest

from rackloop.abilities import Executor
from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import ToolError
from rackloop_drivers.host_clock import ClockUnknown
from rackloop_drivers.workload._fio_clock import WallReading, refined_reading, wall_reading

UNIX_S = 1_795_212_555
S = 1_000_000_000


class Host:
    """A place whose wall clock is so many seconds ahead of where it should be by now, as a shell tells it."""

    def __init__(self, clock: VirtualClock, ahead_s: float) -> None:
        self._clock = clock
        self._ahead_s = ahead_s

    def start(self, _argv: Sequence[str]) -> Host:
        return self

    def write_line(self, _line: str) -> None:
        self._clock.advance(0.002)

    def read_line(self, _deadline: Deadline) -> str:
        wall = UNIX_S * S + self._clock.now_ns() + round(self._ahead_s * 1e9)
        self._clock.advance(0.002)
        return str(wall)

    def kill(self) -> None:
        pass


def reading_after(run_s: float, ahead_s: float, *, first_s: float = 0.006) -> WallReading:
    """Fio began at 0 on the run's clock; that took ``first_s``, in the middle of which its wall clock was read."""
    clock = VirtualClock()
    first = wall_reading(str(UNIX_S * S), round(-first_s / 2 * 1e9), round(first_s / 2 * 1e9))
    clock.advance(run_s)
    host = cast("Executor", Host(clock, ahead_s))
    return refined_reading(first, host, clock, Deadline.after(clock, 10))


def test_a_clock_that_runs_true_is_known_as_well_as_it_was_read() -> None:
    known = reading_after(100, 0)
    assert (known.unix_s, known.run_ns) == (UNIX_S, 0)
    assert known.error_s == pytest.approx(0.003, abs=1e-5)


@pytest.mark.parametrize("ahead_s", [-0.04, 0.04])
def test_what_it_drifted_meanwhile_is_in_the_error(ahead_s: float) -> None:
    assert reading_after(100, ahead_s).error_s == pytest.approx(0.042, abs=1e-5)


@pytest.mark.parametrize("ahead_s", [-0.3, 0.3])
def test_a_start_that_took_its_time_is_known_from_the_end(ahead_s: float) -> None:
    """Of a second that the start took, nobody knows when in it the clock was read; at the end that is known to 2 ms."""
    known = reading_after(20, ahead_s, first_s=1)
    assert known.run_ns == pytest.approx(-ahead_s * 1e9, abs=0.002e9)
    assert known.error_s == pytest.approx(0.012, abs=1e-4)


@pytest.mark.parametrize("ahead_s", [-3600, -0.1, 0.1, 3600])
def test_a_clock_that_was_set_says_nothing_of_when(ahead_s: float) -> None:
    with pytest.raises(
        ClockUnknown, match=rf"wall clock of this machine was set by about {abs(ahead_s):.3f} s while fio ran"
    ):
        reading_after(100, ahead_s)


def test_a_host_whose_date_tells_no_nanoseconds_says_what_to_install() -> None:
    with pytest.raises(ToolError, match="printed '1795212555N', not nanoseconds: install GNU coreutils"):
        wall_reading("1795212555N", 0, 1)
