"""A lab that is up, for commands that change it by hand: under the same journal as a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rackloop.clock import Clock
from rackloop.journal import Journal
from rackloop.journalled import ActRecorder, Equipment, journalled
from rackloop.lab import Lab
from rackloop.state import LabState
from rackloop.store import open_lab_store
from rackloop_labs import Bench, open_lab


@contextmanager
def running_bench(lab: Lab, clock: Clock) -> Iterator[Bench]:
    """The bench of a lab that is up already; nothing is brought up for a command."""
    with open_lab(lab, clock, LabState.of(lab.name), None, bring_up=False) as bench:
        yield bench


@contextmanager
def acting(bench: Bench) -> Iterator[Equipment]:
    """The bench's equipment, journalled; what is done by hand stands until `heal`."""
    journal = Journal(open_lab_store(bench.lab, LabState.of(bench.lab.name), bench.clock))
    try:
        yield journalled(bench.equipment, ActRecorder(bench.lab, journal, "by hand"))
    finally:
        journal.close()
