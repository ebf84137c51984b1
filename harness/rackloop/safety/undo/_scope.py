"""Scopes of a test whose acts are undone on leaving."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rackloop.abilities import Fabric
from rackloop.clock import Clock, Deadline
from rackloop.errors import RackloopError
from rackloop.safety.undo._abilities import JournalledFabric, JournalledPhyControl, JournalledPowerPort
from rackloop.safety.undo._breakable import JournalledBreakables
from rackloop.safety.undo._journal import Entry
from rackloop.safety.undo._recorder import ActRecorder
from rackloop.safety.undo._undo import Equipment, UndoFailed, undo


def journalled(equipment: Equipment, recorder: ActRecorder) -> Equipment:
    """``equipment`` with every ability journalled through ``recorder``."""
    fabric = JournalledFabric(equipment.fabric, recorder)
    return Equipment(
        fabric,
        equipment.phy and JournalledPhyControl(equipment.phy, equipment.fabric, recorder),
        {
            name: JournalledPowerPort(
                port, name, recorder, fabric=equipment.fabric if name == equipment.switch_power else None
            )
            for name, port in equipment.power.items()
        },
        equipment.switch_power,
        JournalledBreakables(equipment.breakable, recorder),
    )


@contextmanager
def undoing(equipment: Equipment, recorder: ActRecorder, clock: Clock) -> Iterator[Equipment]:
    """Give ``equipment`` journalled, and undo on leaving, in reverse, every act made through what was given.

    Acts made by any thread count, acts made through another scope do not, so scopes may nest and overlap. Undoing
    runs however the body ends, and has :meth:`ActRecorder.undo_s` from then on; a thousand remaps cost one to undo.
    Raises UndoFailed with everything that could not be undone; where the body raised, its exception goes on and
    carries that as a note. What was not undone still stands in the journal.
    """
    made: list[Entry] = []
    given = journalled(equipment, recorder.keeping(made.append))
    try:
        yield given
    except BaseException as error:
        try:
            _undo_all(made, given.fabric, equipment, recorder, clock)
        except RackloopError as problem:
            error.add_note(str(problem))
        raise
    _undo_all(made, given.fabric, equipment, recorder, clock)


def _undo_all(made: list[Entry], given: Fabric, equipment: Equipment, recorder: ActRecorder, clock: Clock) -> None:
    if made:
        # Once the lease is over, its next holder heals the rack; this run may not touch it any more.
        recorder.require_lease()
        deadline = Deadline.after(clock, recorder.undo_s(made))
        outcome = undo(made, equipment, recorder.journal, deadline, check=recorder.require_lease)
        if outcome.problems:
            raise UndoFailed(outcome.problems)
    # Last, for a disk that is full refuses it. What is left of it by an error above never happened, as healing finds.
    if isinstance(given, JournalledFabric):
        given.forget_staged()
