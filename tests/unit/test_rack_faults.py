"""Faults of a test: who sees them first, and what is not reached while it is out of service."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from rackloop.clock import VirtualClock
from rackloop.errors import FaultRefused, NotSupported
from rackloop.faults import FaultSpec
from rackloop.record import EventLog, Stage
from rackloop.safety.maintenance import Gear
from rackloop.safety.store import open_store
from rackloop.safety.undo import ActRecorder, Journal
from rackloop_fixtures._faults import RackFaults
from rackloop_labs.attach_log import AttachLog
from rackloop_labs.in_service import BenchInService
from tests.unit.sim_rack import SimRack, described


class Records:
    """A truth stream of these records, at its end."""

    def __init__(self, *records: dict[str, object]) -> None:
        self._records = records

    def __iter__(self) -> object:
        return iter(self._records)

    def close(self) -> None:
        """Nothing is open."""


def log_of(*records: dict[str, object]) -> AttachLog:
    log = AttachLog(Records(*records))  # type: ignore[arg-type]
    with log:
        pass
    return log


def test_the_log_of_the_rack_tells_the_first_loss_of_what_a_fault_reaches() -> None:
    log = log_of(
        {"event": "offline", "t_ns": 5, "server": "srv1", "port": "p0"},
        {"event": "offline", "t_ns": 20, "server": "srv2", "port": "p0"},
        {"event": "io_error", "t_ns": 25, "drive": "d02"},
        {"event": "offline", "t_ns": 30, "server": "srv1", "port": "p0", "due_ns": 12},
    )
    assert log.first_loss({"offline"}, {("srv1", "p0")}, set(), 10) == Stage("offline", 30, "rackd", 18)
    assert log.first_loss({"io_error"}, {("srv1", "p0")}, {"d02"}, 10) == Stage("io_error", 25, "rackd", 0)
    assert log.first_loss({"io_error"}, set(), {"d01"}, 10) is None
    assert log.first_loss({"phy_down"}, {("srv1", "p0")}, set(), 0) is None


class Bench:
    """A simulated rack as a bench that has no log."""

    def __init__(self, folder: Path) -> None:
        self.clock = VirtualClock()
        self.lab = described(folder)
        self.rack = SimRack(self.clock)
        self.equipment = self.rack.equipment

    def attach_log(self) -> object:
        raise NotSupported("a simulated rack of the unit tests has no log")


def test_a_fault_that_would_reach_what_is_out_of_service_is_refused(tmp_path: Path) -> None:
    whole = Bench(tmp_path)
    bench = BenchInService(cast("BenchInService", whole), [Gear.drive("d04"), Gear.server("srv2")])
    recorder = ActRecorder(bench.lab, Journal(open_store(tmp_path / "store.sqlite", whole.clock)), "run")
    events = EventLog(tmp_path / "events.jsonl", whole.clock)
    with RackFaults(bench, recorder, events, "test") as faults:
        with pytest.raises(FaultRefused) as refused:
            faults.guard.begin(FaultSpec("switch_power_loss", "switch"))
        faults.guard.begin(FaultSpec("hang", "d01"))
        assert whole.rack.parts["drive:d01"].broken
    assert refused.value.reasons == (
        "it would reach drive d04, which is out of service",
        "it would reach server srv2, which is out of service",
    )
    assert not whole.rack.parts["drive:d01"].broken
    recorder.journal.close()
    events.close()


def test_a_test_without_faults_makes_no_guard(tmp_path: Path) -> None:
    bench = SimpleNamespace(attach_log=lambda: pytest.fail("nobody asked for faults"))
    with RackFaults(cast("BenchInService", bench), cast("ActRecorder", None), cast("EventLog", None), "test"):
        pass
