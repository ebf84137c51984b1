"""Runs that break their rack all the time, killed at random instants: no fault, no result and no lease is lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rackloop.clock import Deadline
from rackloop.lab import LabState, load_lab
from rackloop.record import ActAnnounced, FaultPhase, TestStarted, read_events
from rackloop.safety.leases import Leases
from rackloop.safety.store import open_store
from rackloop.safety.undo import Entry, Journal
from rackloop.seed import stream
from rackloop_drivers.rackd import RackdControl
from rackloop_labs.labd_control import LabdControl
from tests.deadlines import CLOCK
from tests.e2e.command_line import CommandLine, Results, wait_until
from tests.run_processes import RunProcesses, run_processes

LAB = load_lab("mock")
# The share of runs that are killed while they break the rack; the others are while they start and heal.
_IN_THE_MIDST = 0.8
# Makes faults and ends them, up to three at a time and never two of a part, until it is killed or was asked for enough.
FAULTY = """
import pytest
from contextlib import suppress
from rackloop.faults import FaultCutShort, FaultSpec

PARAMETERS = {"faults": 0}
MEASURES = {}
pytestmark = pytest.mark.rackloop(purpose="break the rack", requires=[], destructive=True, time_class="seconds")
SPECS = [
    FaultSpec("phy_drop", "srv1.p0"), FaultSpec("phy_flap", "srv1.p1", {"count": 100}),
    FaultSpec("slow_training", "d09"), FaultSpec("stuck_port", "port 4"), FaultSpec("miswire", "d03", {"with": "d04"}),
    FaultSpec("hang", "d10"), FaultSpec("fail_slow", "d14"), FaultSpec("fail_stop", "d05"),
    FaultSpec("media_error", "d06"), FaultSpec("corrupt", "d11"), FaultSpec("crash_on_remap", "d15"),
    FaultSpec("power_loss", "d07"), FaultSpec("switch_power_loss", "switch"), FaultSpec("server_crash", "srv4"),
    FaultSpec("server_hang", "srv3"), FaultSpec("partition", "srv2"), FaultSpec("bmc_unreachable", "srv1"),
    FaultSpec("control_garbled", "switch", {"match": "nothing says this"}), FaultSpec("power_loss", "srv1"),
]

def test_break(rack, parameters):
    standing = []
    for _ in range(parameters["faults"]):
        if len(standing) == 3:
            with suppress(FaultCutShort):  # a flap goes on for longer than most runs live
                rack.faults.end(standing.pop(0))
        kinds = {injection.spec.target for injection in standing}
        spec = rack.chance.choice([spec for spec in SPECS if spec.target not in kinds])
        try:
            standing.append(rack.faults.begin(spec))
        except Exception as refused:
            if "no signal" not in str(refused) and "does not answer" not in str(refused):
                raise
    for injection in standing:
        with suppress(FaultCutShort):
            rack.faults.end(injection)
"""


class Storm:
    """A mock rack that is up, and runs on it that are killed."""

    def __init__(self, rackloop: CommandLine, processes: RunProcesses) -> None:
        self._rackloop = rackloop
        self.processes = processes
        self.state = LabState.of("mock", root=rackloop.state_home)
        tests = rackloop.directory / "mine" / "a"
        tests.mkdir(parents=True)
        (tests / "test_break.py").write_text(FAULTY)

    def run(self, out: str, faults: int, seed: int) -> int:
        """Begin a run; its process."""
        plan = self._rackloop.plan({"test": "a/break", "with": {"faults": faults}})
        return self.processes.start(
            "run", plan, "--testplans", "mine", "--lab", "mock", "--out", out, "--seed", str(seed), "--wait", "30"
        )

    def wait_for_faults(self, out: str, phases: int) -> None:
        """Return once a run has told of so many phases of faults. Raises AssertionError where it ended instead."""
        results = Results(self._rackloop.directory / out)

        def has_ended() -> str:
            ended = results.of_kind("test.finished") if results.told("test.finished") else []
            return f"{out}: {results.told('fault.phase')} of {phases} phases, {ended}"

        wait_until(lambda: results.told("fault.phase") >= phases or results.told("run.finished") > 0, has_ended)
        assert results.told("run.finished") == 0, has_ended()

    def require_recorded(self, out: str, entries: list[Entry]) -> int:
        """Every act of a run that is in the journal is in its event stream, which can be read; how many faults are."""
        directory = self._rackloop.directory / out
        path = directory / "events.jsonl"
        events = [stamped.event for stamped in read_events(path)] if path.exists() else []
        announced = [event for event in events if isinstance(event, ActAnnounced)]
        assert len(announced) >= len(entries), (out, len(announced), len(entries))
        begun = sum(isinstance(event, FaultPhase) and event.phase == "commanded" for event in events)
        assert not begun or any(isinstance(event, TestStarted) for event in events)
        return begun

    def truth(self) -> dict[str, Any]:
        """What of the rack is not as it should be, by what it says itself."""
        deadline = Deadline.after(CLOCK, 30)
        control = LabdControl(self.state)
        targets = ["switch", *(f"server:{name}" for name in LAB.servers), *(f"drive:{name}" for name in LAB.drives)]
        with closing(RackdControl(Path(self.state.endpoints()["control"]), CLOCK)) as rackd:
            off = [name for name in targets if not rackd.request("power", deadline, target=name)["on"]]
            pairs = {(low, high) for low, high in rackd.request("get_map", deadline)["pairs"]}
            faults = rackd.request("faults", deadline)["faults"]
        down = {name: state for name, state in control.states(deadline).items() if state != "up"}
        wrong = {"off": off, "pairs": pairs ^ set(LAB.baseline_map()), "faults": faults, "servers": down}
        return {name: what for name, what in {**wrong, "parts": control.all_standing(deadline)}.items() if what}


@pytest.fixture
def storm(rackloop: CommandLine) -> Iterator[Storm]:
    assert rackloop("lab", "up", "mock").status == 0
    with run_processes(rackloop.directory, rackloop.environment) as processes:
        yield Storm(rackloop, processes)


def rage(storm: Storm, rackloop: CommandLine, seed: int, kills: int) -> None:
    """Kill runs one after the other, each of which heals what the one before left; then let one end."""
    chance, processes = stream(seed, "kills"), storm.processes
    made, standing, broken = 0, 0, ""
    store = open_store(storm.state.store, CLOCK)
    with closing(Journal(store)) as journal:
        for number in range(kills):
            mark = journal.mark()
            pid = storm.run(f"out-{number}", 1_000_000, seed + number)
            if chance.random() < _IN_THE_MIDST:
                storm.wait_for_faults(f"out-{number}", chance.randint(1, 40))
                moment_s = chance.uniform(0, 0.1)
            else:
                moment_s = chance.uniform(0, 1.0)
            assert processes.kill_after(pid, moment_s) == -9
            mine = [entry for entry in journal.since(mark) if entry.run == f"out-{number}"]
            if begun := storm.require_recorded(f"out-{number}", mine):
                made, broken = made + begun, f"out-{number}"
            standing += bool(journal.standing("mock"))
        assert made > kills
        assert standing
        storm.run("last", 5, seed)
        assert processes.end() == 0
        assert journal.standing("mock") == []
        assert Leases(store, "mock").held() == []
    assert storm.truth() == {}
    reported = rackloop("report", broken)
    assert reported.status == 0, reported


def test_runs_killed_at_any_instant_leave_nothing(storm: Storm, rackloop: CommandLine) -> None:
    rage(storm, rackloop, seed=7, kills=4)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(1000, 11000, 1000))
def test_a_storm_of_kills_leaves_nothing(storm: Storm, rackloop: CommandLine, seed: int) -> None:
    rage(storm, rackloop, seed, 100)
