"""A simulated rack whose acts are journalled."""

from __future__ import annotations

from pathlib import Path

from hypothesis import strategies as st

from rackloop.clock import Deadline, VirtualClock
from rackloop.lab import LabKind
from rackloop.portmap import Partial, PortMap
from rackloop.record import ActLog, EventLog
from rackloop.safety import HealReport, heal
from rackloop.safety.store import open_store
from rackloop.safety.undo import ActRecorder, Journal, journalled
from tests.unit.harness.sim_rack import SimRack, described

SWAP = Partial(PortMap.of([(1, 102), (2, 101)]))
"""A change of two circuits of the rack."""


def maps() -> st.SearchStrategy[PortMap]:
    """Maps of at most four circuits among ports 1 to 8."""
    ports = st.permutations(list(range(1, 9)))
    return st.builds(lambda order, n: PortMap.of(zip(order[:n], order[8 - n :], strict=True)), ports, st.integers(0, 4))


class Bench:
    """A simulated rack with a lab that describes it, its journal and its event stream."""

    def __init__(
        self, folder: Path, kind: LabKind = LabKind.MOCK, *, disturbs: frozenset[str] = frozenset({"d03"})
    ) -> None:
        self.folder = folder
        self.clock = VirtualClock()
        self.rack = SimRack(self.clock)
        self.switch = self.rack.switch
        self.lab = described(folder, kind)
        self.journal = Journal(open_store(folder / "store.sqlite", self.clock))
        self.events = EventLog(folder / "events.jsonl", self.clock)
        self.log = ActLog(self.events)
        self.recorder = ActRecorder(self.lab, self.journal, "run-1", self.log, disturbs=disturbs)
        self.acting = journalled(self.rack.equipment, self.recorder)

    @property
    def deadline(self) -> Deadline:
        """Later than anything here takes."""
        return Deadline.after(self.clock, 10)

    def heal(self, within_s: float = 10) -> HealReport:
        """Heal the rack as a process does that finds its journal."""
        return heal(self.lab, self.journal, self.rack.equipment, self.clock, Deadline.after(self.clock, within_s))

    def close(self) -> None:
        """Close the journal and the event stream."""
        self.journal.close()
        self.events.close()
