"""The notes of what mending a panic tells the power of a server, as entries of the undo journal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackloop.record.acts import BreakPart, MendPart
from rackloop.safety.undo import Journal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rackloop.safety.leases import HeldLease
    from rackloop_drivers.crash import NoteRestart


def restart_notes(journal: Journal, lab: str, resource: str, lease: HeldLease | None) -> NoteRestart:
    """The writer of the notes of the server ``resource``, which stand in ``journal`` until its power is back.

    Each raises LabError where it did not reach the disk, LeaseLost where ``lease`` is over.
    """

    def note(key: str, fault: Mapping[str, str]) -> Callable[[], None]:
        held, run = (lease.lease, f"lease {lease.lease.id}") if lease else (None, "")
        entry = journal.intend(lab, run, resource, what=BreakPart(key, fault), inverse=[MendPart(key)], lease=held)
        return lambda: journal.undone([entry])

    return note
