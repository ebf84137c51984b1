"""Abilities that journal the inverse of each act before they make it, and the scopes that undo acts.

The sequence of every act: refuse where the lab may not be disturbed, read what is there now, announce the act in
the event stream (durable), write its inverse to the undo journal (durable), act, record that it was done.
"""

from typing import TYPE_CHECKING

from rackloop.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackloop.safety.undo._abilities import JournalledFabric as JournalledFabric
    from rackloop.safety.undo._journal import Entry as Entry
    from rackloop.safety.undo._journal import EntryState as EntryState
    from rackloop.safety.undo._journal import Journal as Journal
    from rackloop.safety.undo._journal import JournalDamaged as JournalDamaged
    from rackloop.safety.undo._kept import LinkKept as LinkKept
    from rackloop.safety.undo._recorder import ActRecorder as ActRecorder
    from rackloop.safety.undo._scope import journalled as journalled
    from rackloop.safety.undo._scope import undoing as undoing
    from rackloop.safety.undo._undo import WORTH_ENDING_NS as WORTH_ENDING_NS
    from rackloop.safety.undo._undo import Equipment as Equipment
    from rackloop.safety.undo._undo import Outcome as Outcome
    from rackloop.safety.undo._undo import UndoFailed as UndoFailed
    from rackloop.safety.undo._undo import apply_full as apply_full
    from rackloop.safety.undo._undo import undo as undo
    from rackloop.safety.undo._undo import wait_for_signal as wait_for_signal


__getattr__ = lazy_getattr(__name__)
