"""Breakable parts: nothing breaks that is not written down, and what does is mended in an order that works."""

from __future__ import annotations

import pytest

from rackloop.clock import Deadline
from rackloop.errors import BadInput, DeadlineExceeded, LabError, NotSupported
from rackloop.portmap import Partial, PortMap
from rackloop.record.acts import BreakPart, MendPart
from rackloop.safety.undo import EntryState, UndoFailed, undo, undoing
from tests.deadlines import soon
from tests.unit.harness.journalled_bench import Bench
from tests.unit.harness.sim_rack import BASELINE, RestoringPhy, SimPart


def test_the_key_to_mend_is_on_disk_before_the_part_breaks(bench: Bench) -> None:
    def look() -> None:
        (entry,) = bench.journal.standing("bench")
        assert (entry.state, entry.ability, entry.resource) == (EntryState.INTENDED, "fault", "drive:d01")
        assert entry.what == BreakPart("run-1/1", {"kind": "slow", "extra_us": 500})
        assert entry.inverse == (MendPart("run-1/1"),)
        seen.append(entry.id)

    seen: list[int] = []
    bench.rack.parts["drive:d01"].before = look
    bench.acting.breakable["drive:d01"].break_as("run-1/1", {"kind": "slow", "extra_us": 500}, bench.deadline)
    assert len(seen) == 1
    assert [entry.state for entry in bench.journal.standing("bench")] == [EntryState.ACTED]


def test_a_kind_the_part_does_not_have_leaves_nothing_to_undo(bench: Bench) -> None:
    with pytest.raises(NotSupported):
        bench.acting.breakable["drive:d01"].break_as("k", {"kind": "rust"}, bench.deadline)
    assert bench.journal.standing("bench") == []


def test_parameters_that_the_part_refuses_leave_nothing_to_undo(bench: Bench) -> None:
    def refuse() -> None:
        raise BadInput("extra_us must be a number")

    bench.rack.parts["drive:d01"].before = refuse
    with pytest.raises(BadInput):
        bench.acting.breakable["drive:d01"].break_as("k", {"kind": "slow"}, bench.deadline)
    assert bench.journal.standing("bench") == []


def test_a_break_whose_answer_was_lost_is_mended(bench: Bench) -> None:
    def lose_the_answer() -> None:
        raise DeadlineExceeded("no answer")

    bench.rack.parts["drive:d01"].after = lose_the_answer
    with (
        pytest.raises(DeadlineExceeded),
        undoing(bench.rack.equipment, bench.recorder, bench.clock) as acting,
    ):
        acting.breakable["drive:d01"].break_as("k", {"kind": "hang"}, bench.deadline)
    assert bench.rack.told == ["break drive:d01", "mend drive:d01"]
    assert bench.journal.standing("bench") == []


def test_ways_in_are_mended_before_power_and_everything_else_before_the_map(bench: Bench) -> None:
    order = bench.rack.told
    bench.rack.outlets["srv1"]._on_change = lambda on: order.append(f"power {on}")
    bench.rack.switch.before = lambda: order.append("map")
    with undoing(bench.rack.equipment, bench.recorder, bench.clock) as acting:
        acting.fabric.apply(Partial(PortMap.of([(1, 108)])), bench.deadline)
        acting.power["srv1"].turn_off(bench.deadline)
        for name, kind in {
            "switch_port:101": "stuck", "control": "lost", "server:srv1": "crash", "network:srv1": "partition",
            "bmc:srv1": "unreachable", "drive:d01": "hang",
        }.items():  # fmt: skip
            acting.breakable[name].break_as("k", {"kind": kind}, bench.deadline)
        order.clear()
    ways_in = {"mend control", "mend network:srv1", "mend bmc:srv1"}
    assert set(order[:3]) == ways_in
    assert order[3] == "power True"
    assert set(order[4:7]) == {"mend switch_port:101", "mend server:srv1", "mend drive:d01"}
    assert order[7:] == ["map"]
    assert bench.rack.switch.live == BASELINE


def test_only_the_faults_of_the_scope_are_mended(bench: Bench) -> None:
    bench.acting.breakable["drive:d01"].break_as("mine", {"kind": "slow"}, bench.deadline)
    with undoing(bench.rack.equipment, bench.recorder, bench.clock) as acting:
        acting.breakable["drive:d01"].break_as("scope", {"kind": "slow"}, bench.deadline)
    assert set(bench.rack.parts["drive:d01"].broken) == {"mine"}
    assert len(bench.journal.standing("bench")) == 1


def test_what_was_told_to_mend_and_did_not_is_named_and_keeps_standing(bench: Bench) -> None:
    with (  # noqa: PT012 - undoing fails on the way out
        pytest.raises(UndoFailed, match="drive:d01: its hang was told to end and did not") as raised,
        undoing(bench.rack.equipment, bench.recorder, bench.clock) as acting,
    ):
        acting.breakable["drive:d01"].break_as("k", {"kind": "hang"}, bench.deadline)
        acting.breakable["switch_port:101"].break_as("k", {"kind": "stuck"}, bench.deadline)
        bench.rack.parts["drive:d01"].stays = True
    assert len(raised.value.problems) == 1
    assert bench.rack.parts["switch_port:101"].broken == {}
    assert [entry.resource for entry in bench.journal.standing("bench")] == ["drive:d01"]


def test_what_cannot_be_mended_keeps_nothing_else_of_its_part_from_it(bench: Bench) -> None:
    class Stubborn(SimPart):
        """A part that mends all but what stands under one key."""

        def mend(self, key: str, deadline: Deadline) -> None:
            if key == "stuck":
                raise LabError("its drive is gone")
            super().mend(key, deadline)

    part = bench.rack.parts["server:srv1"] = Stubborn("crash", "hang")
    for key, kind in {"first": "hang", "stuck": "crash", "last": "hang"}.items():
        bench.acting.breakable["server:srv1"].break_as(key, {"kind": kind}, bench.deadline)
    outcome = undo(bench.journal.standing("bench"), bench.rack.equipment, bench.journal, bench.deadline)
    assert outcome.problems == ("server:srv1: its drive is gone",)
    assert set(part.broken) == {"stuck"}
    assert [entry.inverse for entry in bench.journal.standing("bench")] == [(MendPart("stuck"),)]


def test_a_part_the_lab_no_longer_has_is_named(bench: Bench) -> None:
    bench.acting.breakable["drive:d01"].break_as("k", {"kind": "hang"}, bench.deadline)
    del bench.rack.parts["drive:d01"]
    outcome = undo(bench.journal.standing("bench"), bench.rack.equipment, bench.journal, bench.deadline)
    assert outcome.problems == ("drive:d01: the lab has no such part that could be mended any more; mend it by hand",)


@pytest.mark.parametrize("found_after_s", [0.0, 3.0])
def test_a_drive_that_another_stood_in_for_is_mended_once_the_map_has_it_again(
    bench: Bench, found_after_s: float
) -> None:
    joined_ns: list[int] = []

    def find() -> None:
        if bench.switch.live != BASELINE:
            raise LabError("another drive is here")
        joined_ns.append(bench.clock.now_ns())
        if joined_ns[-1] < joined_ns[0] + round(found_after_s * 1e9):
            raise LabError("no drive is here")

    part = bench.rack.parts["drive:d01"]
    bench.acting.breakable["drive:d01"].break_as("k", {"kind": "slow"}, bench.deadline)
    bench.acting.fabric.apply(Partial(PortMap.of([(1, 102)])), bench.deadline)
    part.mending = find
    assert undo(bench.journal.standing("bench"), bench.rack.equipment, bench.journal, bench.deadline).problems == ()
    assert (part.broken, bench.journal.standing("bench")) == ({}, [])


@pytest.mark.parametrize(("remaps", "took_s"), [(True, 30), (False, 0)])
def test_a_drive_that_is_nowhere_is_waited_for_where_the_map_was_restored_and_named(
    bench: Bench, *, remaps: bool, took_s: float
) -> None:
    def find() -> None:
        raise LabError("it is nowhere")

    bench.acting.breakable["drive:d01"].break_as("k", {"kind": "slow"}, bench.deadline)
    if remaps:
        bench.acting.fabric.apply(Partial(PortMap.of([(1, 102)])), bench.deadline)
    bench.rack.parts["drive:d01"].mending = find
    outcome = undo(bench.journal.standing("bench"), bench.rack.equipment, bench.journal, soon(60, bench.clock))
    assert outcome.problems == ("drive:d01: it is nowhere",)
    assert bench.clock.now_ns() == took_s * 1e9
    assert [entry.resource for entry in bench.journal.standing("bench")] == ["drive:d01"]


def test_a_drive_that_is_nowhere_takes_no_time_from_one_that_is_found(bench: Bench) -> None:
    looked_ns: list[int] = []
    lost_ns: list[int] = []

    def lose() -> None:
        lost_ns.append(bench.clock.now_ns())
        raise LabError("it is nowhere")

    def find() -> None:
        looked_ns.append(bench.clock.now_ns())
        if bench.switch.live != BASELINE or looked_ns[-1] < 3e9:
            raise LabError("another drive is here")

    bench.acting.fabric.apply(Partial(PortMap.of([(1, 102)])), bench.deadline)
    for name in ("drive:d03", "drive:d01"):
        bench.acting.breakable[name].break_as("k", {"kind": "slow"}, bench.deadline)
    bench.rack.parts["drive:d01"].mending, bench.rack.parts["drive:d03"].mending = lose, find
    outcome = undo(bench.journal.standing("bench"), bench.rack.equipment, bench.journal, soon(60, bench.clock))
    assert outcome.problems == ("drive:d01: it is nowhere",)
    assert [entry.resource for entry in bench.journal.standing("bench")] == ["drive:d01"]
    assert looked_ns[-1] < 4e9
    assert lost_ns[-1] > 29e9
    assert len(lost_ns) < 30 * 5


@pytest.mark.parametrize("name", ["server:srv1", "drive:d01"])
def test_what_no_map_displaced_is_not_waited_for_when_the_map_is_restored(bench: Bench, name: str) -> None:
    def refuse() -> None:
        tried.append(name)
        raise LabError("it does not answer")

    tried: list[str] = []
    bench.acting.fabric.apply(Partial(PortMap.of([(1, 102)])), bench.deadline)
    part = bench.rack.parts[name]
    bench.acting.breakable[name].break_as("k", {"kind": next(iter(part.kinds))}, bench.deadline)
    part.mending = refuse
    if name == "drive:d01":
        del bench.rack.parts[name]
    outcome = undo(bench.journal.standing("bench"), bench.rack.equipment, bench.journal, soon(60, bench.clock))
    assert [problem.partition(":")[0] for problem in outcome.problems] == [name.partition(":")[0]]
    assert (bench.clock.now_ns(), len(tried)) == (0, int(name == "server:srv1"))


@pytest.fixture
def restoring(bench: Bench) -> RestoringPhy:
    phy = RestoringPhy(bench.rack.switch)
    bench.rack.equipment = type(bench.rack.equipment)(bench.rack.switch, phy)
    return phy


def test_a_long_drop_is_ended_where_the_equipment_can_end_it(bench: Bench, restoring: RestoringPhy) -> None:
    with undoing(bench.rack.equipment, bench.recorder, bench.clock) as acting:
        assert acting.phy
        acting.phy.drop([1, 40], 3600, bench.deadline, request_id=1)
    assert restoring.restored == [(1, 40)]
    assert bench.clock.now_ns() < 1_000_000_000
    assert bench.journal.standing("bench") == []


def test_a_drop_that_is_over_is_not_ended_again(bench: Bench, restoring: RestoringPhy) -> None:
    with undoing(bench.rack.equipment, bench.recorder, bench.clock) as acting:
        assert acting.phy
        acting.phy.drop([1], 2, bench.deadline, request_id=1)
        bench.clock.advance(3)
    assert restoring.restored == []


def test_a_drop_that_cannot_be_ended_is_named(bench: Bench, restoring: RestoringPhy) -> None:
    restoring.refuses = True
    with (  # noqa: PT012 - undoing fails on the way out
        pytest.raises(UndoFailed, match="signal of ports 1: the switch is busy"),
        undoing(bench.rack.equipment, bench.recorder, bench.clock) as acting,
    ):
        assert acting.phy
        acting.phy.drop([1], 5, bench.deadline, request_id=1)
    assert len(bench.journal.standing("bench")) == 1
