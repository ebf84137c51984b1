"""A rack that is not cabled as it is described: told once, by its cables, and nothing is written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rackloop_drivers.rackd import RackdControl
from tests.deadlines import CLOCK, soon
from tests.e2e.command_line import CommandLine, Results
from tests.e2e.entries import IDENTITY, REMAP


@pytest.fixture
def rackd(rackloop: CommandLine) -> Iterator[RackdControl]:
    """The simulation of a mock lab that is up."""
    assert rackloop("lab", "up", "mock").status == 0
    control = RackdControl(Path(rackloop.endpoints()["control"]), CLOCK)
    yield control
    control.close()
    assert rackloop("lab", "down", "mock").status == 0


def test_swapped_cables_block_a_run_before_anything_is_written(rackloop: CommandLine, rackd: RackdControl) -> None:
    rackd.request("miswire", soon(), ports=[101, 103])
    ended = rackloop("run", rackloop.plan(IDENTITY, REMAP), "--lab", "mock", "--out", "out")
    ended.refused(3)
    tests = Results(rackloop.directory / "out").tests().values()
    assert len(tests) == 2
    assert {(test["verdict"], test["cause"]) for test in tests} == {("blocked", "lab")}
    told = "the cables of d01 and d03 are swapped (switch ports 101 and 103)"
    assert all(told in test["reason"] for test in tests), tests
    assert rackd.request("stats", soon())["writes"] == 0
