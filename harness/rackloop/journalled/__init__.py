"""Abilities that write down how to undo each act before they make it, and the scopes that undo them.

The sequence of every act: refuse where the lab may not be disturbed, read what is there now, announce the act in
the event stream (durable), write its inverse to the undo journal (durable), act, record that it was done.
"""

from rackloop.journalled._abilities import JournalledFabric, JournalledPhyControl, JournalledPowerPort
from rackloop.journalled._breakable import JournalledBreakable
from rackloop.journalled._kept import LinkKept
from rackloop.journalled._recorder import ActRecorder
from rackloop.journalled._scope import journalled, undoing
from rackloop.journalled._undo import WORTH_ENDING_NS, Equipment, Outcome, UndoFailed, apply_full, undo, wait_for_signal

__all__ = [
    "WORTH_ENDING_NS",
    "ActRecorder",
    "Equipment",
    "JournalledBreakable",
    "JournalledFabric",
    "JournalledPhyControl",
    "JournalledPowerPort",
    "LinkKept",
    "Outcome",
    "UndoFailed",
    "apply_full",
    "journalled",
    "undo",
    "undoing",
    "wait_for_signal",
]
