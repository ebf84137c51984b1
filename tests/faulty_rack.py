"""A running mock rack for fault tests: its true state and how it is healed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from rackloop.clock import Deadline
from rackloop.lab import Lab
from rackloop.safety import HealReport, heal
from rackloop.safety.leases import raise_token
from rackloop.safety.store import open_store
from rackloop.safety.undo import Journal
from rackloop_drivers.rackd import RackdControl
from rackloop_labs import MockLab
from tests.deadlines import CLOCK, soon
from tests.mock_rack import MockRack, running_mock_rack


class FaultyRack:
    """A mock rack that is up, what it is like in truth, and how it is healed."""

    def __init__(self, rack: MockRack, journal: Journal) -> None:
        self.mock = rack
        self.journal = journal
        self.root = rack.state.directory.parent.parent
        self.lab: Lab = rack.lab

    def truth(self) -> dict[str, Any]:
        """What the simulated rack itself says that it is like; servers have come up, or gone off, with their power."""
        with self.mock.rackd() as rackd:
            for name in self.lab.servers:
                self.mock.follows_power(name, is_on=_is_on(rackd, f"server:{name}"))
            return {
                "map": sorted(map(tuple, rackd.request("get_map", soon())["pairs"])),
                "faults": rackd.request("faults", soon())["faults"],
                "disturbances": _of_interest(rackd.request("disturbances", soon())),
                "power": {target: _is_on(rackd, target) for target in self._targets()},
                "servers": self.mock.control.states(soon()),
                "parts": self.mock.control.all_standing(soon()),
                # What servers did to their own slots, only they know.
                "disks": {} if self.lab.has_switch else {name: self._disks(name) for name in self.lab.servers},
            }

    def _disks(self, server: str) -> list[str]:
        return sorted(self.mock.says(server, "lsblk --nodeps --noheadings --output SERIAL").split())

    def heal(self) -> HealReport:
        """Heal it as a new run does."""
        with self.journal.store.transaction(self.lab.name) as tables:
            token = raise_token(tables, self.lab.name)
        with closing(MockLab(self.lab, CLOCK, self.mock.state).open(token)) as bench:
            # As much as `rackloop heal` has on a mock rack.
            deadline = Deadline.after(CLOCK, 60)
            return heal(self.lab, self.journal, bench.equipment, CLOCK, deadline, look_at=bench)

    def _targets(self) -> list[str]:
        switch = ["switch"] if self.lab.has_switch else []
        return [*switch, *(f"server:{name}" for name in self.lab.servers), *(f"drive:{n}" for n in self.lab.drives)]


def _of_interest(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: answer[name] for name in ("stuck", "miswired", "training", "dropped")}


def _is_on(rackd: RackdControl, target: str) -> bool:
    return bool(rackd.request("power", soon(), target=target)["on"])


@contextmanager
def faulty_rack(root: Path, name: str = "mock") -> Iterator[FaultyRack]:
    """A mock rack and its journal, for as long as the block lasts."""
    with running_mock_rack(root, name) as mock, closing(Journal(open_store(mock.state.store, CLOCK))) as journal:
        yield FaultyRack(mock, journal)
