"""Processes that break a mock rack and are killed at a chosen step.

Run as a program it is a fork server: it has everything loaded, and for each line on its standard input forks a process
that makes the faults there one within the other, ends them, and kills itself (SIGKILL) at the given step. Steps are
counted over every call that writes to the journal or changes the rack: before it, while it is under way, after it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from threading import Event, Thread
from typing import Any

from rackloop.clock import RealClock
from rackloop.faults import Faults, FaultSpec
from rackloop.lab import LabState, load_lab
from rackloop.safety.store import open_store
from rackloop.safety.undo import ActRecorder, Equipment, Journal
from rackloop_labs import MockLab
from tests.fork_server import ForkServer, fork_server, serve

JOURNALS = ("intend", "acted", "failed", "undone")
CHANGES = ("apply", "save_boot_map", "drop", "flap", "restore", "turn_on", "turn_off", "break_as", "mend")
_FIRST_RUN = "killed"


class FaultProcesses:
    """The program of this module, running."""

    def __init__(self, server: ForkServer) -> None:
        self._server = server

    def steps(self, lab: str, root: Path, specs: Sequence[FaultSpec]) -> int:
        """How many steps these faults take from their begin to their end; no process is killed."""
        answer = self._ask(lab, root, specs, 0)
        assert answer["status"] == 0, answer
        return int(answer["told"])

    def kill_at(self, lab: str, root: Path, specs: Sequence[FaultSpec], step: int) -> None:
        """Make these faults in a process that is killed at ``step``, from 1."""
        answer = self._ask(lab, root, specs, step)
        assert answer["status"] == -signal.SIGKILL, answer

    def _ask(self, lab: str, root: Path, specs: Sequence[FaultSpec], step: int) -> dict[str, Any]:
        return self._server.ask(
            {"lab": lab, "root": str(root), "specs": [asdict(spec) for spec in specs], "step": step}
        )


@contextmanager
def fault_processes() -> Iterator[FaultProcesses]:
    """Start the program for the length of the block."""
    with fork_server("tests.fault_process") as server:
        yield FaultProcesses(server)


class Steps:
    """Counts steps, and kills its process at one of them; at none where that is 0."""

    def __init__(self, fatal: int) -> None:
        self.done = 0
        self._fatal = fatal

    def watch(self, thing: object, names: Sequence[str], *, within: bool) -> None:
        """Have the calls of these methods of ``thing`` counted, those it has."""
        for name in names:
            if hasattr(thing, name):
                setattr(thing, name, self._watched(getattr(thing, name), within=within))

    def _watched(self, call: Callable[..., Any], *, within: bool) -> Callable[..., Any]:
        def watched(*args: Any, **fields: Any) -> Any:
            self._step()
            if within:
                self.done += 1
                if self.done == self._fatal:
                    self._die_within(lambda: call(*args, **fields))
            result = call(*args, **fields)
            self._step()
            return result

        return watched

    def _step(self) -> None:
        self.done += 1
        if self.done == self._fatal:
            _die()

    def _die_within(self, call: Callable[[], Any]) -> None:
        begun = Event()

        def run() -> None:
            begun.set()
            call()

        Thread(target=run, daemon=True).start()
        begun.wait()
        _die()


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _break(order: dict[str, Any], told: int) -> None:
    """Make and end the faults of an order, and tell how many steps that took."""
    lab, clock = load_lab(order["lab"]), RealClock()
    state = LabState.of(lab.name, root=Path(order["root"]))
    bench = MockLab(lab, clock, state).open(None)
    journal = Journal(open_store(state.store, clock))
    steps = Steps(order["step"])
    steps.watch(journal, JOURNALS, within=False)
    for thing in _changed_by_faults(bench.equipment):
        steps.watch(thing, CHANGES, within=True)
    faults = Faults(lab, bench.equipment, clock, ActRecorder(lab, journal, _FIRST_RUN))
    with faults:
        for spec in order["specs"]:
            faults.begin(FaultSpec(**spec))
    os.write(told, str(steps.done).encode())


def _changed_by_faults(equipment: Equipment) -> Iterator[object]:
    yield equipment.fabric
    yield equipment.phy
    yield from equipment.power.values()
    yield from equipment.breakable.values()


if __name__ == "__main__":
    serve(_break)
