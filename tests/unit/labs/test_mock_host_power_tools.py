"""reboot, poweroff, halt and shutdown of a mock server: what they plan and what they print."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from rackloop_labs.mock_hosts._power_tools import Planned, PowerAct, plan_power
from rackloop_labs.mock_hosts._view import Answer

NOW = datetime(2026, 3, 1, 23, 58, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("line", "planned"),
    [
        ("reboot", Planned(PowerAct.REBOOT)),
        ("reboot -f", Planned(PowerAct.REBOOT)),
        ("reboot --poweroff", Planned(PowerAct.POWER_OFF)),
        ("poweroff", Planned(PowerAct.POWER_OFF)),
        ("halt", Planned(PowerAct.HALT)),
        ("halt -p", Planned(PowerAct.POWER_OFF)),
        ("shutdown now", Planned(PowerAct.POWER_OFF)),
        ("shutdown -h 0", Planned(PowerAct.POWER_OFF)),
        ("shutdown -r +0 going down", Planned(PowerAct.REBOOT)),
        ("shutdown -H now", Planned(PowerAct.HALT)),
        ("shutdown -c", Planned(PowerAct.CANCEL)),
    ],
)
def test_what_happens_at_once_prints_nothing(line: str, planned: Planned) -> None:
    tool, *argv = line.split()
    assert plan_power(tool, argv, NOW) == (Answer(), planned)


@pytest.mark.parametrize(
    ("line", "in_s", "said"),
    [
        ("shutdown", 60, "Shutdown scheduled for Sun 2026-03-01 23:59:30 UTC, use 'shutdown -c' to cancel.\n"),
        ("shutdown -r +3", 180, "Reboot scheduled for Mon 2026-03-02 00:01:30 UTC, use 'shutdown -c' to cancel.\n"),
        ("shutdown 23:59", 30, "Shutdown scheduled for Sun 2026-03-01 23:59:00 UTC, use 'shutdown -c' to cancel.\n"),
        ("shutdown 00:00", 90, "Shutdown scheduled for Mon 2026-03-02 00:00:00 UTC, use 'shutdown -c' to cancel.\n"),
    ],
)
def test_what_happens_later_says_when(line: str, in_s: float, said: str) -> None:
    tool, *argv = line.split()
    answer, planned = plan_power(tool, argv, NOW)
    assert answer == Answer(stderr=said)
    assert planned is not None
    assert planned.in_s == in_s


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("reboot --fast", "reboot: unrecognized option '--fast'\n"),
        ("shutdown tomorrow", "Failed to parse time specification: tomorrow\n"),
        ("shutdown 25:00", "Failed to parse time specification: 25:00\n"),
    ],
)
def test_what_makes_no_sense_plans_nothing(line: str, said: str) -> None:
    tool, *argv = line.split()
    assert plan_power(tool, argv, NOW) == (Answer(stderr=said, status=1), None)
