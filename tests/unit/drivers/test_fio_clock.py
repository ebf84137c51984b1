"""The wall clock that fio stamps with, on the run's clock, when fio begins and when it has ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import pytest

from rackloop.abilities import Completed, Executor
from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import ToolError
from rackloop_drivers.host_clock import ClockUnknown
from rackloop_drivers.workload._fio_clock import error_since, wall_reading

UNIX_S = 1_795_212_555
S = 1_000_000_000


class Host:
    """A place whose wall clock is so many seconds ahead of where it should be by now."""

    def __init__(self, clock: VirtualClock, ahead_s: float, printed: str | None = None) -> None:
        self._clock = clock
        self._ahead_s = ahead_s
        self._printed = printed

    def run(self, argv: Sequence[str], _deadline: Deadline) -> Completed:
        self._clock.advance(0.002)
        wall = UNIX_S * S + self._clock.now_ns() + round(self._ahead_s * 1e9)
        self._clock.advance(0.002)
        return Completed(tuple(argv), 0, f"{wall if self._printed is None else self._printed}\n", "")


def error_after(run_s: float, ahead_s: float, printed: str | None = None) -> float:
    clock = VirtualClock()
    first = wall_reading(str(UNIX_S * S), -3_000_000, 3_000_000)
    clock.advance(run_s)
    host = cast("Executor", Host(clock, ahead_s, printed))
    return error_since(first, host, clock, Deadline.after(clock, 10))


def test_a_clock_that_runs_true_is_known_as_well_as_it_was_read() -> None:
    assert error_after(100, 0) == pytest.approx(0.003, abs=1e-5)


@pytest.mark.parametrize("ahead_s", [-0.04, 0.04])
def test_what_it_drifted_meanwhile_is_in_the_error(ahead_s: float) -> None:
    assert error_after(100, ahead_s) == pytest.approx(0.042, abs=1e-5)


@pytest.mark.parametrize("ahead_s", [-3600, -0.1, 0.1, 3600])
def test_a_clock_that_was_set_says_nothing_of_when(ahead_s: float) -> None:
    with pytest.raises(
        ClockUnknown, match=rf"wall clock of this machine was set by about {abs(ahead_s):.3f} s while fio ran"
    ):
        error_after(100, ahead_s)


def test_a_host_whose_date_tells_no_nanoseconds_says_what_to_install() -> None:
    with pytest.raises(ToolError, match="printed '1795212555N', not nanoseconds: install GNU coreutils"):
        error_after(100, 0, "1795212555N")
