"""A server that is slow, of which its lab says so, is given the time to tell of its drives."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest

from rackloop.abilities import Completed
from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import LabError, NotConnected, NotSupported
from rackloop.lab import load_lab
from rackloop_drivers.block import ArrayDevice, HostPath
from rackloop_drivers.host_tools import survey_host
from rackloop_labs.host_breakables import host_registers
from tests.unit.models.run_only_executor import RunOnlyExecutor


class Asked(RunOnlyExecutor):
    """A server that answers nothing, and remembers how long each tool, and all of it, may have taken."""

    def __init__(self, complains: str = "nothing is here") -> None:
        self._complains = complains
        self.tool_s: list[int] = []
        self.all_s: list[float] = []

    def run(self, argv: Sequence[str], deadline: Deadline, *, stdin: str = "") -> Completed:
        self.tool_s += [int(word) for word in argv[4:5] if word.isdecimal()]
        self.all_s.append(deadline.remaining_s())
        return Completed(tuple(argv), 1, "", self._complains)


@pytest.mark.parametrize(("within_s", "tool_s"), [(0.5, 1), (5, 3), (10, 7), (30, 10), (60, 15), (300, 75)])
def test_a_tool_has_a_part_of_the_time_that_all_of_them_have(within_s: float, tool_s: int) -> None:
    server = Asked()
    with suppress(LabError):
        survey_host(server, Deadline.after(VirtualClock(), within_s))
    assert server.tool_s == [tool_s]


@pytest.mark.parametrize(
    ("complains", "told"),
    [("no shell", "no shell"), ("\x1evalues -\nit is full\n", "it is full"), ("\x1evalues -\n", "exit status 1")],
)
def test_a_survey_that_failed_is_told_by_its_last_complaint(complains: str, told: str) -> None:
    with pytest.raises(LabError, match=f"the survey of its drives failed: {told}$"):
        survey_host(Asked(complains), Deadline.after(VirtualClock(), 30))


def test_a_drive_is_looked_at_for_as_long_as_its_lab_allows() -> None:
    server = Asked()
    for device in (HostPath(server, "pci-0", VirtualClock()), HostPath(server, "pci-0", VirtualClock(), within_s=240)):
        with suppress(LabError):
            device.probe_target()
    assert server.all_s == [30, 240]
    assert server.tool_s == [10, 60]


class Streaming(Asked):
    """The same, to which a stream of bytes could be had."""

    name = "srv1"

    def run(self, argv: Sequence[str], deadline: Deadline, *, stdin: str = "") -> Completed:
        completed = super().run(argv, deadline, stdin=stdin)
        if "noted" in argv:
            raise NotConnected("srv1 boots")
        return completed

    def open_stream(self, argv: Sequence[str]) -> Any:
        raise NotSupported(f"{argv} is not started here")

    start_aside = open_stream

    def read_file(self, path: str, deadline: Deadline) -> bytes:
        raise NotSupported(f"{path} is not read here by {deadline}")

    def write_file(self, path: str, content: bytes, deadline: Deadline, *, mode: int = 0o600) -> None:
        raise NotSupported(f"{len(content)} bytes are not put at {path} with mode {mode} by {deadline}")

    def give_up(self) -> None:
        pass

    def reconnect(self, deadline: Deadline) -> int:
        raise NotSupported(f"it is not reached by {deadline}")


@pytest.mark.parametrize(("within_s", "all_s"), [(10, 30), (240, 240)])
def test_what_serves_a_drive_begins_within_the_time_of_its_lab(within_s: float, all_s: float) -> None:
    server = Streaming()
    array = ArrayDevice(server, VirtualClock(), "/dev/md127", "0:1:2:3", 1 << 30, within_s=within_s)
    with pytest.raises(LabError, match="nothing is here"):
        array.serve(writes=False)
    assert server.all_s == [all_s]


@pytest.mark.parametrize(("answer", "all_s"), [({}, 5), ({"answer": 240}, 240)])
def test_a_server_is_asked_for_its_faults_for_as_long_as_its_lab_allows(answer: dict[str, float], all_s: float) -> None:
    lab = load_lab("mock")
    lab = lab.model_copy(update={"times": lab.times.model_copy(update=answer)})
    server: Any = Streaming()
    parts: dict[str, Any] = {"phy:srv1/p0": None}
    [register] = host_registers(lab, {"srv1": server}, parts)
    with pytest.raises(NotSupported, match="it is not reached"):
        register.standing(Deadline.after(VirtualClock(), 600))
    assert server.all_s == [all_s]


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
