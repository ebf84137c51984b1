"""What of a journalled act is forgotten, because nothing was done, and what keeps standing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import FabricError
from rackloop.journal import Journal
from rackloop.journalled import ActRecorder, journalled
from rackloop.portmap import Partial, PortMap
from rackloop.store import open_store
from tests.unit.sim_rack import SimRack, described

SWAP = Partial(PortMap.of([(1, 102), (2, 101)]))


class Bench:
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
        return Deadline.after(self.clock, 10)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    bench.journal.close()


@pytest.mark.parametrize(
    ("code", "stands"),
    [
        *((code, False) for code in (-100, -109, -113, -203, -211, -221, -222, -224, -363)),
        *((code, True) for code in (0, -240, -310, -350, -410, 7)),
    ],
)
def test_only_what_the_switch_refuses_before_it_acts_is_forgotten(bench: Bench, code: int, stands: bool) -> None:
    def refuse() -> None:
        raise FabricError("the switch says no", code)

    bench.switch.before = refuse
    with pytest.raises(FabricError):
        bench.acting.fabric.apply(SWAP, bench.deadline)
    assert bool(bench.journal.standing("bench")) is stands


def test_an_act_whose_result_cannot_be_told_is_undone_all_the_same(bench: Bench) -> None:
    kept: list[int] = []
    recorder = bench.recorder.keeping(lambda entry: kept.append(entry.id))
    with pytest.raises(ZeroDivisionError):
        recorder.perform("fabric", "switch", {}, [{"act": "open", "ports": [1]}], lambda: 0, lambda _: {"x": 1 // 0})
    assert kept == [entry.id for entry in bench.journal.standing("bench")]
    assert len(kept) == 1
