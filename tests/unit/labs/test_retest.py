"""A drive that is tried where it is, and elsewhere: on servers that are slow or away, and beside drives that stay."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rackloop.abilities import Completed, DriveIdentity
from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import DeadlineExceeded, LabError, NotConnected, RackloopError, ToolError, UnknownFormat
from rackloop.lab import Lab, LabKind
from rackloop.safety.maintenance import Finding, Seen
from rackloop_labs.retest import retest, try_drive
from tests.unit.harness import journalled_bench
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


NOT_UNDERSTOOD = UnknownFormat("smartctl printed what is not known", tool="smartctl", raw="")


@pytest.mark.parametrize("refusal", [NotConnected("srv1 is away"), ToolError("no smartctl"), NOT_UNDERSTOOD, None])
def test_a_server_that_cannot_be_asked_or_is_late_is_no_word_on_its_drives(refusal: Any, bench: Any) -> None:
    bench.refusal, bench.tools_s, bench.answer_s = refusal, 1000.0, 1000.0
    with pytest.raises(type(refusal) if refusal else DeadlineExceeded):
        try_drive(bench, "d01", HERE)


def test_a_drive_that_holds_up_the_tools_of_a_server_that_answers_is_at_fault(bench: Any) -> None:
    bench.tools_s = 1000.0
    assert try_drive(bench, "d01", HERE).seen is Seen.ABSENT


class Switched:
    """As much of a bench as a retest asks, whose servers see what the switch of ``rack`` gives them; ``told`` of it.

    The looks for a drive take ``look_s``, one after the other, and no time after those.
    """

    def __init__(self, rack: journalled_bench.Bench) -> None:
        self.rack, self.lab, self.clock = rack, rack.lab, rack.clock
        self.told: list[Collection[int]] = []
        self.look_s: list[float] = []

    def announce(self, ports: Collection[int]) -> None:
        self.told.append(ports)

    def drive(self, server: str, port: str) -> Any:
        return SwitchedDrive(self, self.lab.switch_port(server, port))

    def host(self, server: str) -> Any:
        return SlowServer(self.lab, clock=self.clock)

    def device(self, server: str, port: str) -> Any:
        return self.host(server)


@dataclass(frozen=True)
class SwitchedDrive:
    bench: Switched
    port: int

    def identify(self, _deadline: Deadline) -> DriveIdentity:
        lab = self.bench.lab
        self.bench.clock.advance(self.bench.look_s.pop(0) if self.bench.look_s else 0)
        at = self.bench.rack.switch.live.peer_of(self.port)
        return identity_of(lab, next(name for name in lab.drives if lab.where_is(name) == at))


@pytest.fixture
def switched(tmp_path: Path) -> Iterator[Any]:
    with closing(journalled_bench.Bench(tmp_path, disturbs=frozenset())) as rack:
        yield Switched(rack)


def test_a_drive_changes_places_with_none_that_keeps_its_link(switched: Any) -> None:
    """The first drive that works at its server is one: a notice alone would reset its link."""
    found = retest(switched, switched.rack.acting, "d04")
    assert found.finding is Finding.NOT_REPRODUCED, found
    assert [trial.drive for trial in found.trials] == ["d04", "d01", "d01", "d04"]
    assert [sorted(ports) for ports in switched.told] == [[1, 6, 101, 104]] * 2
    assert switched.rack.switch.live == switched.lab.baseline_map()


@pytest.mark.parametrize(
    ("look_s", "finding"),
    [([0, 0, 0, 0, 2.5], Finding.NOT_REPRODUCED), ([0, 2.5, 0, 0, 2.5, 2.5, 0, 0, 2.5], Finding.DRIVE)],
)
def test_what_came_slowly_is_slow_where_it_comes_slowly_again(
    switched: Any, look_s: list[float], finding: Finding
) -> None:
    """The first look is for a drive to compare with; then d01 and d04 come to each other's place, and back."""
    switched.look_s = look_s
    found = retest(switched, switched.rack.acting, "d04")
    assert found.finding is finding, found
    assert len(switched.told) == 4
    assert switched.rack.switch.live == switched.lab.baseline_map()


def test_a_drive_that_keeps_its_link_is_tried_where_it_is_and_no_server_is_told(switched: Any) -> None:
    found = retest(switched, switched.rack.acting, "d03")
    assert [(trial.drive, trial.server, trial.port) for trial in found.trials] == [("d03", "srv2", "p0")]
    assert (switched.told, switched.rack.switch.applied) == ([], [])
    assert switched.rack.journal.standing(switched.lab.name) == []
