"""The attach log of a running rackd: every stage of a circuit, waited for, and forgotten when it is old."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rackloop.clock import Deadline
from rackloop_labs.attach_log import AttachLog
from tests.rack_session import CLOCK, SLOW_S, Rack, rack_starter


@pytest.fixture
def rack(tmp_path: Path) -> Iterator[Rack]:
    with rack_starter(tmp_path) as start:
        yield start()


def test_it_has_the_stages_of_each_circuit_in_order_of_time(rack: Rack) -> None:
    with AttachLog(rack.control.subscribe()) as log:
        generation = rack.map((1, 101), full=True)
        stages = log.stages(generation, 1, Deadline.after(CLOCK, SLOW_S))
    assert [stage.name for stage in stages] == ["executed", "phy_up", "online"]
    assert [stage.at_ns for stage in stages] == sorted(stage.at_ns for stage in stages)
    truth = [record for record in rack.records_until_settled() if record.get("generation") == generation]
    assert [stage.at_ns for stage in stages] == [
        next(record["t_ns"] for record in truth if record["event"] == stage.name and record.get("switch_port", 1) == 1)
        for stage in stages
    ]


def test_a_circuit_nobody_made_has_no_stages(rack: Rack) -> None:
    with AttachLog(rack.control.subscribe()) as log:
        assert log.stages(999, 1, Deadline.after(CLOCK, 0)) == []


def test_old_circuits_are_forgotten_and_young_ones_kept(rack: Rack) -> None:
    with AttachLog(rack.control.subscribe()) as log:
        old = rack.map((1, 101), full=True)
        assert log.stages(old, 1, Deadline.after(CLOCK, SLOW_S))
        for _ in range(4200):
            rack.ask("map", pairs=[(1, 101)], full=False)
        rack.ask("open", ports=[1])
        young = rack.map((1, 101))
        assert log.stages(young, 1, Deadline.after(CLOCK, SLOW_S))[-1].name == "online"
        assert log.stages(old, 1, Deadline.after(CLOCK, 0)) == []
