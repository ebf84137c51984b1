"""A drive that is tried on a server that is slow, late or cannot be reached."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rackloop.abilities import Completed, DriveIdentity
from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import DeadlineExceeded, LabError, NotConnected, RackloopError, ToolError
from rackloop.lab import Lab, LabKind
from rackloop.safety.maintenance import Seen
from rackloop_labs.retest import try_drive
from tests.unit.harness.sim_rack import described, identity_of

HERE = ("srv1", "p0")
READ = {"start_lba": 0, "sectors": 256, "verdicts": {"right": 256}, "offenders": [], "unreadable_sectors": 0}
READ |= {"unreadable": [], "bytes": 1 << 20, "elapsed_ns": 1}


@dataclass
class SlowServer:
    """As much of a bench as a trial asks: the server's tools take ``tools_s`` and its own answer ``answer_s``.

    The drive is online from ``online_s``. What is asked raises ``refusal``, where there is one.
    """

    lab: Lab
    tools_s: float = 0.0
    answer_s: float = 0.1
    online_s: float = 0.0
    refusal: RackloopError | None = None
    clock: VirtualClock = field(default_factory=VirtualClock)
    name: str = "srv1"

    def host(self, server: str) -> Any:
        return self

    def drive(self, server: str, port: str) -> Any:
        return self

    def device(self, server: str, port: str) -> Any:
        return self

    def probe_target(self) -> str:
        return "/dev/sda"

    def identify(self, deadline: Deadline) -> DriveIdentity:
        is_online = self.clock.now_ns() >= self.online_s * 1e9
        self._take(self.tools_s, deadline)
        if not is_online:
            raise LabError("no drive is there")
        return identity_of(self.lab, "d01")

    def run(self, argv: Sequence[str], deadline: Deadline, *, stdin: str = "") -> Completed:
        self._take(self.answer_s if argv == ("true",) else self.tools_s, deadline)
        return Completed(tuple(argv), 0, json.dumps(READ), "")

    def _take(self, seconds: float, deadline: Deadline) -> None:
        if self.refusal is not None:
            raise self.refusal
        is_late = seconds > deadline.remaining_s()
        self.clock.advance(min(seconds, deadline.remaining_s()))
        if is_late:
            raise DeadlineExceeded("it did not end in time")


@pytest.fixture
def bench(tmp_path: Path) -> Any:
    return SlowServer(described(tmp_path, LabKind.PHYSICAL))


def test_a_server_may_take_as_long_as_the_lab_says(bench: Any) -> None:
    bench.tools_s = bench.lab.time_s("tools") - 1
    assert try_drive(bench, "d01", HERE).seen is Seen.WORKS


def test_a_drive_that_comes_while_a_slow_server_looks_is_looked_for_again(bench: Any) -> None:
    bench.tools_s, bench.online_s = 20.0, 3.0
    assert try_drive(bench, "d01", HERE).seen is Seen.WORKS
    bench.online_s = 1000.0
    assert try_drive(bench, "d01", HERE).seen is Seen.ABSENT


@pytest.mark.parametrize("refusal", [NotConnected("srv1 is away"), ToolError("no smartctl"), None])
def test_a_server_that_cannot_be_asked_or_is_late_is_no_word_on_its_drives(refusal: Any, bench: Any) -> None:
    bench.refusal, bench.tools_s, bench.answer_s = refusal, 1000.0, 1000.0
    with pytest.raises(type(refusal) if refusal else DeadlineExceeded):
        try_drive(bench, "d01", HERE)


def test_a_drive_that_holds_up_the_tools_of_a_server_that_answers_is_at_fault(bench: Any) -> None:
    bench.tools_s = 1000.0
    assert try_drive(bench, "d01", HERE).seen is Seen.ABSENT
