"""Counters of a mock server's drives, which rackd is asked for only where they are looked at."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from rackloop_labs.mock_hosts._firmware import Firmware
from rackloop_labs.mock_hosts._view import Counters


def unasked() -> Mapping[str, int]:
    raise AssertionError("rackd was asked")


def test_counters_are_asked_for_once_and_when_they_are_looked_at() -> None:
    answers = iter([{"t_ns": 5, "reads": 1}])
    counters = Counters(lambda: next(answers))
    assert counters["reads"] == 1
    assert counters == {"reads": 1}


@pytest.mark.parametrize("limits", [None, (0, 0)])
def test_a_drive_without_password_and_limits_needs_no_counters(limits: tuple[int, int] | None) -> None:
    assert Firmware(limits=limits).at(1, Counters(unasked)).limits == limits


@pytest.mark.parametrize(("cycles", "limits", "is_locked"), [(3, (70, 70), False), (4, (0, 0), True)])
def test_a_power_cycle_locks_a_drive_and_ends_its_limits(cycles: int, limits: tuple[int, int], is_locked: bool) -> None:
    kept = Firmware(limits=(0, 0)).with_limits(70, 70, 3).with_password("secret", 3)
    now = kept.at(1, Counters(lambda: {"power_cycles": cycles}))
    assert (now.limits, now.is_locked) == (limits, is_locked)
