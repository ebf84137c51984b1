"""Processes that break a mock rack and are killed at a chosen step.

Run as a program it is a fork server: it has everything loaded, and for each line on its standard input forks a process
that makes the faults there one within the other, ends them, and kills itself (SIGKILL) at the given step. Steps are
counted over every call that writes to the journal or changes the rack: before it, while it is under way, after it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from threading import Event, Thread
from typing import Any

from rackloop.abilities import Applied, Breakable, Fabric, LiveMap, PhyControl, PowerPort, SignalRestorer
from rackloop.abilities.filters import FabricFilter, PhyFilter
from rackloop.clock import Deadline, RealClock
from rackloop.faults import FaultCutShort, Faults, FaultSpec
from rackloop.lab import LabState, load_lab
from rackloop.portmap import MapChange
from rackloop.safety.store import Store, open_store
from rackloop.safety.undo import ActRecorder, Entry, Equipment, Journal
from rackloop_labs import MockLab
from tests.fork_server import ForkServer, fork_server, serve
from tests.mock_rack import patient

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

    @contextmanager
    def around(self) -> Iterator[None]:
        """Count a step before the block and one after it."""
        self._step()
        yield
        self._step()

    def change(self, act: Callable[[], Any]) -> Any:
        """Carry out ``act``, which changes the rack: a step before, one while it is under way, one after it."""
        with self.around():
            self.done += 1
            if self.done == self._fatal:
                self._die_within(act)
            return act()

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


class SteppedJournal(Journal):
    """A journal each of whose entries is a step before it and one after it."""

    def __init__(self, store: Store, steps: Steps) -> None:
        super().__init__(store)
        self._steps = steps

    def intend(self, *args: Any, **fields: Any) -> Entry:
        with self._steps.around():
            return super().intend(*args, **fields)

    def acted(self, entry: Entry, result: Mapping[str, Any]) -> Entry:
        with self._steps.around():
            return super().acted(entry, result)

    def failed(self, entry: Entry, reason: str) -> None:
        with self._steps.around():
            super().failed(entry, reason)

    def undone(self, entries: Iterable[Entry]) -> None:
        with self._steps.around():
            super().undone(entries)


class SteppedFabric(FabricFilter):
    """A Fabric whose changes are steps."""

    def __init__(self, fabric: Fabric, steps: Steps) -> None:
        super().__init__(fabric)
        self._steps = steps

    def apply(self, change: MapChange, deadline: Deadline, *, on: LiveMap | None = None) -> Applied:
        applied: Applied = self._steps.change(lambda: self._fabric.apply(change, deadline, on=on))
        return applied

    def save_boot_map(self, deadline: Deadline) -> None:
        self._steps.change(lambda: self._fabric.save_boot_map(deadline))


class SteppedPhy(PhyFilter):
    """A PhyControl and SignalRestorer whose acts are steps."""

    def __init__(self, phy: PhyControl, steps: Steps) -> None:
        super().__init__(phy)
        self._steps = steps

    def restore(self, ports: Collection[int], deadline: Deadline) -> None:
        phy = self._phy
        assert isinstance(phy, SignalRestorer)
        self._act(ports, deadline, lambda: phy.restore(ports, deadline))

    def _act(self, _ports: Collection[int], _deadline: Deadline, act: Callable[[], None]) -> None:
        self._steps.change(act)


class SteppedPower:
    """A PowerPort whose switching is steps."""

    def __init__(self, port: PowerPort, steps: Steps) -> None:
        self._port = port
        self._steps = steps

    def turn_on(self, deadline: Deadline) -> None:
        self._steps.change(lambda: self._port.turn_on(deadline))

    def turn_off(self, deadline: Deadline) -> None:
        self._steps.change(lambda: self._port.turn_off(deadline))

    def is_on(self, deadline: Deadline) -> bool:
        return self._port.is_on(deadline)


class SteppedPart:
    """A Breakable whose breaking and mending are steps."""

    def __init__(self, part: Breakable, steps: Steps) -> None:
        self._part = part
        self._steps = steps

    @property
    def kinds(self) -> frozenset[str]:
        return self._part.kinds

    def break_as(self, key: str, fault: Mapping[str, Any], deadline: Deadline) -> None:
        self._steps.change(lambda: self._part.break_as(key, fault, deadline))

    def mend(self, key: str, deadline: Deadline) -> None:
        self._steps.change(lambda: self._part.mend(key, deadline))

    def standing(self, deadline: Deadline) -> dict[str, Mapping[str, Any]]:
        return self._part.standing(deadline)


def stepped(equipment: Equipment, steps: Steps) -> Equipment:
    """The equipment with each change that faults make of it a step."""
    return replace(
        equipment,
        fabric=SteppedFabric(equipment.fabric, steps),
        phy=SteppedPhy(equipment.phy, steps) if equipment.phy is not None else None,
        power={name: SteppedPower(port, steps) for name, port in equipment.power.items()},
        breakable={name: SteppedPart(part, steps) for name, part in equipment.breakable.items()},
    )


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _break(order: dict[str, Any], told: int) -> None:
    """Make and end the faults of an order, and tell how many steps that took."""
    lab, clock = patient(load_lab(order["lab"])), RealClock()
    state = LabState.of(lab.name, root=Path(order["root"]))
    bench = MockLab(lab, clock, state).open(None)
    steps = Steps(order["step"])
    journal = SteppedJournal(open_store(state.store, clock), steps)
    faults = Faults(lab, stepped(bench.equipment, steps), clock, ActRecorder(lab, journal, _FIRST_RUN))
    # A fault that is to be killed in its course is ended early where it is not killed.
    with suppress(FaultCutShort), faults:
        for spec in order["specs"]:
            faults.begin(FaultSpec(**spec))
    os.write(told, str(steps.done).encode())


if __name__ == "__main__":
    serve(_break)
