"""A fleet of fios of which one cannot be killed, or does not begin all its threads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest

from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import LabError, ToolError
from rackloop_drivers.workload import FioResult, RunningFio, RunningFleet

SOON = Deadline.after(VirtualClock(start_ns=10**9), 10)


class Fio:
    """A fio that runs; one that is stuck is in the kernel, as with I/O that a drive does not answer.

    ``began`` is what the holds of its threads left on its host.
    """

    started_ns = 0
    began_unix_s = 1.0

    def __init__(self, *, is_stuck: bool = False, began: str = "") -> None:
        self.is_stuck = is_stuck
        self.is_killed = False
        self.logs = {"fio-1.began": began}

    def wait(self, _deadline: Deadline) -> FioResult:
        return FioResult((), 0, 0.001)

    def kill(self) -> None:
        self.is_killed = True
        if self.is_stuck:
            raise LabError("SIGKILL did not end it")


def fleet_of(fios: Mapping[str, Fio], threads: int = 1) -> RunningFleet:
    running = cast(Mapping[str, RunningFio], cast(Any, fios))
    return RunningFleet(running, agreed_ns=0, release_error_s=0.0, threads=dict.fromkeys(fios, threads))


def test_one_that_is_stuck_keeps_no_other_from_being_killed() -> None:
    fios = {"srv1": Fio(), "srv2": Fio(is_stuck=True), "srv3": Fio()}
    with pytest.raises(LabError, match="SIGKILL did not end it"), fleet_of(fios):
        pass
    assert all(fio.is_killed for fio in fios.values())


@pytest.mark.parametrize("began", ["", "1000000000\n", "1000000000\n10000"])
def test_threads_that_did_not_begin_are_missed(began: str) -> None:
    fios = {"srv1": Fio(began="1000000000\n1500000000\n1500000001\n"), "srv2": Fio(began=began)}
    with (
        pytest.raises(ToolError, match=r"^srv2: [012] of 3 threads of fio began: is the disk full there"),
        fleet_of(fios, threads=3) as running,
    ):
        running.wait(SOON)


def test_the_last_thread_says_when_a_host_began() -> None:
    fios = {"srv1": Fio(began="1000000000\n1500000000\n"), "srv2": Fio(began="1250000000\n1000000000\n")}
    with fleet_of(fios, threads=2) as running:
        assert running.wait(SOON).began_s == {"srv1": 0.5, "srv2": 0.25}
