"""Identified sectors on drives of a mock lab: one permission for the first of them and for those that are watched."""

from __future__ import annotations

from rackloop.safety import Guard
from rackloop_drivers.workload import SECTOR_BYTES, RackProbe
from rackloop_fixtures.rack.labels import FILLED_BYTES, Labels
from rackloop_labs.mock import MockBench
from tests.deadlines import CLOCK, soon
from tests.leased import EverythingLeased


def test_a_drive_that_has_its_first_sector_has_those_that_are_watched(bench: MockBench) -> None:
    lease = EverythingLeased()
    labels = Labels(bench, Guard(bench.lab, lease), 1)
    expected = labels.ensure("d01", "srv1", "p0")
    assert labels.ensure("d01", "srv1", "p0", FILLED_BYTES) == expected
    assert len(lease.attempts) == 1
    sectors = FILLED_BYTES // SECTOR_BYTES
    seen = RackProbe(bench.host("srv1"), CLOCK).verify(bench.device("srv1", "p0"), expected, soon(), sectors=sectors)
    assert (seen.sectors, seen.is_right) == (sectors, True)
    labels.ensure("d01", "srv1", "p0", FILLED_BYTES + 1)
    assert len(lease.attempts) == 2
