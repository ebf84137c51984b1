"""Abilities that journal the inverse of each act before they make it, and the scopes that undo acts.

The sequence of every act: refuse where the lab may not be disturbed, read what is there now, announce the act in
the event stream (durable), write its inverse to the undo journal (durable), act, record that it was done.
"""

from typing import TYPE_CHECKING

from rackloop.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackloop.safety.undo._abilities import JournalledFabric
    from rackloop.safety.undo._journal import Entry, EntryState, Journal, JournalDamaged
    from rackloop.safety.undo._kept import LinkKept
    from rackloop.safety.undo._recorder import ActRecorder
    from rackloop.safety.undo._scope import journalled, undoing
    from rackloop.safety.undo._undo import (
        WORTH_ENDING_NS,
        Equipment,
        Outcome,
        UndoFailed,
        apply_full,
        undo,
        wait_for_signal,
    )

__all__ = [
    "WORTH_ENDING_NS",
    "ActRecorder",
    "Entry",
    "EntryState",
    "Equipment",
    "Journal",
    "JournalDamaged",
    "JournalledFabric",
    "LinkKept",
    "Outcome",
    "UndoFailed",
    "apply_full",
    "journalled",
    "undo",
    "undoing",
    "wait_for_signal",
]

__getattr__ = lazy_getattr(__name__)
