"""A server that is slow, of which its lab says so, is given the time to tell of its drives."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import pytest

from rackloop.abilities import Completed
from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import LabError
from rackloop_drivers.block import HostPath
from rackloop_drivers.host_tools import survey_host
from tests.unit.models.run_only_executor import RunOnlyExecutor


class Asked(RunOnlyExecutor):
    """A server that answers nothing, and remembers how long each tool, and all of it, may have taken."""

    def __init__(self) -> None:
        self.tool_s: list[int] = []
        self.all_s: list[float] = []

    def run(self, argv: Sequence[str], deadline: Deadline, *, stdin: str = "") -> Completed:
        self.tool_s.append(int(argv[4]))
        self.all_s.append(deadline.remaining_s())
        return Completed(tuple(argv), 1, "", "nothing is here")


@pytest.mark.parametrize(("within_s", "tool_s"), [(5, 10), (30, 10), (60, 15), (300, 75)])
def test_a_tool_has_a_part_of_the_time_that_all_of_them_have(within_s: float, tool_s: int) -> None:
    server = Asked()
    with suppress(LabError):
        survey_host(server, Deadline.after(VirtualClock(), within_s))
    assert server.tool_s == [tool_s]


def test_a_drive_is_looked_at_for_as_long_as_its_lab_allows() -> None:
    server = Asked()
    for device in (HostPath(server, "pci-0", VirtualClock()), HostPath(server, "pci-0", VirtualClock(), within_s=240)):
        with suppress(LabError):
            device.probe_target()
    assert server.all_s == [30, 240]
    assert server.tool_s == [10, 60]


@pytest.mark.parametrize(
    ("device", "target"),
    [
        ("pci-0000:01:00.0", "/dev/disk/by-path/pci-0000:01:00.0"),
        ("/dev/disk/by-id/wwn-0x5", "/dev/disk/by-id/wwn-0x5"),
    ],
)
def test_a_port_is_known_without_asking_which_kind_of_drive_it_has(device: str, target: str) -> None:
    server = Asked()
    assert HostPath(server, device, VirtualClock()).port_target() == target
    assert server.all_s == []
