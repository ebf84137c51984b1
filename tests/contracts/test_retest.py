"""A retest on a simulated rack: what was broken on purpose is what it finds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from rackloop.lab import Part
from rackloop.safety.maintenance import Finding, Seen
from rackloop_drivers.rackd import RackdControl
from rackloop_labs import Bench, MockLab
from rackloop_labs.retest import retest, try_drive
from tests.deadlines import CLOCK, soon
from tests.mock_rack import MockRack

D01, P0 = Part.drive("d01"), Part.port("srv1", "p0")
HERE = ("srv1", "p0")


@pytest.fixture
def bench(rack: MockRack) -> Iterator[Bench]:
    with closing(MockLab(rack.lab, CLOCK, rack.state).open(None)) as bench:
        yield bench
        assert bench.equipment.fabric.live_map(soon()).pairs == rack.lab.baseline_map()


@pytest.fixture
def broken(rack: MockRack) -> Iterator[RackdControl]:
    """The rack's own control; what was broken by it is mended."""
    with rack.rackd() as control:
        yield control
        control.request("clear_fault", soon(), drive="d01")
        control.request("stick", soon(), port=1, stuck=False)
        control.slow_training([1], 1.0, soon())


@contextmanager
def _miswired(control: RackdControl, *ports: int) -> Iterator[None]:
    control.request("miswire", soon(), ports=list(ports))
    try:
        yield
    finally:
        control.request("miswire", soon(), ports=list(ports))


def test_a_drive_that_cannot_be_read_anywhere_is_at_fault_itself(bench: Bench, broken: RackdControl) -> None:
    broken.add_fault("d01", {"kind": "media_error", "lba": 8, "sectors": 8, "mode": "until_rewritten"}, soon())
    assert try_drive(bench, "d01", HERE).seen is Seen.UNREADABLE
    found = retest(bench, bench.equipment, "d01")
    assert (found.finding, found.culprits) == (Finding.DRIVE, (D01,)), found


def test_a_sector_far_away_is_read_where_it_is_said_to_be_bad(bench: Bench, broken: RackdControl) -> None:
    broken.add_fault("d01", {"kind": "media_error", "lba": 800_000, "sectors": 8, "mode": "until_rewritten"}, soon())
    assert try_drive(bench, "d01", HERE).seen is Seen.WORKS
    assert retest(bench, bench.equipment, "d01", [100_000]).finding is Finding.DRIVE


def test_a_drive_that_is_slow_everywhere_is_at_fault_itself(bench: Bench, broken: RackdControl) -> None:
    broken.add_fault("d01", {"kind": "slow", "extra_us": 1_500_000}, soon())
    found = retest(bench, bench.equipment, "d01")
    assert (found.finding, found.culprits) == (Finding.DRIVE, (D01,)), found


def test_a_port_that_keeps_its_circuit_is_at_fault(bench: Bench, broken: RackdControl) -> None:
    broken.request("stick", soon(), port=1, stuck=True)
    found = retest(bench, bench.equipment, "d01")
    assert (found.finding, found.culprits) == (Finding.PORT, (P0,)), found


def test_a_port_where_links_train_slowly_is_at_fault(bench: Bench, broken: RackdControl) -> None:
    broken.slow_training([1], 12.0, soon())
    found = retest(bench, bench.equipment, "d01")
    assert (found.finding, found.culprits) == (Finding.PORT, (P0,)), found


def test_a_cable_that_leads_elsewhere_is_at_fault(bench: Bench, broken: RackdControl) -> None:
    with _miswired(broken, 1, 2):
        found = retest(bench, bench.equipment, "d01")
    assert (found.finding, found.culprits) == (Finding.PORT, (P0,)), found


def test_a_drive_whose_cable_leads_elsewhere_is_not_at_fault_itself(bench: Bench, broken: RackdControl) -> None:
    with _miswired(broken, 101, 119):
        found = retest(bench, bench.equipment, "d01")
    assert (found.finding, found.culprits) == (Finding.PORT, (D01,)), found


def test_a_drive_and_a_port_that_work_are_not_at_fault(bench: Bench) -> None:
    found = retest(bench, bench.equipment, "d01")
    assert found.finding is Finding.NOT_REPRODUCED, found
    assert next((trial.drive, trial.port) for trial in found.trials) == ("d01", "p0")
    assert len(found.trials) == 4
