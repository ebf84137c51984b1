"""A place behind a switch that is mended: a drive is waited for where the map has one there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import DeadlineExceeded
from rackloop.lab import Part, PartKind, load_lab
from rackloop.portmap import PortMap
from rackloop_labs.host_parts import HostPart
from rackloop_labs.live_port import AtLivePort

LAB = load_lab("mock")
SLOT = HostPart(Part(PartKind.SLOT, "srv1/p0"), "srv1", "p0", "pci-1", frozenset({"removed"}))
NOTE = {"fault": {"kind": "removed"}}
WITHIN_S = 10.0


class Slot:
    """A slot that nothing comes to: its end takes a second, and as long as a drive may take where one is awaited."""

    kinds = SLOT.kinds

    def __init__(self, clock: VirtualClock, *, awaited: bool) -> None:
        self._clock = clock
        self._takes_s = 1.0 + WITHIN_S * awaited

    def prepare(self, fault: Mapping[str, Any], deadline: Deadline) -> dict[str, Any]:
        raise NotImplementedError

    def start(self, note: Mapping[str, Any], deadline: Deadline) -> None:
        raise NotImplementedError

    def stands(self, note: Mapping[str, Any], deadline: Deadline) -> bool:
        raise NotImplementedError

    def end(self, note: Mapping[str, Any], deadline: Deadline) -> None:
        assert note == NOTE
        self._clock.sleep_until_ns(self._clock.now_ns() + round(min(self._takes_s, deadline.remaining_s()) * 1e9))
        raise DeadlineExceeded("no drive came")


def ended(clock: VirtualClock, live: PortMap, seconds: float) -> float:
    """How long it takes to mend the slot with this map, where there is so much time."""

    def make(_drives: Sequence[str], *, awaited: bool = True) -> Slot:
        return Slot(clock, awaited=awaited)

    began_ns = clock.now_ns()
    AtLivePort(LAB, SLOT, lambda _: live, make).end(NOTE, Deadline.after(clock, seconds))
    return (clock.now_ns() - began_ns) / 1e9


def test_no_drive_is_waited_for_where_the_map_has_none() -> None:
    assert ended(VirtualClock(), PortMap(), 60) == 1


def test_a_drive_that_the_map_has_there_and_does_not_come_is_an_error() -> None:
    with pytest.raises(DeadlineExceeded):
        ended(VirtualClock(), LAB.baseline_map(), 60)


def test_a_server_that_had_no_time_to_be_told_is_an_error() -> None:
    with pytest.raises(DeadlineExceeded):
        ended(VirtualClock(), PortMap(), 0.5)
