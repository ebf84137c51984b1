"""Thousands of faults, one after the other and overlapping: the rack stays what it was, and nothing piles up."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from rackloop.errors import FaultRefused, LabError
from rackloop.faults import FaultCutShort, Faults, FaultSpec
from rackloop.safety.undo import ActRecorder
from rackloop.seed import Stream, stream
from rackloop_labs import MockLab
from tests.contracts.test_faults_killed import SWITCHED
from tests.deadlines import CLOCK
from tests.faulty_rack import FaultyRack, faulty_rack

FAULTS = 10_000
EACH = 100
# What is cached grows at first, and the journal's own pages: of the harness, labd and rackd together.
SETTLED = 1_000
MOST_GROWTH_BYTES = 64 << 20
# Cutting a server's power takes half a second through its controller, everything else milliseconds.
SLOW = frozenset({"power_loss", "bmc_unreachable"})
SPECS = [specs[0] for name, specs in SWITCHED.items() if len(specs) == 1]


@dataclass(frozen=True)
class Held:
    """What processes hold: open files, and memory that is theirs."""

    files: int
    bytes: int

    @classmethod
    def by(cls, pids: list[int]) -> Held:
        """What these processes hold together."""
        files = sum(len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in pids)
        pages = sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids)
        return cls(files, pages * os.sysconf("SC_PAGE_SIZE"))


@pytest.fixture
def rack(tmp_path: Path) -> Iterator[FaultyRack]:
    with faulty_rack(tmp_path) as ready:
        yield ready


def pids_of(rack: FaultyRack) -> list[int]:
    """The harness, labd and rackd."""
    labd = rack.mock.endpoints["pid"]
    children = Path(f"/proc/{labd}/task/{labd}/children").read_text().split()
    rackd = [int(pid) for pid in children if "rackd" in Path(f"/proc/{pid}/comm").read_text()]
    assert len(rackd) == 1
    return [os.getpid(), labd, *rackd]


def soak(rack: FaultyRack, faults: int, chance: Stream) -> list[Held]:
    """Make and end so many faults, up to two at a time; what was held each time the rack was compared."""
    before, held = rack.truth(), [Held.by(pids_of(rack))]
    quick = [spec for spec in SPECS if spec.kind not in SLOW]
    made = 0
    with closing(MockLab(rack.lab, CLOCK, rack.mock.state).open(None)) as bench:
        while made < faults:
            guard = Faults(rack.lab, bench.equipment, CLOCK, ActRecorder(rack.lab, rack.journal, "soak"))
            # None stands for as long as its own parameters say, which the guard tells of once it has ended them.
            with suppress(FaultCutShort), guard:
                for _ in range(2):
                    made += _begin(guard, chance.choice(SPECS if chance.random() < 0.1 else quick))
            if made // EACH >= len(held):
                assert rack.truth() == before, f"after {made} faults"
                assert rack.journal.standing(rack.lab.name) == []
                held.append(Held.by(pids_of(rack)))
                sys.stdout.write(f"{made} faults, {held[-1]}\n")
                sys.stdout.flush()
    return held


def _begin(guard: Faults, spec: FaultSpec) -> bool:
    try:
        guard.begin(spec)
    except FaultRefused:
        # Another that stands has taken what this one would: no signal is left to drop.
        return False
    except LabError:
        # Without its control link the switch can be told nothing, and one without sense says nothing.
        assert any(made.stands and made.spec.kind.startswith("control_") for made in guard.made), spec
        return False
    return True


def test_the_rack_is_what_it_was_after_faults_of_every_kind(rack: FaultyRack) -> None:
    soak(rack, EACH, stream(20261122, "soak"))


@pytest.mark.nightly
def test_ten_thousand_faults_leave_the_rack_as_it_was_and_pile_up_nothing(rack: FaultyRack) -> None:
    held = soak(rack, FAULTS, stream(20261122, "long soak"))
    settled, last = held[SETTLED // EACH], held[-1]
    assert last.files <= settled.files + 2
    assert last.bytes <= settled.bytes + MOST_GROWTH_BYTES
