"""A server that does not answer: its power is cut for a panic that the journal knows of, and for no other fault."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from rackloop.clock import Deadline
from rackloop.errors import FaultRefused, HostKeyMismatch, HostKeyUnknown, LabError, LoginRefused, NotConnected
from rackloop.faults import Faults, FaultSpec
from rackloop.lab import LabKind
from rackloop.record.acts import BreakPart, MendPart
from rackloop.safety.leases import LeaseTerms, leased
from rackloop.safety.undo import journalled, undo
from rackloop_drivers.crash import HostCrash, ServerFaults
from rackloop_drivers.host_tools import HostFaults
from rackloop_labs.host_breakables import crashes
from tests.unit.drivers.panicking_server import KEY, NAME, Controller, Killed, World

if TYPE_CHECKING:
    from rackloop.abilities import Host
    from rackloop_drivers.crash import RestartNote
    from rackloop_drivers.host import SshHost

LATER = "run-1/2"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with closing(World(tmp_path)) as world:
        yield world


def test_a_healthy_server_that_cannot_be_reached_keeps_its_power_and_its_fault_stands(world: World) -> None:
    world.break_as("hang")
    world.server.is_silent = True
    report = world.heal_anew()
    (problem,) = report.problems
    assert problem.startswith("server:srv1: srv1 has power and does not answer, and its faults were left as they are: ")
    assert problem.endswith("look at its network and its console, start it anew if it has stopped, and heal again")
    assert (report.undone, world.outlet.told, world.hang.is_held) == ((), [], True)
    world.server.is_silent = False
    report = world.heal_anew()
    assert (report.problems, len(report.undone)) == ((), 1)
    assert (world.outlet.told, world.hang.is_held) == ([], False)


def test_a_key_that_nobody_knows_cuts_no_power(world: World) -> None:
    world.server.is_silent = True
    with pytest.raises(LabError, match="srv1 has power and does not answer"):
        world.equipment().breakable[NAME].mend("md_array/17", world.deadline)
    assert world.outlet.told == []


def test_a_server_that_boots_or_is_slow_to_log_in_is_waited_for_in_half_of_the_time(world: World) -> None:
    world.break_as("hang")
    world.server.is_silent, world.server.boots_within_s = True, 100.0
    world.equipment().breakable[NAME].mend(KEY, Deadline.after(world.clock, 200))
    assert max(world.server.waits_s) == 100
    assert (world.outlet.told, world.hang.is_held) == ([], False)


@pytest.mark.parametrize("kind", ["crash", "nmi"])
def test_a_server_that_panicked_is_started_anew_by_another_process(world: World, kind: str) -> None:
    world.server.panics = True
    world.break_as(kind, Controller(world.server, silences=True))
    report = world.heal_anew()
    assert (report.problems, len(report.undone)) == ((), 1)
    assert world.outlet.told == ["off", "on"]


def test_a_panic_explains_all_else_that_was_broken_before_and_after_it(world: World) -> None:
    """What was to be broken in a server that had panicked may have been, and so stands in the journal."""
    world.break_as("hang", key="run-1/0")
    world.break_as("nmi", Controller(world.server, silences=True))
    with pytest.raises(NotConnected):
        world.break_as("hang", key=LATER)
    report = world.heal_anew()
    assert (report.problems, len(report.undone)) == ((), 3)
    assert world.outlet.told == ["off", "on"]


def test_a_hang_that_a_new_start_ended_keeps_no_later_one_from_being_ended(world: World) -> None:
    """Its note stays on a server that boots when it is mended, and cannot be asked."""
    world.break_as("hang", key="run-1/0")
    world.break_as("nmi", Controller(world.server, silences=True))
    assert world.heal_anew().is_healed
    world.server.boot("second")
    world.hang.is_held = False
    world.break_as("hang", key="run-2/0")
    assert world.heal_anew().is_healed
    assert not world.hang.is_held


@pytest.mark.parametrize("kind", ["crash", "nmi"])
def test_a_server_that_does_not_answer_is_not_told_to_panic_and_keeps_its_power(world: World, kind: str) -> None:
    """As one that boots or is cut off; it may have fallen silent since the guard looked at it."""
    controller = Controller(world.server, silences=True)
    world.server.is_silent = True
    faults = Faults(world.lab, world.equipment(controller), world.clock, world.recorder)
    with pytest.raises(FaultRefused, match="srv1 is broken as crash already"):
        faults.begin(FaultSpec(f"server_{kind}", "srv1"))
    with pytest.raises(FaultRefused, match=f"{kind} of srv1 may not be made: it does not answer"):
        world.break_as(kind, controller)
    assert world.entries() == ["failed"]
    assert world.heal_anew().is_healed
    assert (controller.seen, world.outlet.told) == (None, [])


@pytest.mark.parametrize(("first", "second"), [("crash", "nmi"), ("nmi", "crash")])
def test_a_kernel_that_panicked_by_one_means_does_not_panic_by_the_other(world: World, first: str, second: str) -> None:
    world.server.panics = True
    equipment = world.equipment(Controller(world.server, silences=True))
    faults = Faults(world.lab, equipment, world.clock, world.recorder)
    injection = faults.begin(FaultSpec(f"server_{first}", "srv1"))
    with pytest.raises(FaultRefused, match=f"srv1 is broken as {first} already"):
        faults.begin(FaultSpec(f"server_{second}", "srv1"))
    faults.end(injection)
    assert world.outlet.told == ["off", "on"]


@pytest.mark.parametrize(("refuses", "left"), [("on", ["off"]), ("off", [])])
def test_a_mending_that_ended_between_off_and_on_is_gone_on_with_by_another_process(
    world: World, refuses: str, left: list[str]
) -> None:
    world.server.panics = True
    world.break_as("crash")
    world.outlet.refuses = refuses
    assert world.heal_anew().undone == ()
    assert world.outlet.told == left
    world.outlet.refuses = ""
    report = world.heal_anew()
    assert (report.problems, len(report.undone)) == ((), 2), "the panic and the note of its mending"
    assert world.outlet.told == ["off", "on"]


@pytest.mark.parametrize(("refuses", "left"), [("on", ["off"]), ("off", [])])
def test_a_mending_that_ended_between_off_and_on_is_gone_on_with_by_its_own_process(
    world: World, refuses: str, left: list[str]
) -> None:
    world.server.panics = True
    equipment = world.equipment()
    part = equipment.breakable[NAME]
    faults = Faults(world.lab, equipment, world.clock, world.recorder)
    injection = faults.begin(FaultSpec("server_crash", "srv1"))
    world.outlet.refuses = refuses
    with pytest.raises(LabError, match="bmc-srv1: no answer"):
        faults.end(injection)
    assert world.outlet.told == left
    assert [fault["kind"] for fault in part.standing(world.deadline).values()] == ["crash"]
    world.outlet.refuses = ""
    faults.end(injection)
    assert world.outlet.told == ["off", "on"]
    assert part.standing(world.deadline) == {}


def test_power_that_somebody_else_cut_is_not_given_back(world: World) -> None:
    """Neither for a key that nobody knows, nor by who knows that its own mending gave the power back."""
    world.outlet.turn_off(world.deadline)
    world.server.is_silent = True
    world.equipment().breakable[NAME].mend("md_array/17", world.deadline)
    assert world.outlet.told == ["off"]
    world.outlet.turn_on(world.deadline)
    world.server.boot("second")
    world.server.panics = True
    equipment = world.equipment()
    part = journalled(equipment, world.recorder).breakable[NAME]
    part.break_as(KEY, {"kind": "crash"}, world.deadline)
    made = world.standing()
    part.mend(KEY, world.deadline)
    world.server.panics = False
    world.server.boot("third")
    assert part.standing(world.deadline) == {}
    world.outlet.turn_off(world.deadline)
    world.server.is_silent = True
    outcome = undo(made, equipment, world.journal, world.deadline)
    assert (outcome.problems, len(outcome.undone)) == ((), 1)
    assert world.outlet.told == ["off", "on", "off", "on", "off"]


def test_a_server_that_was_told_to_start_boots_in_peace_though_the_answer_to_that_was_lost(world: World) -> None:
    """Its controller shares its NIC, whose link goes at power-on."""
    world.server.panics = True
    world.break_as("crash")
    world.outlet.does_unheard = "on"
    report = world.heal_anew()
    assert (report.problems, len(report.undone)) == ((), 1)
    assert world.outlet.told == ["off", "on"]


def told_on_unheard(world: World) -> ServerFaults:
    """The faults of a server that panicked and was told to start, the answer to which was lost."""
    world.server.panics = True
    world.break_as("crash")
    part = world.part()
    part.recall({KEY: {"kind": "crash"}})
    world.outlet.does_unheard = "on"
    with pytest.raises(NotConnected, match="its answer was lost"):
        part.mend(KEY, world.deadline)
    return part


def test_a_controller_that_is_silent_once_power_was_told_on_leaves_the_fault_and_the_server_alone(world: World) -> None:
    part = told_on_unheard(world)
    world.outlet.is_silent = True
    with pytest.raises(NotConnected, match="no answer"):
        part.mend(KEY, world.deadline)
    world.outlet.is_silent = False
    assert part.standing(world.deadline) == {}
    assert world.outlet.told == ["off", "on"]


def test_a_server_that_does_not_come_up_in_its_time_is_started_once_more(world: World) -> None:
    world.server.panics = True
    world.break_as("crash")
    part = world.part()
    told = []
    for waited_s in (0, 599, 1):
        world.clock.advance(waited_s)
        part.recall({KEY: {"kind": "crash"}})
        part.mend(KEY, world.deadline)
        told.append(len(world.outlet.told))
    assert told == [2, 2, 4]


@pytest.mark.parametrize("was_made", [True, False])
def test_power_that_an_operator_cut_after_a_run_died_is_named_and_not_given(world: World, *, was_made: bool) -> None:
    """Also where the run died before the kernel was told anything."""
    world.server.panics = True
    if was_made:
        world.break_as("crash")
    else:
        world.recorder.intend(NAME, BreakPart(KEY, {"kind": "crash"}), [MendPart(KEY)])
    world.server.is_silent = True
    world.outlet.turn_off(world.deadline)
    report = world.heal_anew()
    named = f"power port {NAME} is off and no journal entry says why; turn it on if it should be"
    assert (report.problems, len(report.undone), world.outlet.told) == ((named,), 1, ["off"])


@pytest.mark.parametrize(("before", "after"), [("off", ""), ("", "off"), ("on", ""), ("", "on")])
def test_a_mending_that_was_killed_is_gone_on_with_by_the_next_heal(world: World, before: str, after: str) -> None:
    """Before or after its power did what it was told; a server that has it back boots, and keeps it."""
    world.server.panics = True
    world.break_as("crash")
    world.outlet.refuses, world.outlet.does_unheard, world.outlet.raises = before, after, Killed
    with pytest.raises(Killed):
        world.heal_anew()
    world.outlet.refuses = world.outlet.does_unheard = ""
    assert world.heal_anew().is_healed
    assert world.outlet.told == ["off", "on"]
    assert world.journal.standing(world.lab.name) == []
    world.outlet.turn_off(world.deadline)
    world.heal_anew()
    assert world.outlet.told == ["off", "on", "off"], "an operator's own"


def test_a_server_whose_controller_stayed_silent_is_left_to_boot_by_the_next_heal(world: World) -> None:
    world.server.panics = True
    world.break_as("crash")
    world.outlet.does_unheard = "on"
    part = world.part()
    part.recall({KEY: {"kind": "crash"}})
    with pytest.raises(NotConnected):
        part.mend(KEY, world.deadline)
    report = world.heal_anew()
    assert (report.problems, len(report.undone), world.outlet.told) == ((), 2, ["off", "on"])


def test_a_run_that_died_after_it_mended_a_panic_has_no_claim_to_the_power(world: World) -> None:
    world.server.panics = True
    part = journalled(world.equipment(), world.recorder).breakable[NAME]
    part.break_as(KEY, {"kind": "crash"}, world.deadline)
    part.mend(KEY, world.deadline)
    world.outlet.turn_off(world.deadline)
    world.heal_anew()
    assert world.outlet.told == ["off", "on", "off"]


@pytest.mark.parametrize("is_cut_short", [False, True])
def test_a_run_that_died_once_a_panicked_server_had_its_power_back_leaves_it_to_boot(
    world: World, *, is_cut_short: bool
) -> None:
    """Also where the mending was another's, which was cut short between off and on."""
    world.server.panics = True
    world.break_as("crash")
    if is_cut_short:
        world.outlet.does_unheard, world.outlet.raises = "off", Killed
        with pytest.raises(Killed):
            world.heal_anew()
    part = world.part()
    part.recall({entry.what.key: entry.what.fault for entry in world.standing() if isinstance(entry.what, BreakPart)})
    part.mend("restart/off" if is_cut_short else KEY, world.deadline)
    assert world.outlet.told == ["off", "on"]
    report = world.heal_anew()
    assert (report.problems, world.outlet.told) == ((), ["off", "on"]), "it boots in peace"
    assert world.standing() == []


REFUSALS = [
    LoginRefused("srv1: refused rack (publickey)"),
    HostKeyUnknown("srv1: its key is in no known_hosts", "srv1 ssh-ed25519 AAAA"),
    HostKeyMismatch("srv1: its key is another"),
]


@pytest.mark.parametrize("refusal", REFUSALS)
def test_a_server_that_runs_and_refuses_the_login_keeps_its_power(world: World, refusal: LabError) -> None:
    """As one that an operator installed anew after it had panicked."""
    world.server.panics = True
    world.break_as("crash")
    world.server.is_silent, world.server.refusal = True, refusal
    report = world.heal_anew()
    said = f"server:srv1: srv1 runs and refuses the login, and its power was left as it is: {refusal}"
    assert (report.undone, world.outlet.told) == ((), [])
    assert said in report.problems
    world.server.refusal = None
    assert world.heal_anew().is_healed
    assert world.outlet.told == ["off", "on"]


def test_a_server_that_refuses_the_login_is_not_told_to_panic_and_nothing_is_left_to_undo(world: World) -> None:
    world.server.is_silent, world.server.refusal = True, REFUSALS[0]
    with pytest.raises(FaultRefused, match="refuses the login"):
        world.break_as("crash")
    assert (world.standing(), world.outlet.told) == ([], [])


@pytest.mark.parametrize("lost_at", ["kexec_crash_loaded", 'mv "$1/.$2.new"'])
def test_a_server_that_is_lost_before_it_was_told_to_panic_keeps_its_power(world: World, lost_at: str) -> None:
    """Its network was cut, and what it had still to write would be lost."""
    equipment = world.equipment()
    faults = Faults(world.lab, equipment, world.clock, world.recorder)
    world.server.lost_at = lost_at
    with pytest.raises(LabError) as failed:
        faults.begin(FaultSpec("server_crash", "srv1"))
    assert world.outlet.told == []
    assert "srv1 has power and does not answer" in str(failed.value)
    world.server.lost_at, world.server.is_silent = None, False
    faults.end_all()
    assert (world.outlet.told, world.standing()) == ([], [])
    assert world.server.settings["panic"] == "10"
    world.server.panics = True
    faults.begin(FaultSpec("server_crash", "srv1"))
    faults.end_all()
    assert world.outlet.told == ["off", "on"]


@pytest.mark.parametrize("lost_at", ["kexec_crash_loaded", 'mv "$1/.$2.new"'])
def test_a_server_that_was_lost_before_it_was_told_to_panic_is_left_its_power_by_the_next_heal(
    world: World, lost_at: str
) -> None:
    world.server.lost_at = lost_at
    with pytest.raises(LabError):
        world.break_as("crash")
    report = world.heal_anew()
    assert (report.undone, world.outlet.told) == ((), [])
    assert {problem.partition(", and")[0] for problem in report.problems[:2]} == {
        "server:srv1: srv1 has power and does not answer"
    }
    world.server.lost_at, world.server.is_silent = None, False
    assert world.heal_anew().is_healed
    assert (world.outlet.told, world.standing()) == ([], [])
    assert world.server.settings["panic"] == "10"


def test_a_panic_that_was_to_come_after_a_mending_is_undone_all_the_same(world: World) -> None:
    part = told_on_unheard(world)
    later = world.recorder.intend(NAME, BreakPart(LATER, {"kind": "crash"}), [MendPart(LATER)])
    world.server.boot("second")
    assert part.standing(world.deadline) == {}, "it answers"
    assert world.standing() == [later.entry]


def test_no_power_is_cut_where_that_cannot_be_noted(world: World) -> None:
    def full(_key: str, _fault: Mapping[str, str]) -> RestartNote:
        raise LabError("no space left")

    crash = HostCrash(cast("Host", world.server), NAME, world.outlet, note=full)
    crash.recall({KEY: {"kind": "crash"}})
    world.server.is_silent = True
    for _ in range(2):
        with pytest.raises(LabError, match="no space left"):
            crash.mend(KEY, world.deadline)
    assert world.outlet.told == []
    assert crash.standing(world.deadline) == {KEY: {"kind": "crash"}}


def test_the_servers_of_a_real_rack_note_it_under_the_lease(world: World) -> None:
    real = world.lab.model_copy(update={"kind": LabKind.PHYSICAL})
    host = cast("SshHost", world.server)
    others = {NAME: HostFaults(host, NAME, world.hang)}
    with leased(world.lab, world.journal.store, LeaseTerms()) as held:
        part = crashes(real, {"srv1": host}, {NAME: world.outlet}, {}, others, held)[NAME]
        assert isinstance(part, ServerFaults)
        part.recall({KEY: {"kind": "crash"}})
        world.server.is_silent, world.outlet.refuses = True, "on"
        with pytest.raises(NotConnected):
            part.mend(KEY, world.deadline)
    (note,) = world.journal.standing(world.lab.name)
    assert note.what == BreakPart("restart/on", {"kind": "restart", "power": "on"})


@pytest.mark.parametrize("raises", [LabError, NotConnected])
def test_the_note_of_a_mending_alone_cuts_no_power(world: World, raises: type[LabError]) -> None:
    """Two heals: one ended between off and on, the next gave the power, and was told that it failed."""
    world.server.panics = True
    world.break_as("crash")
    world.outlet.refuses, world.outlet.raises = "on", raises
    world.heal_anew()
    world.outlet.refuses, world.outlet.does_unheard = "", "on"
    world.heal_anew()
    world.outlet.does_unheard = ""
    world.heal_anew()
    assert world.outlet.told == ["off", "on"]
    assert world.journal.standing(world.lab.name) == []


def test_a_note_of_what_is_over_is_undone_and_cuts_no_power(world: World) -> None:
    world.server.is_silent = True
    restart = BreakPart("restart/off", {"kind": "restart", "power": "off"})
    world.recorder.intend(NAME, restart, [MendPart("restart/off")])
    report = world.heal_anew()
    assert (report.problems, len(report.undone), world.outlet.told) == ((), 1, [])
