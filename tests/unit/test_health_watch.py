"""The health around tests and the evidence after them, where servers are silent, late or cannot be asked at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from rackloop.abilities import Host, SystemEvent, SystemEventLog
from rackloop.abilities.inventory import HostInventory
from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import LabError, LoginRefused, NotConnected, NotSupported
from rackloop.inspection.health import HostHealth, KernelLine, KernelPosition
from rackloop.inspection.timeline import ClockOffset
from rackloop.lab import Lab
from rackloop.record import Attached, Event, EvidenceGathered, Exchange, HealthCompared
from rackloop_fixtures._evidence import NAME, Witness
from rackloop_fixtures._health import HealthWatch
from rackloop_labs import evidence, health
from tests.unit.cabled_rack import SWITCHED, CabledRack, described
from tests.unit.recorded_server import RecordedServer

BOOT = KernelPosition("boot-1", 1_000_000)


@dataclass
class SimRun:
    """As much of a run as health and evidence write to."""

    directory: Path
    clock: VirtualClock
    worker: int | None = None
    written: list[Event] = field(default_factory=list)
    is_disk_full: bool = False

    @property
    def events(self) -> SimRun:
        return self

    def write(self, event: Event, *, durable: bool = False) -> None:
        self.written.append(event)

    def write_file(self, path: str, text: str) -> None:
        if self.is_disk_full:
            raise LabError("cannot write: no space left")
        place = self.directory / path
        place.parent.mkdir(exist_ok=True)
        place.write_text(text)

    def of(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.written if isinstance(event, kind)]


@dataclass
class SimLog:
    """An event log whose controller may not let anybody in."""

    told: list[SystemEvent] = field(default_factory=list)
    is_closed: bool = False

    def events(self, deadline: Deadline) -> list[SystemEvent]:
        if self.is_closed:
            raise LoginRefused("the controller refuses admin's password")
        return self.told

    def now(self, deadline: Deadline) -> Any:
        return VirtualClock().wall()


@dataclass
class SimBench:
    """As much of a bench as health and evidence ask for: its servers see what ``rack`` has."""

    rack: CabledRack
    clock: VirtualClock = field(default_factory=VirtualClock)
    silent: set[str] = field(default_factory=set)
    has_hosts: bool = True
    kernel: tuple[KernelLine, ...] = ()
    since: list[KernelPosition | None] = field(default_factory=list)
    before_reading: Callable[[], None] = lambda: None
    event_logs: Mapping[str, SystemEventLog] = field(default_factory=dict)

    @property
    def lab(self) -> Lab:
        return self.rack.lab

    def host(self, server: str) -> Host:
        if not self.has_hosts:
            raise NotSupported("servers cannot be reached")
        return RecordedServer(name=server)

    def read(self, host: Host, since: KernelPosition | None, _deadline: Deadline) -> HostHealth:
        self.before_reading()
        self.since.append(since)
        if host.name in self.silent:
            raise NotConnected(f"{host.name} does not answer")
        seen = self.rack.inventories()[host.name]
        counted = tuple(replace(drive, counters={"media_errors": 0}) for drive in seen.drives)
        return HostHealth(HostInventory(host.name, counted), BOOT, self.kernel if since else ())


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    bench = SimBench(CabledRack.of(described(SWITCHED, tmp_path)))
    monkeypatch.setattr(health, "read_health", bench.read)
    monkeypatch.setattr(evidence, "kernel_clock", lambda *_: ClockOffset(0, 1000))
    return bench


@pytest.fixture
def run(tmp_path: Path, bench: Any) -> Any:
    return SimRun(tmp_path, bench.clock)


def test_what_one_test_ends_with_the_next_begins_with(bench: Any, run: Any) -> None:
    watch = HealthWatch(run)
    for test in ("a", "b"):
        watch.begin(bench, test)
        assert watch.end(bench, test, [], [])[1] is None
    assert len(bench.since) == 3 * 3
    first, second = run.of(HealthCompared)
    assert (first.before, first.after) == ("health/0001.json", "health/0002.json")
    assert (second.before, second.after) == ("health/0002.json", "health/0003.json")
    assert bench.since == [None] * 3 + [BOOT] * 6


def test_workers_keep_their_snapshots_apart(bench: Any, run: Any) -> None:
    run.worker = 2
    watch = HealthWatch(run)
    watch.begin(bench, "a")
    assert (run.directory / "health" / "2-0001.json").exists()


@pytest.mark.parametrize("reason", ["servers cannot be reached", "srv1 does not answer"])
def test_a_rack_that_cannot_be_asked_is_recorded_once(reason: str, bench: Any, run: Any) -> None:
    bench.has_hosts = "reached" not in reason
    bench.silent = {"srv1", "srv2", "srv3"}
    watch = HealthWatch(run)
    for test in ("a", "b"):
        watch.begin(bench, test)
        assert watch.end(bench, test, [], []) == (None, None)
    (recorded,) = run.of(HealthCompared)
    assert (recorded.test, recorded.before, recorded.after, recorded.changes) == ("a", None, None, ())
    assert reason in recorded.unread.values()


def test_a_server_that_falls_silent_fails_the_test_and_not_the_next(bench: Any, run: Any) -> None:
    watch = HealthWatch(run)
    watch.begin(bench, "a")
    bench.silent = {"srv2"}
    _, alarm = watch.end(bench, "a", [], [])
    assert alarm is not None
    assert "srv2: unreachable: the server does not answer after the test (srv2 does not answer)" in str(alarm)
    watch.begin(bench, "b")
    assert watch.end(bench, "b", [], [])[1] is None


def test_a_drive_that_comes_back_late_is_waited_for(bench: Any, run: Any) -> None:
    watch = HealthWatch(run)
    watch.begin(bench, "a")
    late = bench.rack.sockets.pop(21)

    def come() -> None:
        if len(bench.since) >= 12:
            bench.rack.sockets[21] = late

    bench.before_reading = come
    assert watch.end(bench, "a", [], [])[1] is None


def test_a_drive_that_stays_away_is_missing(bench: Any, run: Any) -> None:
    watch = HealthWatch(run)
    watch.begin(bench, "a")
    bench.rack.sockets.pop(21)
    began_ns = bench.clock.now_ns()
    _, alarm = watch.end(bench, "a", [], [])
    assert "d01: missing" in str(alarm)
    assert 2.0 <= (bench.clock.now_ns() - began_ns) / 1e9 < 3.0


def test_a_rack_that_was_not_given_back_is_compared_with_nothing(bench: Any, run: Any) -> None:
    watch = HealthWatch(run)
    watch.begin(bench, "a")
    after = watch.give_up(bench, "a")
    assert after is not None
    assert set(after.servers) == {"srv1", "srv2", "srv3"}
    watch.begin(bench, "b")
    assert watch.end(bench, "b", [], [])[1] is None
    assert [event.test for event in run.of(HealthCompared)] == ["b"]


def test_evidence_names_what_cannot_be_read_and_has_the_rest(bench: Any, run: Any) -> None:
    watch, witness = HealthWatch(run), Witness(run)
    watch.begin(bench, "fabric/x::y[1]")
    witness.begin()
    witness.hear(Exchange("fabric/x::y[1]", "switch", ":PHY:DROP (@1),20", '0,"No error"', 1_000, 3_000))
    now = bench.clock.wall()
    bench.event_logs = {
        "srv1": SimLog([SystemEvent(1, now, "System", "Power off"), SystemEvent(2, None, "Fan", "Slow", "Warning")]),
        "srv2": SimLog(is_closed=True),
    }
    bench.kernel = (KernelLine(2_000_000, 3, "ata1: SError: { PHYRdyChg }"),)
    bench.silent = {"srv3"}
    bench.clock.advance(3)
    after, _ = watch.end(bench, "fabric/x::y[1]", [], [])
    witness.testify(bench, "fabric/x::y[1]", [], after)

    (attached,) = run.of(Attached)
    assert (attached.name, attached.path) == (NAME, "evidence/fabric-x-y-1.txt")
    text = (run.directory / attached.path).read_text()
    assert "# srv2 SEL: not read: the controller refuses admin's password" in text
    assert "# srv3 kernel: not read: srv3 does not answer" in text
    assert ':PHY:DROP (@1),20 -> 0,"No error"' in text
    assert "Warning Fan Slow" in text
    (gathered,) = run.of(EvidenceGathered)
    assert gathered.unread.keys() == {"srv2 SEL", "srv3 kernel"}
    assert gathered.lanes["srv1 kernel"] == [(2_000_000_000, 1000)]


def test_a_kernel_whose_clock_is_unknown_has_its_lines_at_the_end(
    bench: Any, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*_: object) -> ClockOffset:
        raise LabError("dmesg does not give the same line with both stamps")

    monkeypatch.setattr(evidence, "kernel_clock", unknown)
    bench.kernel = (KernelLine(2_000_000, 3, "ata1: SError: { PHYRdyChg }"),)
    watch, witness = HealthWatch(run), Witness(run)
    watch.begin(bench, "x")
    witness.begin()
    witness.testify(bench, "x", [], watch.end(bench, "x", [], [])[0])
    text = (run.directory / "evidence" / "x.txt").read_text()
    assert "# srv1 kernel: its clock is not known: dmesg does not give" in text
    assert text.splitlines()[-1].split()[:3] == ["?", "srv3", "kernel"]


def test_without_any_server_the_timeline_is_what_the_harness_and_the_switch_tell(bench: Any, run: Any) -> None:
    bench.has_hosts = False
    witness = Witness(run)
    witness.begin()
    witness.testify(bench, "x", [], None)
    (gathered,) = run.of(EvidenceGathered)
    assert set(gathered.unread) == {"srv1 kernel", "srv2 kernel", "srv3 kernel"}
