"""The process that is the switch of a mock lab: it goes with labd, however that ends, and labd goes with it."""

from __future__ import annotations

import os
import select
import signal
from contextlib import ExitStack
from pathlib import Path

from rackloop.errors import DeadlineExceeded
from rackloop.lab import LabState, load_lab
from rackloop_labs import MockLab
from tests.deadlines import CLOCK, soon

SWITCH = "rackloop_drivers.fabric.flexfabric.peer.process"


def children(pid: int) -> dict[str, int]:
    """The processes that ``pid`` started, by the last word of their command but options."""
    found = {}
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        words = Path(f"/proc/{child}/cmdline").read_text().split("\0")
        found["switch" if SWITCH in words else Path(words[0]).name] = int(child)
    return found


def ends(descriptor: int) -> None:
    """Wait until the process of a pidfd has ended."""
    if not select.select([descriptor], [], [], soon().remaining_s())[0]:
        raise DeadlineExceeded("the process goes on")


def test_nothing_of_a_lab_outlives_a_labd_that_was_killed(tmp_path: Path) -> None:
    mock = MockLab(load_lab("mock"), CLOCK, LabState.of("mock", root=tmp_path))
    mock.up(seed=1)
    labd = int(mock.state.endpoints()["pid"])
    with ExitStack() as stack:
        left = {name: os.pidfd_open(pid) for name, pid in children(labd).items()}
        for descriptor in left.values():
            stack.callback(os.close, descriptor)
        os.kill(labd, signal.SIGKILL)
        assert {"switch", "rackd"} <= left.keys()
        for descriptor in left.values():
            ends(descriptor)


def test_a_switch_that_ends_by_itself_ends_the_lab_and_is_named(tmp_path: Path) -> None:
    mock = MockLab(load_lab("mock"), CLOCK, LabState.of("mock", root=tmp_path))
    mock.up(seed=1)
    labd = int(mock.state.endpoints()["pid"])
    descriptor = os.pidfd_open(labd)
    try:
        os.kill(children(labd)["switch"], signal.SIGKILL)
        ends(descriptor)
    finally:
        os.close(descriptor)
    assert "ended by itself: the switch with status -9" in mock.state.log.read_text()
    assert not mock.state.is_held()
