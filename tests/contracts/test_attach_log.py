"""The attach log of a running rackd: every stage of a circuit, waited for, and forgotten when it is old."""

from __future__ import annotations

import pytest

from rackloop.abilities import Applied
from rackloop.clock import Deadline
from rackloop.record import Stage
from rackloop_labs.truth_log import TruthLog
from tests.deadlines import CLOCK
from tests.nbd_wire import READ
from tests.rack_session import SLOW_S, Rack, Start


def of(generation: int) -> Applied:
    """The map change of a generation."""
    return Applied(generation, 0, 0)


@pytest.fixture
def rack(start: Start) -> Rack:
    return start()


def test_it_has_the_stages_of_each_circuit_in_order_of_time(rack: Rack) -> None:
    with TruthLog(rack.control.subscribe()) as log:
        generation = rack.map((1, 101), full=True)
        stages = log.stages(of(generation), 1, Deadline.after(CLOCK, SLOW_S))
    assert [stage.name for stage in stages] == ["executed", "phy_up", "online"]
    assert [stage.at_ns for stage in stages] == sorted(stage.at_ns for stage in stages)
    truth = [record for record in rack.records_until_settled() if record.get("generation") == generation]
    assert [stage.at_ns for stage in stages] == [
        next(record["t_ns"] for record in truth if record["event"] == stage.name and record.get("switch_port", 1) == 1)
        for stage in stages
    ]


def test_a_circuit_nobody_made_has_no_stages(rack: Rack) -> None:
    with TruthLog(rack.control.subscribe()) as log:
        assert log.stages(of(999), 1, Deadline.after(CLOCK, 0)) == []


def test_old_circuits_are_forgotten_and_young_ones_kept(rack: Rack) -> None:
    with TruthLog(rack.control.subscribe()) as log:
        old = rack.map((1, 101), full=True)
        assert log.stages(of(old), 1, Deadline.after(CLOCK, SLOW_S))
        for _ in range(4200):
            rack.ask("map", pairs=[(1, 101)], full=False)
        rack.ask("open", ports=[1])
        young = rack.map((1, 101))
        assert log.stages(of(young), 1, Deadline.after(CLOCK, SLOW_S))[-1].name == "online"
        assert log.stages(of(old), 1, Deadline.after(CLOCK, 0)) == []


def seen_of(rack: Rack, log: TruthLog, generation: int, *, until: str = "online") -> dict[str, Stage]:
    stages = log.stages(of(generation), 1, Deadline.after(CLOCK, SLOW_S), until=until)
    return {stage.name: stage for stage in stages}


def test_each_stage_says_how_late_rackd_was_with_it(rack: Rack) -> None:
    with TruthLog(rack.control.subscribe()) as log:
        asked_ns = CLOCK.now_ns()
        generation = rack.map((1, 101), asked_ns=asked_ns)
        seen = seen_of(rack, log, generation)
    due = {
        record["event"]: record["due_ns"]
        for record in rack.records_until_settled()
        if record.get("generation") == generation and record.get("switch_port", 1) == 1
    }
    assert seen["received"] == Stage("received", asked_ns, "switch", 0)
    assert due["executed"] == asked_ns
    for name in ("executed", "phy_up", "online"):
        assert seen[name].error_ns == seen[name].at_ns - due[name] >= 0


def test_the_first_answer_is_due_by_the_drive_and_not_by_who_was_late(rack: Rack) -> None:
    rack.ask("fault", drive="d01", fault={"kind": "slow", "extra_us": 3000})
    with TruthLog(rack.control.subscribe()) as log, rack.open_export("srv1.p0") as wire:
        wire.send(READ, 0, 512)
        rack.wait_held(1)
        generation = rack.map((1, 101))
        wire.reply(512)
        answered_ns = CLOCK.now_ns()
        seen = seen_of(rack, log, generation, until="answered")
        wire.read(0, 512)
    answered, online = seen["answered"], seen["online"]
    assert online.at_ns < answered.at_ns
    # Its own 3 ms are the drive's: only what came on top is the machine's.
    assert answered.at_ns - answered.error_ns - online.at_ns >= 3_000_000
    assert answered.at_ns - answered.error_ns <= answered_ns
    records = [record for record in rack.records_until_settled() if record["event"] == "answered"]
    assert [(record["drive"], record["kind"], record["offset"]) for record in records] == [("d01", "read", 0)]


def test_of_a_drive_that_hung_no_first_answer_is_told(rack: Rack) -> None:
    rack.ask("fault", drive="d01", fault={"kind": "hang"})
    with rack.open_export("srv1.p0") as wire:
        rack.map((1, 101))
        wire.send(READ, 0, 512)
        rack.wait_held(1)
        rack.ask("clear_fault", drive="d01")
        wire.reply(512)
    assert "answered" not in {record["event"] for record in rack.records_until_settled()}


def test_an_answer_to_something_else_is_not_that_to_the_identified_sector(rack: Rack) -> None:
    with TruthLog(rack.control.subscribe()) as log, rack.open_export("srv1.p0") as wire:
        generation = rack.map((1, 101))
        wire.read(8192, 512)
        rack.wait_for("answered", generation=generation)
        assert "answered" not in seen_of(rack, log, generation)
