"""Processes killed in the midst of acts on a switch, by its real driver: another one heals it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rackloop.clock import Clock, Deadline, RealClock
from rackloop.lab import Lab
from rackloop.portmap import PortMap
from rackloop.safety import HealReport, heal
from rackloop.safety.store import open_store
from rackloop.safety.undo import Equipment, Journal
from rackloop.seed import stream
from rackloop_drivers.fabric.flexfabric import (
    FlexFabric,
    FlexFabricPhy,
    open_flexfabric,
)
from tests.switch_in_memory import switch_in_memory, tcp
from tests.unit.harness.sim_rack import BASELINE, described

STEPS = ("before_intent", "after_intent", "after_stage", "after_act", "after_record")
REMAPS = 12

RUN_AND_DIE = """
import os, signal, sys
from pathlib import Path
from rackloop.clock import Deadline, RealClock
from rackloop.safety.undo import Journal
from rackloop.safety.store import open_store
from rackloop.safety.undo import ActRecorder, Equipment, journalled
from rackloop.lab import load_lab
from rackloop.portmap import Partial, PortMap
from rackloop.seed import stream
from rackloop_drivers.fabric.flexfabric import FlexFabric, FlexFabricPhy, open_flexfabric

url, description, store, seed, fatal_remap, fatal_step = sys.argv[1:]
clock = RealClock()
made = 0

def die_at(step):
    if made == int(fatal_remap) and step == fatal_step:
        os.kill(os.getpid(), signal.SIGKILL)

class MortalJournal(Journal):
    def intend(self, *args, **fields):
        die_at("before_intent")
        entry = super().intend(*args, **fields)
        die_at("after_intent")
        return entry
    def acted(self, *args, **fields):
        die_at("after_act")
        entry = super().acted(*args, **fields)
        die_at("after_record")
        return entry

deadline = Deadline.after(clock, 30)
session = open_flexfabric(url, clock, deadline)
equipment = Equipment(FlexFabric(session), FlexFabricPhy(session))
journal = MortalJournal(open_store(Path(store), clock))
acting = journalled(equipment, ActRecorder(load_lab(description), journal, "run", disturbs=frozenset({"d03"})))
chance = stream(int(seed), "remaps")
print("started", flush=True)
while True:
    made += 1
    if chance.random() < 0.2:
        acting.phy.drop([chance.randint(1, 8)], 0.02, deadline, request_id=made)
    else:
        change = Partial(PortMap.of([(chance.randint(1, 8), chance.randint(101, 108))]))
        if made % 2:
            acting.fabric.apply(change, deadline)
        else:
            staged = acting.fabric.stage(change, deadline)
            die_at("after_stage")
            acting.fabric.trigger(staged, deadline)
"""


class RealBench:
    """The switch's own driver against its peer on TCP, with a run in another process."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.url = url
        self.clock: Clock = RealClock()
        self.lab: Lab = described(folder)
        self.store = folder / "store.sqlite"

    def start(self, seed: int, fatal_remap: int, fatal_step: str) -> subprocess.Popen[str]:
        arguments = [self.url, str(self.lab.source), str(self.store), str(seed), str(fatal_remap), fatal_step]
        return subprocess.Popen(
            [sys.executable, "-c", RUN_AND_DIE, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def heal(self) -> tuple[HealReport, PortMap]:
        deadline = Deadline.after(self.clock, 20)
        session = open_flexfabric(self.url, self.clock, deadline)
        journal = Journal(open_store(self.store, self.clock))
        equipment = Equipment(FlexFabric(session), FlexFabricPhy(session))
        try:
            report = heal(self.lab, journal, equipment, self.clock, deadline)
            assert journal.standing("bench") == []
            return report, equipment.fabric.live_map(deadline).pairs
        finally:
            journal.close()
            session.close()


@pytest.fixture
def real_bench(tmp_path: Path) -> Iterator[RealBench]:
    with switch_in_memory(BASELINE) as thread:
        yield RealBench(tmp_path, tcp(thread))


def killed(bench: RealBench, seed: int, step: str) -> None:
    chance = stream(seed, "kill")
    # One remap in two is staged, where it is not a drop.
    run = bench.start(seed, _first_staged(seed) if step == "after_stage" else chance.randint(1, REMAPS), step)
    complaint = run.communicate(timeout=60)[1]
    assert run.returncode == -9, complaint


def _first_staged(seed: int) -> int:
    """The number of the first staged remap of a run with this seed, which draws as RUN_AND_DIE does."""
    chance = stream(seed, "remaps")
    for made in range(1, 1000):
        if chance.random() < 0.2:
            chance.randint(1, 8)
        else:
            chance.randint(1, 8), chance.randint(101, 108)
            if made % 2 == 0:
                return made
    raise AssertionError("no remap of a thousand is staged")


@pytest.mark.parametrize("step", STEPS)
def test_a_run_killed_between_two_steps_of_an_act_is_healed(real_bench: RealBench, step: str) -> None:
    killed(real_bench, seed=20261120 + STEPS.index(step), step=step)
    report, live = real_bench.heal()
    assert report.is_healed, report.problems
    assert report.restored_ports == ()
    assert live == BASELINE


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(100))
def test_a_storm_of_kills_is_healed(real_bench: RealBench, seed: int) -> None:
    for step in stream(seed, "steps").sample(STEPS, k=2):
        killed(real_bench, seed, step)
    report, live = real_bench.heal()
    assert report.is_healed, report.problems
    assert report.restored_ports == ()
    assert live == BASELINE


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(100))
def test_a_run_killed_from_outside_is_healed(real_bench: RealBench, seed: int) -> None:
    run = real_bench.start(seed, 0, "never")
    assert run.stdout
    assert run.stdout.readline() == "started\n"
    clock = real_bench.clock
    clock.sleep_until_ns(clock.now_ns() + stream(seed, "moment").randint(0, 100_000_000))
    run.kill()
    run.communicate(timeout=60)
    report, live = real_bench.heal()
    assert report.is_healed, report.problems
    assert report.restored_ports == ()
    assert live == BASELINE
