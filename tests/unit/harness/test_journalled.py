"""Journalled abilities: nothing is done that is not written down, and everything written down can be undone."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rackloop.abilities import stager
from rackloop.clock import Deadline
from rackloop.errors import BadInput, DeadlineExceeded, FabricError, LabError, LockedOut, StaleGeneration
from rackloop.lab import LabKind
from rackloop.portmap import Full, MapChange, Open, Partial, PortMap
from rackloop.record import ActAnnounced, ActDone, ActLog, EventLog, read_events
from rackloop.record.acts import ChangeMap, DropSignal, FlapSignal, SettleSignal, TurnOff
from rackloop.safety.undo import ActRecorder, EntryState, UndoFailed, journalled, undoing
from tests.unit.harness.journalled_bench import SWAP, Bench, maps
from tests.unit.harness.sim_rack import BASELINE, SimOutlet, SimPart


def test_the_inverse_is_on_disk_and_the_act_announced_before_the_switch_acts(bench: Bench) -> None:
    def look() -> None:
        (entry,) = bench.journal.standing("bench")
        assert entry.state is EntryState.INTENDED
        assert entry.inverse == (Partial(PortMap.of([(1, 101), (2, 102)])),)
        last = list(read_events(bench.events.path))[-1].event
        assert isinstance(last, ActAnnounced)
        assert last.what["change"] == {"act": "join", "pairs": [[1, 102], [2, 101]]}
        seen.append(entry.id)

    seen: list[int] = []
    bench.switch.before = look
    bench.acting.fabric.apply(SWAP, bench.deadline)
    assert len(seen) == 1
    (entry,) = bench.journal.standing("bench")
    assert entry.state is EntryState.ACTED
    last = list(read_events(bench.events.path))[-1].event
    assert last == ActDone(act=1, test=None, error=None, result={"generation": 2})


def test_acts_carry_the_test_they_belong_to(bench: Bench) -> None:
    bench.recorder.log.test = "remap/latency"
    bench.acting.fabric.apply(SWAP, bench.deadline)
    assert [stamped.event.test for stamped in read_events(bench.events.path)] == ["remap/latency"] * 2  # type: ignore[union-attr]


def test_a_change_is_on_disk_before_it_is_staged_and_known_once_it_was_triggered(bench: Bench) -> None:
    def look() -> None:
        (entry,) = bench.journal.standing("bench")
        seen.append((entry.state, entry.inverse))

    seen: list[object] = []
    bench.switch.before_staging = bench.switch.before = look
    fabric = stager(bench.acting.fabric)
    staged = fabric.stage(SWAP, bench.deadline)
    assert bench.switch.live == BASELINE
    assert fabric.trigger(staged, bench.deadline).generation == 2
    assert seen == [(EntryState.INTENDED, (Partial(PortMap.of([(1, 101), (2, 102)])),))] * 2
    (entry,) = bench.journal.standing("bench")
    assert entry.state is EntryState.ACTED
    last = list(read_events(bench.events.path))[-1].event
    assert last == ActDone(act=1, test=None, error=None, result={"generation": 2})
    with pytest.raises(StaleGeneration, match="stage it again"):
        fabric.trigger(staged, bench.deadline)
    assert [entry.state for entry in bench.journal.standing("bench")] == [EntryState.ACTED]


def test_what_was_staged_and_never_triggered_leaves_nothing_to_undo(bench: Bench) -> None:
    with undoing(bench.rack.equipment, bench.recorder, bench.clock) as acting:
        fabric = stager(acting.fabric)
        first = fabric.stage(SWAP, bench.deadline)
        second = fabric.stage(Open(frozenset({5})), bench.deadline)
        with pytest.raises(StaleGeneration, match="stage it again"):
            fabric.trigger(first, bench.deadline)
        acting.fabric.apply(Partial(PortMap.of([(3, 103)])), bench.deadline)
        with pytest.raises(StaleGeneration, match="stage it again"):
            fabric.trigger(second, bench.deadline)
        fabric.stage(SWAP, bench.deadline)
    assert bench.switch.live == BASELINE
    assert [entry.state for entry in bench.journal.since(0)] == [
        EntryState.FAILED,
        EntryState.UNDONE,
        EntryState.FAILED,
        EntryState.FAILED,
    ]
    errors = [stamped.event.error for stamped in read_events(bench.events.path) if isinstance(stamped.event, ActDone)]
    assert errors.count("not made: staged, and never triggered") == 3


def test_a_change_that_went_stale_between_stage_and_trigger_is_not_made(bench: Bench) -> None:
    fabric = stager(bench.acting.fabric)
    staged = fabric.stage(SWAP, bench.deadline)
    bench.switch.apply(Open(frozenset({5})), bench.deadline)
    with pytest.raises(StaleGeneration):
        fabric.trigger(staged, bench.deadline)
    assert bench.journal.standing("bench") == []
    assert bench.switch.live == BASELINE.without({5})
    fabric.trigger(fabric.stage(SWAP, bench.deadline), bench.deadline)
    assert bench.switch.live == SWAP.after(BASELINE.without({5}))


def test_a_trigger_without_an_answer_keeps_standing(bench: Bench) -> None:
    def lose_the_answer() -> None:
        raise DeadlineExceeded("no acknowledgement")

    fabric = stager(bench.acting.fabric)
    staged = fabric.stage(SWAP, bench.deadline)
    bench.switch.after = lose_the_answer
    with pytest.raises(DeadlineExceeded):
        fabric.trigger(staged, bench.deadline)
    (entry,) = bench.journal.standing("bench")
    assert entry.state is EntryState.INTENDED


def test_a_map_that_cannot_be_staged_leaves_nothing_to_undo(bench: Bench) -> None:
    bench.switch.locked = True
    with pytest.raises(LockedOut):
        stager(bench.acting.fabric).stage(SWAP, bench.deadline)
    assert bench.journal.standing("bench") == []


def test_without_a_journal_nothing_is_done(bench: Bench) -> None:
    bench.journal.close()
    with pytest.raises(LabError, match="nothing may be done"):
        bench.acting.fabric.apply(SWAP, bench.deadline)
    assert bench.switch.applied == []
    last = list(read_events(bench.events.path))[-1].event
    assert isinstance(last, ActDone)
    assert last.error is not None
    assert last.error.startswith("not made")


def test_without_an_event_stream_nothing_is_done(bench: Bench, tmp_path: Path) -> None:
    broken = EventLog(tmp_path / "broken.jsonl", bench.clock)
    broken.close()
    acting = journalled(
        bench.rack.equipment,
        ActRecorder(bench.lab, bench.journal, "run-1", ActLog(broken), disturbs=frozenset({"d03"})),
    )
    with pytest.raises(LabError, match=r"the event stream .* has ended"):
        acting.fabric.apply(SWAP, bench.deadline)
    assert bench.switch.applied == []


def test_a_refused_act_leaves_nothing_to_undo(bench: Bench) -> None:
    bench.switch.locked = True
    with pytest.raises(LockedOut):
        bench.acting.fabric.apply(SWAP, bench.deadline)
    assert bench.journal.standing("bench") == []


def test_an_act_without_an_answer_keeps_standing(bench: Bench) -> None:
    def lose_the_answer() -> None:
        raise DeadlineExceeded("no acknowledgement")

    bench.switch.after = lose_the_answer
    with pytest.raises(DeadlineExceeded):
        bench.acting.fabric.apply(SWAP, bench.deadline)
    (entry,) = bench.journal.standing("bench")
    assert entry.state is EntryState.INTENDED


def test_a_change_that_was_made_but_not_followed_keeps_standing(bench: Bench) -> None:
    bench.switch.stuck = {1}
    with pytest.raises(FabricError):
        bench.acting.fabric.apply(SWAP, bench.deadline)
    assert len(bench.journal.standing("bench")) == 1


def test_the_map_is_read_once_for_many_changes(bench: Bench) -> None:
    reads = 0
    read = bench.switch.live_map

    def counted(deadline: Deadline) -> object:
        nonlocal reads
        reads += 1
        return read(deadline)

    bench.switch.live_map = counted  # type: ignore[method-assign, assignment]
    for drive in (102, 103, 104, 101):
        bench.acting.fabric.apply(Partial(PortMap.of([(1, drive)])), bench.deadline)
    assert reads == 1


def test_another_controllers_change_is_seen_and_the_inverse_computed_anew(bench: Bench) -> None:
    bench.acting.fabric.apply(Partial(PortMap.of([(3, 107)])), bench.deadline)
    bench.switch.apply(Partial(PortMap.of([(1, 104)])), bench.deadline)
    bench.acting.fabric.apply(Open(frozenset({1})), bench.deadline)
    entry = bench.journal.standing("bench")[0]
    assert entry.inverse == (Partial(PortMap.of([(1, 104)])),)
    assert [entry.state for entry in bench.journal.since(0)].count(EntryState.FAILED) == 1


def test_a_change_computed_on_a_map_that_is_stale_is_refused(bench: Bench) -> None:
    live = bench.acting.fabric.live_map(bench.deadline)
    bench.acting.fabric.apply(SWAP, bench.deadline, on=live)
    with pytest.raises(StaleGeneration, match="generation 2, not 1"):
        bench.acting.fabric.apply(SWAP, bench.deadline, on=live)
    assert len(bench.switch.applied) == 1
    assert len(bench.journal.standing("bench")) == 1


@pytest.mark.parametrize("act", ["apply", "save", "drop", "flap", "turn_off", "turn_on"])
def test_a_physical_lab_is_not_disturbed(tmp_path: Path, act: str) -> None:
    bench = Bench(tmp_path, kind=LabKind.PHYSICAL)
    phy, outlet = bench.acting.phy, bench.acting.power["srv1"]
    assert phy
    acts: dict[str, Callable[[], object]] = {
        "apply": lambda: bench.acting.fabric.apply(SWAP, bench.deadline),
        "save": lambda: bench.acting.fabric.save_boot_map(bench.deadline),
        "drop": lambda: phy.drop([1], 0.1, bench.deadline, request_id=1),
        "flap": lambda: phy.flap([1], 0.1, 0.1, 2, bench.deadline, request_id=1),
        "turn_off": lambda: outlet.turn_off(bench.deadline),
        "turn_on": lambda: outlet.turn_on(bench.deadline),
    }
    with pytest.raises(BadInput, match=r"bench is physical.*without a lease") as raised:
        acts[act]()
    assert raised.value.exit_code == 2
    assert (bench.switch.applied, bench.switch.drops, bench.rack.outlets["srv1"].told) == ([], [], [])
    assert bench.journal.since(0) == []
    bench.journal.close()
    bench.events.close()


def test_a_scope_gives_the_map_back_with_one_change(bench: Bench) -> None:
    with undoing(bench.rack.equipment, bench.recorder, bench.clock) as acting:
        for number in range(1000):
            acting.fabric.apply(Partial(PortMap.of([(1 + number % 3, 101 + number % 7)])), bench.deadline)
        assert bench.switch.live != BASELINE
    assert bench.switch.live == BASELINE
    assert len(bench.switch.applied) == 1001
    assert bench.journal.standing("bench") == []


def test_a_scope_that_changed_nothing_in_the_end_sends_nothing(bench: Bench) -> None:
    with undoing(bench.rack.equipment, bench.recorder, bench.clock) as acting:
        acting.fabric.apply(SWAP, bench.deadline)
        acting.fabric.apply(Full(BASELINE), bench.deadline)
    assert len(bench.switch.applied) == 2
    assert bench.journal.standing("bench") == []


def test_a_scope_leaves_alone_what_others_did(bench: Bench) -> None:
    bench.acting.fabric.apply(Partial(PortMap.of([(3, 107)])), bench.deadline)
    with undoing(bench.rack.equipment, bench.recorder, bench.clock) as acting:
        acting.fabric.apply(SWAP, bench.deadline)
    assert bench.switch.live == PortMap.of([*BASELINE, (3, 107)])
    assert len(bench.journal.standing("bench")) == 1


def test_scopes_overlap_without_undoing_each_others_acts(bench: Bench) -> None:
    with undoing(bench.rack.equipment, bench.recorder, bench.clock) as outer:
        outer.power["srv1"].turn_off(bench.deadline)
        with undoing(bench.rack.equipment, bench.recorder, bench.clock) as inner:
            inner.fabric.apply(SWAP, bench.deadline)
            outer.power["srv2"].turn_off(bench.deadline)
        assert bench.switch.live == BASELINE
        assert not bench.rack.outlets["srv2"].on
    assert all(outlet.on for outlet in bench.rack.outlets.values())


def test_a_scope_undoes_what_threads_did_in_it(bench: Bench) -> None:
    with undoing(bench.rack.equipment, bench.recorder, bench.clock) as acting, ThreadPoolExecutor(4) as pool:
        changes: list[MapChange] = [Partial(PortMap.of([(1 + n % 8, 101 + n % 5)])) for n in range(64)]
        list(pool.map(lambda change: acting.fabric.apply(change, bench.deadline), changes))
    assert bench.switch.live == BASELINE
    assert bench.journal.standing("bench") == []


def test_a_scope_gives_back_power_signal_and_the_power_on_map(bench: Bench) -> None:
    with undoing(bench.rack.equipment, bench.recorder, bench.clock) as acting:
        assert acting.phy
        acting.power["srv1"].turn_off(bench.deadline)
        acting.phy.drop([1, 101, 40], 3, bench.deadline, request_id=1)
        acting.fabric.apply(SWAP, bench.deadline)
        acting.fabric.save_boot_map(bench.deadline)
        dropped_until_ns = bench.clock.now_ns() + 3_000_000_000
    assert bench.rack.outlets["srv1"].on
    assert (bench.switch.live, bench.switch.saved) == (BASELINE, BASELINE)
    assert bench.clock.now_ns() >= dropped_until_ns
    assert bench.journal.standing("bench") == []


def test_a_drop_that_is_long_over_costs_no_wait(bench: Bench) -> None:
    with undoing(bench.rack.equipment, bench.recorder, bench.clock) as acting:
        assert acting.phy
        acting.phy.drop([1], 3, bench.deadline, request_id=1)
        bench.clock.advance(60)
        before_ns = bench.clock.now_ns()
    assert bench.clock.now_ns() == before_ns


def test_a_flap_is_waited_out_whole(bench: Bench) -> None:
    with undoing(bench.rack.equipment, bench.recorder, bench.clock) as acting:
        assert acting.phy
        acting.phy.flap([1], 0.1, 0.3, 5, bench.deadline, request_id=1)
        started_ns = bench.clock.now_ns()
    assert bench.clock.now_ns() == started_ns + 2_000_000_000


def test_power_is_given_the_state_it_had(bench: Bench) -> None:
    bench.rack.outlets["srv1"].on = False
    with undoing(bench.rack.equipment, bench.recorder, bench.clock) as acting:
        acting.power["srv1"].turn_on(bench.deadline)
        acting.power["srv1"].turn_off(bench.deadline)
        acting.power["srv1"].turn_on(bench.deadline)
    assert not bench.rack.outlets["srv1"].on


def test_a_switch_that_lost_its_power_gets_its_map_back(bench: Bench) -> None:
    bench.switch.saved = PortMap()
    with undoing(bench.rack.equipment, bench.recorder, bench.clock) as acting:
        acting.fabric.apply(SWAP, bench.deadline)
        acting.power["switch"].turn_off(bench.deadline)
    assert bench.rack.outlets["switch"].on
    assert bench.switch.live == BASELINE


class SlowOutlet(SimOutlet):
    """Takes 45 s to turn on, where it is given that."""

    def turn_on(self, deadline: Deadline) -> None:
        take_45_s(deadline)
        super().turn_on(deadline)


class SlowSlot(SimPart):
    """A drive in it takes 45 s to come back, where it is given that."""

    def mend(self, key: str, deadline: Deadline) -> None:
        take_45_s(deadline)
        super().mend(key, deadline)


def take_45_s(deadline: Deadline) -> None:
    if deadline.remaining_s() < 45:
        raise DeadlineExceeded("it takes 45 s")
    deadline.clock.sleep_until_ns(deadline.clock.now_ns() + 45_000_000_000)


def timed(bench: Bench, **times: float) -> ActRecorder:
    """The recorder of a lab with these times."""
    changed = bench.lab.times.model_copy(update=times)
    return replace(bench.recorder, lab=bench.lab.model_copy(update={"times": changed}))


def test_undoing_has_the_time_of_an_act_for_each_part(bench: Bench) -> None:
    bench.rack.outlets |= {"srv1": SlowOutlet(), "srv2": SlowOutlet()}
    with undoing(bench.rack.equipment, timed(bench, act=60.0, boot=1.0), bench.clock) as acting:
        acting.power["srv1"].turn_off(bench.deadline)
        acting.power["srv2"].turn_off(bench.deadline)
    assert bench.journal.standing("bench") == []


def test_undoing_has_the_time_to_spin_up_for_each_slot(bench: Bench) -> None:
    slots = ("slot:srv1/p0", "slot:srv1/p1")
    bench.rack.parts |= {name: SlowSlot("removed") for name in slots}
    with undoing(bench.rack.equipment, timed(bench, act=1.0, spin_up=45.0), bench.clock) as acting:
        for name in slots:
            acting.breakable[name].break_as("k", {"kind": "removed"}, bench.deadline)
    assert bench.journal.standing("bench") == []


def test_a_scope_undoes_when_its_body_fails_and_lets_the_failure_through(bench: Bench) -> None:
    with (  # noqa: PT012 - the failure is the body's
        pytest.raises(ZeroDivisionError) as raised,
        undoing(bench.rack.equipment, bench.recorder, bench.clock) as acting,
    ):
        acting.fabric.apply(SWAP, bench.deadline)
        bench.switch.stuck = {1}
        raise ZeroDivisionError
    assert bench.switch.live.peer_of(1) == 102
    assert any("ports 1" in note for note in raised.value.__notes__)


def test_what_cannot_be_undone_is_named_all_of_it_and_the_rest_is_undone(bench: Bench) -> None:
    with (  # noqa: PT012 - undoing fails on the way out
        pytest.raises(UndoFailed) as raised,
        undoing(bench.rack.equipment, bench.recorder, bench.clock) as acting,
    ):
        assert acting.phy
        acting.fabric.apply(Partial(PortMap.of([(1, 108)])), bench.deadline)
        acting.fabric.apply(Open(frozenset({5})), bench.deadline)
        acting.power["srv1"].turn_off(bench.deadline)
        acting.power["srv2"].turn_off(bench.deadline)
        acting.phy.drop([6], 0.1, bench.deadline, request_id=1)
        bench.switch.stuck = {1}
        bench.switch.dark = {6}
        bench.rack.outlets["srv1"].broken = True
    first, second, third = raised.value.problems
    assert "srv1" in first
    assert "ports 1, 101, 108" in second
    assert "ports 6 have no signal" in third
    assert bench.rack.outlets["srv2"].on
    assert bench.switch.live.peer_of(5) == 103
    assert {type(entry.what) for entry in bench.journal.standing("bench")} == {ChangeMap, TurnOff, DropSignal}
    assert len(bench.journal.standing("bench")) == 3


def test_an_outlet_the_lab_no_longer_has_is_named(bench: Bench) -> None:
    with (  # noqa: PT012 - undoing fails on the way out
        pytest.raises(UndoFailed, match=r"srv1.*no power port of this name"),
        undoing(bench.rack.equipment, bench.recorder, bench.clock) as acting,
    ):
        acting.power["srv1"].turn_off(bench.deadline)
        del bench.rack.outlets["srv1"]


def changes() -> st.SearchStrategy[MapChange]:
    opened = st.frozensets(st.integers(1, 8), min_size=1).map(Open)
    return st.one_of(maps().map(Partial), maps().map(Full), opened)


@given(start=maps(), made=st.lists(changes(), max_size=12))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
def test_any_sequence_of_changes_is_undone_exactly(bench: Bench, start: PortMap, made: list[MapChange]) -> None:
    bench.switch.live = start
    bench.switch.generation += 1
    with undoing(bench.rack.equipment, bench.recorder, bench.clock) as acting:
        for change in made:
            acting.fabric.apply(change, bench.deadline)
    assert bench.switch.live == start
    assert bench.journal.standing("bench") == []


def test_a_flap_is_journalled_with_its_times(bench: Bench) -> None:
    assert bench.acting.phy
    bench.acting.phy.flap([3, 1], 0.1, 0.2, 3, bench.deadline, request_id=9)
    (entry,) = bench.journal.standing("bench")
    assert entry.what == FlapSignal(frozenset({1, 3}), 100.0, 200.0, 3, 9)
    assert entry.inverse == (SettleSignal(frozenset({1}), (0.1 + 0.2) * 3 * 1e3),)
