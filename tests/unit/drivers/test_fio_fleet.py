"""A fleet of fios of which one cannot be killed."""

from __future__ import annotations

from typing import Any, cast

import pytest

from rackloop.errors import LabError
from rackloop_drivers.workload import RunningFio, RunningFleet


class Fio:
    """A fio that runs; one that is stuck is in the kernel, as with I/O that a drive does not answer."""

    def __init__(self, *, is_stuck: bool = False) -> None:
        self.is_stuck = is_stuck
        self.is_killed = False

    def kill(self) -> None:
        self.is_killed = True
        if self.is_stuck:
            raise LabError("SIGKILL did not end it")


def test_one_that_is_stuck_keeps_no_other_from_being_killed() -> None:
    fios = {"srv1": Fio(), "srv2": Fio(is_stuck=True), "srv3": Fio()}
    with (
        pytest.raises(LabError, match="SIGKILL did not end it"),
        RunningFleet(cast(dict[str, RunningFio], cast(Any, fios)), agreed_ns=0, release_error_s=0.0),
    ):
        pass
    assert all(fio.is_killed for fio in fios.values())
