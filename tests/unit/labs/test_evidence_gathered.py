"""The logs of servers as evidence, where they could not be read in full."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import LabError
from rackloop.inspection.health import HealthSnapshot, KernelLine, KernelPosition, ServerHealth
from rackloop_labs.evidence import Gathered, gather

LOST = "what it said before 12.5 s was overwritten before it was read"


def gathered(server: ServerHealth) -> Gathered:
    """The evidence of a rack whose one server does not tell its time."""

    def host(_server: str) -> Any:
        raise LabError("no date there")

    clock = VirtualClock()
    bench: Any = SimpleNamespace(lab=SimpleNamespace(servers={"srv1": None}), clock=clock, host=host, event_logs={})
    [found] = gather(bench, 0, HealthSnapshot(0, 1, servers={"srv1": server}), Deadline.after(clock, 30))
    return found


@pytest.mark.parametrize(
    ("unreadable", "unread"),
    [
        ({}, "its clock is not known: no date there"),
        ({"kernel log": LOST}, f"not read in full: {LOST}; its clock is not known: no date there"),
    ],
)
def test_what_a_kernel_said_last_is_there_though_it_said_more_than_its_log_holds(
    unreadable: dict[str, str], unread: str
) -> None:
    line = KernelLine(13_000_000, 3, "I/O error, dev sdb, sector 8")
    found = gathered(ServerHealth(KernelPosition("b", 13_000_000), kernel=(line,), unreadable=unreadable))
    assert [(one.own_stamp, one.text) for one in found.lines] == [("[   13.000000]", line.text)]
    assert found.source.unread == unread


def test_a_log_of_which_nothing_was_read_says_why() -> None:
    found = gathered(ServerHealth(KernelPosition("b", -1), unreadable={"kernel log": "Operation not permitted"}))
    assert (found.source.unread, found.lines) == ("not read: Operation not permitted", ())
