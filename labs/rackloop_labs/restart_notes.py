"""The notes of a server that is told to panic, and of what mending that tells its power, in the undo journal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rackloop.record.acts import BreakPart, MendPart
from rackloop.safety.undo import Entry, Journal, JournalDamaged
from rackloop_drivers.crash import RESTARTED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rackloop.safety.leases import HeldLease
    from rackloop_drivers.crash import NoteRestart


@dataclass(frozen=True)
class JournalledNote:
    """A :class:`~rackloop_drivers.crash.RestartNote` that is ``entry`` of ``journal``."""

    journal: Journal
    entry: Entry

    def take_back(self) -> None:
        """Have it be undone."""
        self.journal.undone([self.entry])

    def close(self) -> None:
        """Have it be undone, and with it the panics and notes of its server before: no later heal cuts the power."""
        resource, number = self.entry.resource, self.entry.id
        before = [entry for entry in self._standing() if entry.resource == resource and entry.id < number]
        over = [one for one in before if isinstance(one.what, BreakPart) and one.what.fault["kind"] in RESTARTED]
        self.journal.undone([self.entry, *over])

    def _standing(self) -> Sequence[Entry]:
        try:
            return self.journal.standing(self.entry.lab)
        except JournalDamaged as damage:
            return damage.readable


def restart_notes(journal: Journal, lab: str, resource: str, lease: HeldLease | None) -> NoteRestart:
    """The writer of the notes of the server ``resource``, which stand in ``journal`` as long as what they say is so.

    Each raises LabError where it did not reach the disk, LeaseLost where ``lease`` is over.
    """

    def note(key: str, fault: Mapping[str, str]) -> JournalledNote:
        held, run = (lease.lease, f"lease {lease.lease.id}") if lease else (None, "")
        entry = journal.intend(lab, run, resource, what=BreakPart(key, fault), inverse=[MendPart(key)], lease=held)
        return JournalledNote(journal, entry)

    return note
