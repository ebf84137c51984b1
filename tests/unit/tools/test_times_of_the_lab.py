"""Commands wait for as long as the lab's description says that things take, and never for less than is usual."""

from __future__ import annotations

from typing import Any

import pytest

from rackloop.clock import VirtualClock
from rackloop.lab import Lab, TimeName, load_lab
from rackloop_cli.fabric import verbs
from rackloop_cli.lab import discover

CLOCK = VirtualClock()


@pytest.mark.parametrize(
    ("time", "least_s", "deadline"),
    [
        ("act", 10.0, lambda lab: verbs._deadline(lab, CLOCK)),
        ("tools", 60.0, lambda lab: discover._deadline(CLOCK, lab)),
    ],
)
def test_a_slow_rack_has_the_time_that_it_says(time: TimeName, least_s: float, deadline: Any) -> None:
    lab = load_lab("mock")

    def described(seconds: float) -> Lab:
        return lab.model_copy(update={"times": lab.times.model_copy(update={time: seconds})})

    assert deadline(described(300.0)).remaining_s() == 300.0
    assert deadline(described(1.0)).remaining_s() == least_s
