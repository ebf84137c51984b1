"""A simulated rack whose acts are journalled."""

from __future__ import annotations

from pathlib import Path

from rackloop.clock import Deadline, VirtualClock
from rackloop.safety.store import open_store
from rackloop.safety.undo import ActRecorder, Journal, journalled
from tests.unit.harness.sim_rack import SimRack, described


class JournalledBench:
    """A simulated rack and its journal."""

    def __init__(self, folder: Path) -> None:
        self.clock = VirtualClock()
        self.rack = SimRack(self.clock)
        self.switch = self.rack.switch
        self.journal = Journal(open_store(folder / "store.sqlite", self.clock))
        self.recorder = ActRecorder(described(folder), self.journal, "run-1")
        self.acting = journalled(self.rack.equipment, self.recorder)

    @property
    def deadline(self) -> Deadline:
        """Later than anything here takes."""
        return Deadline.after(self.clock, 10)
