"""Heal: whatever a run left and however it ended, the baseline stands again, or what does not is named."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from threading import Barrier
from typing import Any

import pytest

from rackloop.abilities import Drive, LiveMap
from rackloop.clock import Deadline
from rackloop.errors import BadInput, DeadlineExceeded, LockedOut, RackloopError, ToolError
from rackloop.lab import LabKind
from rackloop.portmap import Open, Partial, PortMap
from rackloop.record.acts import DropSignal, RestorePower, SaveBootMap, TurnOff, TurnOn
from rackloop.safety import HealReport, heal
from tests.unit.harness.journalled_bench import Bench
from tests.unit.harness.looked_at import Looked
from tests.unit.harness.sim_rack import BASELINE, SimOutlet, SimPart


def test_a_rack_at_its_baseline_is_left_alone(bench: Bench) -> None:
    report = bench.heal()
    assert report.is_healed
    assert (report.undone, report.restored_ports, bench.switch.applied) == ((), (), [])


def test_everything_a_run_left_is_undone(bench: Bench) -> None:
    assert bench.acting.phy
    bench.acting.fabric.apply(Partial(PortMap.of([(1, 102), (3, 107)])), bench.deadline)
    bench.acting.phy.drop([6], 2, bench.deadline, request_id=1)
    bench.acting.power["srv1"].turn_off(bench.deadline)
    bench.acting.fabric.save_boot_map(bench.deadline)
    report = bench.heal()
    assert report.is_healed
    assert len(report.undone) == 4
    assert report.restored_ports == ()
    assert (bench.switch.live, bench.switch.saved) == (BASELINE, BASELINE)
    assert bench.rack.outlets["srv1"].on
    assert bench.clock.now_ns() >= 2_000_000_000
    assert bench.journal.standing("bench") == []


def test_heal_twice_is_heal_once(bench: Bench) -> None:
    bench.acting.fabric.apply(Open(frozenset({1})), bench.deadline)
    assert bench.heal().is_healed
    again = bench.heal()
    assert again.is_healed
    assert again.undone == ()
    assert len(bench.switch.applied) == 2


def test_an_intention_that_never_happened_is_compared_with_reality(bench: Bench) -> None:
    bench.journal.intend(
        "bench", "run-1", "switch", what=SaveBootMap(), inverse=[Partial(PortMap.of([(1, 101), (2, 102)]))]
    )
    bench.journal.intend("bench", "run-1", "srv1", what=TurnOff(), inverse=[RestorePower(on=True)])
    report = bench.heal()
    assert report.is_healed
    assert len(report.undone) == 2
    assert bench.switch.applied == []
    assert bench.rack.outlets["srv1"].told == []


def test_entries_of_other_labs_are_not_touched(bench: Bench) -> None:
    bench.journal.intend("other", "run-1", "srv1", what=TurnOn(), inverse=[RestorePower(on=False)])
    assert bench.heal().is_healed
    assert bench.rack.outlets["srv1"].on
    assert len(bench.journal.standing("other")) == 1


def test_a_switch_left_without_power_gets_it_before_its_map(bench: Bench) -> None:
    bench.switch.saved = PortMap.of([(9, 109)])
    bench.acting.fabric.apply(Partial(PortMap.of([(3, 107)])), bench.deadline)
    bench.acting.power["switch"].turn_off(bench.deadline)
    report = bench.heal()
    assert report.is_healed
    assert bench.switch.live == BASELINE


def test_circuits_no_entry_explains_are_given_back_and_named(bench: Bench) -> None:
    bench.switch.apply(Partial(PortMap.of([(1, 108)])), bench.deadline)
    report = bench.heal()
    assert report.is_healed
    assert report.restored_ports == (1, 101, 108)
    assert bench.switch.live == BASELINE


def test_power_no_entry_explains_is_named_and_not_touched(bench: Bench) -> None:
    bench.rack.outlets["srv2"].on = False
    report = bench.heal()
    assert report.problems == ("power port srv2 is off and no journal entry says why; turn it on if it should be",)
    assert bench.rack.outlets["srv2"].told == []


def test_all_power_ports_are_asked_at_once_and_told_of_in_order(bench: Bench) -> None:
    all_asked = Barrier(len(bench.rack.outlets), timeout=10)

    class SlowOutlet(SimOutlet):
        def is_on(self, deadline: Deadline) -> bool:
            all_asked.wait()
            return False

    for name in bench.rack.outlets:
        bench.rack.outlets[name] = SlowOutlet()
    report = bench.heal()
    assert [problem.split()[2] for problem in report.problems] == ["srv1", "srv2", "switch"]


def test_faults_of_a_run_are_mended(bench: Bench) -> None:
    for name, kind in (("drive:d01", "hang"), ("server:srv1", "crash"), ("control", "lost")):
        bench.acting.breakable[name].break_as("run-1/1", {"kind": kind}, bench.deadline)
    report = bench.heal()
    assert report.is_healed
    assert len(report.undone) == 3
    assert report.mended == ()
    assert not any(part.broken for part in bench.rack.parts.values())


def test_a_part_learns_what_was_broken_before_any_of_it_is_mended(bench: Bench) -> None:
    class Recalling(SimPart):
        def recall(self, faults: Mapping[str, Mapping[str, Any]]) -> None:
            self.told.append(f"recall {dict(faults)}")

    bench.rack.parts["server:srv1"] = part = Recalling("crash", "hang", name="srv1")
    for key, kind in (("run-1/1", "hang"), ("run-1/2", "crash")):
        bench.acting.breakable["server:srv1"].break_as(key, {"kind": kind}, bench.deadline)
    part.told.clear()
    assert bench.heal().is_healed
    known = {"run-1/2": {"kind": "crash"}, "run-1/1": {"kind": "hang"}}
    assert part.told == [f"recall {known}", "mend srv1", "mend srv1"]


def test_faults_that_no_entry_explains_are_mended_in_a_simulated_rack_and_told(bench: Bench) -> None:
    bench.acting.breakable["drive:d01"].break_as("run-1/1", {"kind": "slow"}, bench.deadline)
    bench.rack.parts["drive:d01"].broken["#7"] = {"kind": "hang"}
    bench.rack.parts["server:srv1"].broken["#crash"] = {"kind": "crash"}
    report = bench.heal()
    assert report.is_healed
    assert report.mended == ("hang of drive:d01", "crash of server:srv1")
    assert not any(part.broken for part in bench.rack.parts.values())


def test_cables_that_no_entry_explains_are_left_to_the_cabling_check(bench: Bench) -> None:
    swapped = {"#101-103": {"kind": "miswire", "ports": [101, 103]}}
    bench.rack.parts["cabling"].broken.update(swapped)
    assert bench.heal().mended == ()
    assert bench.rack.parts["cabling"].broken == swapped


def test_a_lost_control_link_that_no_entry_explains_does_not_keep_the_map_from_being_given_back(bench: Bench) -> None:
    bench.acting.fabric.apply(Open(frozenset({1})), bench.deadline)
    control = bench.rack.parts["control"]
    control.broken["#lost"] = {"kind": "lost"}
    live_map = bench.switch.live_map

    def heard(deadline: Deadline) -> LiveMap:
        if control.broken:
            raise DeadlineExceeded("the switch does not hear")
        return live_map(deadline)

    bench.switch.live_map = heard  # type: ignore[method-assign]
    assert bench.heal().problems == ()
    assert bench.switch.live == BASELINE


def test_faults_of_a_real_rack_that_no_entry_explains_are_named_and_not_touched(bench: Bench) -> None:
    bench.lab = bench.lab.model_copy(update={"kind": LabKind.VIRTUAL})
    bench.rack.parts["drive:d01"].broken["k"] = {"kind": "hang"}
    report = bench.heal()
    assert report.problems == ("drive:d01 has the fault hang, which is not in the journal; clear it by hand",)
    assert bench.rack.parts["drive:d01"].broken


def test_a_note_that_cannot_be_read_is_named_with_the_reason(bench: Bench) -> None:
    bench.lab = bench.lab.model_copy(update={"kind": LabKind.VIRTUAL})
    bench.rack.parts["drive:d01"].broken["k"] = {"kind": "unreadable", "why": "drive RL000001 is gone"}
    assert bench.heal().problems == (
        "drive:d01 has the fault unreadable (drive RL000001 is gone), which is not in the journal; clear it by hand",
    )


def test_a_register_that_cannot_be_read_is_named_and_the_rest_is_healed(bench: Bench) -> None:
    bench.acting.fabric.apply(Open(frozenset({1})), bench.deadline)
    bench.rack.register.is_silent = True
    report = bench.heal()
    assert report.problems == ("the faults that stand cannot be read: nobody answers",)
    assert bench.switch.live == BASELINE


@pytest.mark.parametrize("failure", [ToolError("ipmitool is not here"), BadInput("not of this lease")], ids=repr)
def test_a_tool_that_is_missing_and_a_refusal_are_named_and_the_rest_is_healed(
    bench: Bench, failure: RackloopError
) -> None:
    for name, kind in (("drive:d01", "hang"), ("server:srv1", "crash"), ("control", "lost")):
        bench.acting.breakable[name].break_as("run-1/1", {"kind": kind}, bench.deadline)
    bench.rack.parts["drive:d03"].broken["#7"] = {"kind": "hang"}
    bench.acting.power["srv1"].turn_off(bench.deadline)
    bench.switch.apply(Open(frozenset({5})), bench.deadline)

    def fail() -> None:
        raise failure

    bench.rack.outlets["srv1"].asking = fail
    for name in ("control", "drive:d01", "drive:d03"):
        bench.rack.parts[name].mending = fail
    report = bench.heal()
    assert report.problems == (
        f"drive:d03 has the fault hang, which cannot be cleared: {failure}",
        f"control: {failure}",
        f"power port srv1: {failure}",
        f"drive:d01: {failure}",
    )
    assert not bench.rack.parts["server:srv1"].broken
    assert bench.switch.live == BASELINE


@pytest.mark.parametrize("asked", ["boot_map", "live_map"])
def test_a_switch_that_is_refused_or_has_no_tool_is_named_and_the_rest_is_healed(bench: Bench, asked: str) -> None:
    assert bench.acting.phy
    bench.acting.fabric.save_boot_map(bench.deadline)
    bench.acting.fabric.apply(Open(frozenset({1})), bench.deadline)
    bench.acting.phy.drop([6], 2, bench.deadline, request_id=1)
    bench.acting.power["srv1"].turn_off(bench.deadline)

    def fail(name: str) -> None:
        if name == asked:
            raise ToolError("no terminal program")

    bench.switch.asking = fail
    problems = bench.heal().problems
    assert problems
    assert all(problem.endswith(": no terminal program") for problem in problems)
    assert bench.rack.outlets["srv1"].on


def looking(
    bench: Bench, looked: Looked, *, thorough: bool = False, answering: Collection[str] = ("srv1", "srv2")
) -> HealReport:
    return heal(
        bench.lab,
        bench.journal,
        bench.rack.equipment,
        bench.clock,
        Deadline.after(bench.clock, 10),
        look_at=looked,
        thorough=thorough,
        answering=lambda: answering,
    )


def test_a_server_that_did_not_answer_is_waited_for_though_nothing_had_to_be_healed(bench: Bench) -> None:
    """A run may be killed when it has given power back and the server still boots."""
    looked = Looked(bench)
    assert looking(bench, looked, answering={"srv1"}).found_in_order
    assert looked.asked == ["srv2"]
    looked.silent = {"srv2"}
    (problem,) = looking(bench, looked, answering={"srv1"}).problems
    assert problem.startswith("server srv2 does not answer: nobody there; start it anew")


def test_servers_and_drives_are_looked_at_where_something_was_healed_or_it_is_asked_for(bench: Bench) -> None:
    looked = Looked(bench)
    assert looking(bench, looked).is_healed
    assert looked.asked == []
    assert looking(bench, looked, thorough=True).is_healed
    everything = {"srv1", "srv2", "d01", "d02", "d03", "d04"}
    assert set(looked.asked) == everything
    looked.asked.clear()
    bench.acting.fabric.apply(Open(frozenset({1})), bench.deadline)
    assert looking(bench, looked).is_healed
    assert set(looked.asked) == everything


def test_drives_are_asked_who_they_are_once_the_map_is_restored(bench: Bench) -> None:
    """With nothing in the journal: the circuits of somebody else go to other drives until then."""
    strange = PortMap.of([(1, 108), (2, 109)])
    bench.rack.equipment.fabric.apply(Partial(strange), bench.deadline)

    class Elsewhere(Looked):
        def drive(self, server: str, port: str) -> Drive:
            if set(strange.pairs) <= set(bench.rack.equipment.fabric.live_map(bench.deadline).pairs):
                self.swapped = {"d01": "d04"}
            return super().drive(server, port)

    assert looking(bench, Elsewhere(bench), thorough=True).problems == ()


def test_a_server_that_does_not_answer_and_a_drive_that_is_not_there_are_named(bench: Bench) -> None:
    looked = Looked(bench)
    looked.silent, looked.swapped = {"srv2", "d02"}, {"d04": "d01"}
    server, missing, other = looking(bench, looked, thorough=True).problems
    assert server == ("server srv2 does not answer: nobody there; start it anew with `rackloop power bench cycle srv2`")
    assert missing == ("drive d02 does not answer at srv1.p1: no drive is online; look at its cable and its power")
    assert other.startswith("at srv2.p1 is another drive than d04: ")


def test_a_server_and_a_drive_that_a_missing_tool_keeps_from_being_asked_are_named(bench: Bench) -> None:
    looked = Looked(bench)
    looked.silent, looked.failure = {"srv2", "d02"}, ToolError("smp_discover is not here")
    assert looking(bench, looked, thorough=True).problems == (
        "server srv2 cannot be asked: smp_discover is not here",
        "drive d02 cannot be asked at srv1.p1: smp_discover is not here",
    )


def test_what_cannot_be_healed_is_named_and_stands_until_it_can(bench: Bench) -> None:
    bench.acting.fabric.apply(Partial(PortMap.of([(1, 108), (2, 109)])), bench.deadline)
    bench.switch.stuck = {1}
    bench.switch.dark = {5}
    report = bench.heal()
    assert not report.is_healed
    assert any("ports 1, 101, 108 did not take their circuits back" in problem for problem in report.problems)
    assert any("switch:" in problem for problem in report.problems)
    assert len(bench.journal.standing("bench")) == 1
    bench.switch.stuck = set()
    again = bench.heal()
    assert again.problems == ("ports 5 have no signal; look at the cables, the drives and the servers' power",)
    assert bench.switch.live == BASELINE
    assert bench.journal.standing("bench") == []


def test_an_unreachable_switch_is_named(bench: Bench) -> None:
    bench.acting.fabric.apply(Open(frozenset({1})), bench.deadline)
    bench.switch.reachable = False
    report = bench.heal()
    assert report.problems == ("port map: the switch does not answer", "switch: the switch does not answer")
    assert len(bench.journal.standing("bench")) == 1


def test_a_dark_port_is_not_waited_for_until_the_deadline(bench: Bench) -> None:
    bench.switch.dark = {5, 103}
    report = bench.heal(within_s=600)
    assert report.problems == ("ports 5, 103 have no signal; look at the cables, the drives and the servers' power",)
    assert bench.clock.now_ns() < 6_000_000_000


def test_a_drop_that_outlasts_the_deadline_is_named_and_not_waited_for(bench: Bench) -> None:
    assert bench.acting.phy
    bench.acting.phy.drop([1], 60, bench.deadline, request_id=1)
    bench.acting.phy.drop([2], 1, bench.deadline, request_id=2)
    report = bench.heal(within_s=20)
    assert report.problems[0] == "ports 1 are without signal for 60 s more; undo it then"
    assert [entry.what for entry in bench.journal.standing("bench")] == [DropSignal(frozenset({1}), 60_000, 1)]
    bench.clock.advance(60)
    assert bench.heal().is_healed


def test_a_switch_locked_by_another_is_named(bench: Bench) -> None:
    bench.acting.fabric.apply(Open(frozenset({1})), bench.deadline)
    bench.switch.locked = True
    report = bench.heal()
    assert any("another controller holds the lock" in problem for problem in report.problems)
    with pytest.raises(LockedOut):
        bench.switch.apply(Open(frozenset({2})), bench.deadline)


def test_a_physical_lab_is_not_healed_without_a_lease(bench: Bench) -> None:
    bench.lab = bench.lab.model_copy(update={"kind": LabKind.PHYSICAL})
    with pytest.raises(BadInput, match="physical") as raised:
        bench.heal()
    assert raised.value.exit_code == 2


def test_a_damaged_journal_does_not_keep_the_baseline_from_standing(bench: Bench) -> None:
    for port in (1, 2, 5):
        bench.acting.fabric.apply(Open(frozenset({port})), bench.deadline)
    with bench.journal.store.transaction() as tables:
        tables.rows("UPDATE undo_entry SET what = '{' WHERE id = 2")
    report = bench.heal()
    assert not report.is_healed
    assert any("is damaged" in problem for problem in report.problems)
    assert bench.switch.live == BASELINE
    assert [entry.id for entry in report.undone] == [3, 1]


@pytest.mark.parametrize(
    ("when_updated", "said"),
    [
        ("SELECT RAISE(ABORT, 'malformed')", "is damaged (malformed)"),
        ("INSERT INTO fencing VALUES (hex(zeroblob(1000000)), 1)", "database or disk is full"),
    ],
    ids=["a damaged page", "a full disk"],
)
def test_a_journal_that_cannot_take_down_what_was_undone_does_not_keep_the_baseline_from_standing(
    bench: Bench, when_updated: str, said: str
) -> None:
    bench.acting.power["srv1"].turn_off(bench.deadline)
    bench.switch.apply(Open(frozenset({5})), bench.deadline)
    with bench.journal.store.transaction() as tables:
        tables.rows(f"CREATE TRIGGER refuse BEFORE UPDATE ON undo_entry BEGIN {when_updated}; END")
        tables.rows("PRAGMA max_page_count = 100")
    report = bench.heal()
    (problem,) = report.problems
    assert said in problem
    assert report.undone == ()
    assert bench.rack.outlets["srv1"].on
    assert bench.switch.live == BASELINE
    with bench.journal.store.transaction() as tables:
        tables.rows("DROP TRIGGER refuse")
    assert bench.heal().is_healed
    assert bench.journal.standing("bench") == []
