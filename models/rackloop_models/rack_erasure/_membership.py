"""The membership of a store's drives: members have a record of all writes, others were left out of some."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from threading import RLock

from rackloop_models.rack_erasure._drives import Drives, DriveUnavailable
from rackloop_models.rack_erasure._label import Label, Member, write_label
from rackloop_models.rack_erasure._layout import Unit

# A drive that was never in: no change has this number, the first being that of formatting.
NEVER_MEMBER = 1
# One that was left out, and is not to be believed however few are in.
_DISBELIEVED = -1


class Membership:
    """The members of a store, on the labels of its drives. Threads may share it."""

    def __init__(self, label: Label, drives: Drives) -> None:
        self.label = label
        self._drives = drives
        self.lock = RLock()

    @property
    def members(self) -> Sequence[Member]:
        """The drives of the store, by number."""
        return self.label.members

    def exclude_unreachable(self, others: Collection[int] = ()) -> None:
        """Mark the drives that cannot be reached as removed, on all others, before something is written without them.

        And that ``others`` are, which can be reached and lack something. A later opening of the store does not
        believe those then.
        """
        with self.lock:
            while gone := [
                number
                for number, member in enumerate(self.members)
                if not member.out and (number in others or not self._drives.is_up(number))
            ]:
                change = self.label.change + 1
                self._write({number: replace(self.members[number], out=change) for number in gone})

    def distrust_removed_members(self) -> None:
        """Distrust members that are marked as removed, however few are left."""
        with self.lock:
            trusted = {number: member for number, member in enumerate(self.members) if member.out > NEVER_MEMBER}
            if trusted:
                self._write({number: replace(member, out=_DISBELIEVED) for number, member in trusted.items()})

    def join(self, numbers: Sequence[int]) -> None:
        """These drives have everything as it is now, and are in again."""
        with self.lock:
            joining = {
                number: replace(self.members[number], out=0)
                for number in numbers
                if self.members[number].out and self._drives.is_up(number)
            }
            if joining:
                self._write(joining)

    def enter(self, number: int, member: Member) -> None:
        """Another drive has this number from now on, and nothing on it yet."""
        with self.lock:
            self._write({number: replace(member, out=NEVER_MEMBER)})

    def moved(self, number: int, server: str) -> None:
        """A drive is at another server now. Its label says so from the next change on."""
        with self.lock:
            after = list(self.members)
            after[number] = replace(after[number], server=server)
            self.label = replace(self.label, members=tuple(after))

    def repeat(self, number: int) -> None:
        """Have a drive that came back carry the label as it is now."""
        with self.lock, suppress(DriveUnavailable):
            self._drives.do(number, lambda blocks: write_label(blocks, self.label.for_drive(number)))

    def _write(self, members: dict[int, Member]) -> None:
        self.label = self.label.changed(members)
        for number in self._drives.up():
            self.repeat(number)


def trusted_members(units: Sequence[Unit], members: Sequence[Member], k: int) -> set[int]:
    """The positions of a stripe whose drives have a record of the last write of it, if it is not damaged.

    Where fewer than ``k`` are in, nothing was written since the last of ``k`` left, or those that are out would not be
    believed: those that left then or later are, as well.
    """
    out = [members[unit.drive].out or None for unit in units]
    left = sorted((float("inf") if change is None else change for change in out), reverse=True)
    since = left[k - 1]
    least = max(since, NEVER_MEMBER + 1)
    return {position for position, change in enumerate(out) if change is None or change >= least}
