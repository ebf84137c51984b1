"""A rack that is given back: whose fault it is where it is not, and what that means for the tests that follow."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rackloop.abilities import DriveIdentity
from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import LabError
from rackloop.lab import Lab
from rackloop.portmap import PortMap
from rackloop.safety.undo import Equipment
from rackloop_fixtures._outcome import BenchBroken
from rackloop_fixtures._settled import Settled
from tests.unit.sim_rack import SimRack, described, identity_of


@dataclass
class SimBench:
    """As much of a bench as is looked at: its map, and whether its drives answer."""

    lab: Lab
    clock: VirtualClock
    rack: SimRack
    looks: int = 0

    @property
    def equipment(self) -> Equipment:
        return self.rack.equipment

    def drive(self, server: str, port: str) -> Any:
        self.looks += 1
        return self

    def identify(self, deadline: Deadline) -> DriveIdentity:
        return identity_of(self.lab, "d01")


@pytest.fixture
def bench(tmp_path: Path) -> Any:
    clock = VirtualClock()
    return SimBench(described(tmp_path), clock, SimRack(clock))


def test_a_rack_that_nobody_touched_is_not_looked_at_again(bench: Any) -> None:
    settled = Settled()
    settled.ensure(bench)
    settled.await_return(bench)
    assert bench.looks == 4


def test_a_rack_that_is_not_given_back_is_this_tests_trouble_and_blocks_the_next(bench: Any) -> None:
    settled = Settled()
    bench.rack.switch.live = PortMap.of([(1, 102)])
    with pytest.raises(LabError, match="is not at its baseline") as caught:
        settled.await_return(bench)
    assert not isinstance(caught.value, BenchBroken)
    with pytest.raises(BenchBroken, match="is not at its baseline"):
        settled.ensure(bench)
