"""Runs on guests that are killed in the midst, or whose server restarts: all is mended, and nothing is held."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from rackloop.lab import LabState, load_lab
from rackloop.safety.leases import Leases
from rackloop.safety.store import open_lab_store
from rackloop.safety.undo import Journal
from rackloop.seed import stream
from tests.deadlines import CLOCK, soon
from tests.e2e.command_line import CommandLine, Results, Running
from tests.meta.tree import ROOT
from tests.virtual.guests import baseline_comes, tell

pytestmark = pytest.mark.nightly

LAB = "virtual"
KILLS = 3
# Each fault has three phases or more, and a storm some twenty faults. At the first of them nothing is broken yet, and
# the journal may not know of it.
FEWEST_PHASES, MOST_PHASES = 2, 12
# A run that mends what the one before left, and looks at a rack of guests in software, on a busy machine.
WITHIN_S = 1800.0
RAID = ROOT / "testplans" / "erasure" / "test_software_raid.py"
IDENTITY = ROOT / "testplans" / "fabric" / "test_identity.py"
# The first drive of the array has failed then.
PHASES_OF_DRIVES = 2


def has_told(kind: str, times: int, out: Path, running: Running) -> bool:
    """Whether a run has told of so many events of a kind, or has ended."""
    return Results(out).told(kind) >= times or running.process.poll() is not None


@pytest.mark.parametrize("seed", [1500, 2500])
def test_storms_that_are_killed_are_healed(up: CommandLine, tmp_path: Path, seed: int) -> None:
    baseline_comes(up)
    chance, lab = stream(seed, "kills of storms on guests"), load_lab(LAB)
    with closing(open_lab_store(lab, LabState(up.state_home / "labs" / LAB), CLOCK)) as store:
        journal = Journal(store)
        for number in range(KILLS):
            out, mark = tmp_path / f"out-{number}", journal.mark()
            phases = chance.randint(FEWEST_PHASES, MOST_PHASES)
            running = up.start(
                "run", "storm", "--lab", LAB, "--seed", str(seed + number), "--wait", "300", "--out", out
            )
            there = soon(WITHIN_S).poll(lambda: has_told("fault.phase", phases, out, running), every_s=0.05)  # noqa: B023
            running.kill()
            # One that had ended would have given the rack back itself.
            assert (there, running.process.returncode) == (True, -9), (seed, number)
            assert any(entry.run == out.name for entry in journal.since(mark)), (seed, number)
        healed = up("heal", LAB)
        assert healed.status == 0, healed
        assert journal.standing(LAB) == []
        assert Leases(store, LAB).held() == []
    baseline_comes(up)


def test_an_array_is_taken_apart_where_the_run_that_made_it_was_killed(up: CommandLine, tmp_path: Path) -> None:
    baseline_comes(up)
    out = tmp_path / "out"
    running = up.start("run", RAID, "--lab", LAB, "--seed", "7", "--out", out)
    assert soon(WITHIN_S).poll(lambda: has_told("fault.phase", PHASES_OF_DRIVES, out, running), every_s=0.05)
    running.kill()
    assert "active raid6 loop" in tell(up, "srv1", "cat /proc/mdstat")
    healed = up("heal", LAB)
    assert healed.status == 0, healed
    assert tell(up, "srv1", "grep -c ^md /proc/mdstat; losetup -a; ls /run/rackloop-md").split() == ["0"]
    baseline_comes(up)


def test_a_server_that_restarts_in_the_middle_of_a_run_is_no_fault_of_the_product(
    up: CommandLine, tmp_path: Path
) -> None:
    baseline_comes(up)
    out = tmp_path / "out"
    running = up.start("run", IDENTITY, "--lab", LAB, "--seed", "7", "--set", "remaps=12", "--out", out)
    assert soon(WITHIN_S).poll(lambda: has_told("act.done", 1, out, running), every_s=0.05)
    tell(up, "srv1", "sudo -n sh -c '(sleep 1; echo b > /proc/sysrq-trigger) > /dev/null 2>&1 &'")
    ended = running.end()
    assert ended.status == 3, ended
    [found] = Results(out).tests().values()
    assert found["cause"] in {"lab", "harness"}, found
    assert "srv1" in found["reason"], found
    assert up("heal", LAB).status == 0
    baseline_comes(up)
