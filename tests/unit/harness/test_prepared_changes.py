"""Map changes that are journalled before their turn: what was disturbed meanwhile is given back all the same."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rackloop.abilities import Staged, stager
from rackloop.clock import Deadline
from rackloop.errors import LabError
from rackloop.portmap import MapChange, Open, Partial, PortMap
from rackloop.record import ActAnnounced, ActDone, ActLog, read_events
from rackloop.safety import heal
from rackloop.safety.store import open_store
from rackloop.safety.undo import EntryState, Journal, JournalledFabric, LinkKept, undo, undoing
from tests.unit.harness.journalled_bench import SWAP, Bench, maps
from tests.unit.harness.sim_rack import BASELINE

ELSEWHERE = Partial(PortMap.of([(6, 108)]))


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with closing(Bench(tmp_path)) as bench:
        yield bench


def fabric_of(bench: Bench) -> JournalledFabric:
    fabric = bench.acting.fabric
    assert isinstance(fabric, JournalledFabric)
    return fabric


def states(bench: Bench) -> list[EntryState]:
    """Those of all acts, in the order in which they were journalled."""
    return [entry.state for entry in reversed(bench.journal.since(0))]


def test_a_prepared_change_is_on_disk_and_staging_it_writes_nothing_more(bench: Bench) -> None:
    fabric = fabric_of(bench)
    fabric.prepare(SWAP, bench.deadline)
    (entry,) = bench.journal.standing("bench")
    assert entry.inverse == (Partial(PortMap.of([(1, 101), (2, 102)])),)
    assert isinstance(list(read_events(bench.events.path))[-1].event, ActAnnounced)
    fabric.apply(ELSEWHERE, bench.deadline)
    before = list(read_events(bench.events.path))
    staged = fabric.stage(SWAP, bench.deadline)
    assert list(read_events(bench.events.path)) == before
    assert fabric.trigger(staged, bench.deadline).generation == 3
    assert states(bench) == [EntryState.ACTED, EntryState.ACTED]
    assert list(read_events(bench.events.path))[-1].event == ActDone(1, None, None, {"generation": 3})


def test_a_change_is_prepared_while_another_is_triggered(bench: Bench) -> None:
    fabric = fabric_of(bench)
    staged = fabric.stage(ELSEWHERE, bench.deadline)
    bench.switch.before = lambda: fabric.prepare(SWAP, bench.deadline)
    fabric.trigger(staged, bench.deadline)
    assert states(bench) == [EntryState.ACTED, EntryState.INTENDED]


class Telling(JournalledFabric):
    """One that says when SWAP has been journalled."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench.switch, bench.recorder)
        self.has_swap = Event()

    def prepare(self, change: MapChange, deadline: Deadline) -> None:
        super().prepare(change, deadline)
        if change == SWAP:
            self.has_swap.set()


def test_a_staged_change_is_journalled_before_it_waits_for_the_switch(bench: Bench) -> None:
    fabric = Telling(bench)
    staged = fabric.stage(ELSEWHERE, bench.deadline)
    with ThreadPoolExecutor() as pool:
        other = []

        def stage_another() -> None:
            other.append(pool.submit(fabric.stage, SWAP, bench.deadline))
            assert fabric.has_swap.wait(10)
            assert states(bench) == [EntryState.INTENDED, EntryState.INTENDED]

        bench.switch.before = stage_another
        fabric.trigger(staged, bench.deadline)
        bench.switch.before = lambda: None
        fabric.trigger(other[0].result(), bench.deadline)
    assert states(bench) == [EntryState.ACTED, EntryState.ACTED]


@pytest.mark.parametrize("meanwhile", [Open(frozenset({101})), Partial(PortMap.of([(2, 108)])), Open(frozenset({2}))])
def test_one_whose_circuits_were_changed_meanwhile_is_journalled_anew(bench: Bench, meanwhile: MapChange) -> None:
    fabric = fabric_of(bench)
    fabric.prepare(SWAP, bench.deadline)
    fabric.apply(meanwhile, bench.deadline)
    fabric.trigger(fabric.stage(SWAP, bench.deadline), bench.deadline)
    assert states(bench) == [EntryState.FAILED, EntryState.ACTED, EntryState.ACTED]
    live = bench.journal.standing("bench")[0].inverse
    assert live != (Partial(PortMap.of([(1, 101), (2, 102)])),)


def test_a_record_that_cannot_be_written_keeps_no_act_from_being_undone(bench: Bench) -> None:
    class FullDisk:
        problem = None

        def write(self, event: object, *, durable: bool = False) -> None:
            if is_full:
                raise LabError("no space left on device")

        def close(self) -> None: ...

    is_full = False
    recorder = replace(bench.recorder, log=ActLog(FullDisk()))
    with (  # noqa: PT012 - what it does is undone
        pytest.raises(LabError, match="no space left"),
        undoing(bench.rack.equipment, recorder, bench.clock) as acting,
    ):
        acting.fabric.apply(SWAP, bench.deadline)
        stager(acting.fabric).stage(Open(frozenset({5})), bench.deadline)
        is_full = True
    assert bench.switch.live == BASELINE


def test_one_that_is_never_staged_is_withdrawn(bench: Bench) -> None:
    with undoing(bench.rack.equipment, bench.recorder, bench.clock) as acting:
        assert isinstance(acting.fabric, JournalledFabric)
        acting.fabric.prepare(SWAP, bench.deadline)
        acting.fabric.prepare(SWAP, bench.deadline)
    assert states(bench) == [EntryState.FAILED]
    assert bench.switch.applied == []


def test_one_that_would_take_a_kept_link_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with closing(Bench(tmp_path, disturbs=frozenset())) as bench:
        with pytest.raises(LinkKept, match="d03"):
            fabric_of(bench).prepare(Open(frozenset({5})), bench.deadline)
        assert bench.journal.since(0) == []


class Killed(BaseException):
    """The end of a process, at an act of the switch."""


def changes() -> st.SearchStrategy[MapChange]:
    """Few ports, so that many a change takes the circuits of one that is prepared."""
    few = st.permutations([1, 2, 3, 4]).map(lambda order: Partial(PortMap.of([(order[0], order[1])])))
    opened = st.frozensets(st.integers(1, 8), min_size=1, max_size=2).map(Open)
    return st.one_of(few, maps().map(Partial), opened)


STEPS = st.tuples(st.sampled_from(["prepare", "prepare", "stage", "trigger", "apply"]), changes())


def carry_out(bench: Bench, steps: list[tuple[str, MapChange]], fatal_act: int, *, acts_first: bool) -> None:
    """Make the steps; the process ends at its act ``fatal_act``, before the switch made it or just after."""
    fabric = fabric_of(bench)
    acts = 0

    def die() -> None:
        nonlocal acts
        acts += 1
        if acts == fatal_act:
            raise Killed

    if acts_first:
        bench.switch.after = die
    else:
        bench.switch.before = die
    prepared: list[MapChange] = []
    staged: Staged | None = None
    for step, change in steps:
        if step == "prepare":
            fabric.prepare(change, bench.deadline)
            prepared.append(change)
        elif step == "stage":
            staged = fabric.stage(prepared.pop(0) if prepared else change, bench.deadline)
        elif step == "trigger":
            if staged is not None:
                fabric.trigger(staged, bench.deadline)
            staged = None
        else:
            fabric.apply(change, bench.deadline)
            staged = None


@given(
    start=st.one_of(st.just(BASELINE), maps()),
    steps=st.lists(STEPS, max_size=14),
    fatal_act=st.integers(1, 6),
    acts_first=st.booleans(),
)
@settings(deadline=None, max_examples=80)
def test_a_kill_at_any_point_leaves_a_journal_that_gives_everything_back(
    start: PortMap, steps: list[tuple[str, MapChange]], fatal_act: int, acts_first: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder, closing(Bench(Path(folder))) as bench:
        bench.switch.live = start
        with suppress(Killed):
            carry_out(bench, steps, fatal_act, acts_first=acts_first)
        bench.switch.before = bench.switch.after = lambda: None
        # Outcomes that were in the memory of the process are lost with it.
        with closing(Journal(open_store(Path(folder) / "store.sqlite", bench.clock))) as found:
            within = Deadline.after(bench.clock, 10)
            standing = found.standing("bench")
            assert undo(standing, bench.rack.equipment, found, within).problems == ()
            assert bench.switch.live == start
            heal(bench.lab, found, bench.rack.equipment, bench.clock, within)
            assert bench.switch.live == BASELINE
            assert found.standing("bench") == []
