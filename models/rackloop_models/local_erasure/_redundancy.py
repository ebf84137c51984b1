"""Bringing the redundancy of a group up to date, in memory: at once, progressively, directly or by difference."""

from __future__ import annotations

from enum import StrEnum

import numpy as np

from rackloop_models.erasure import Bytes, Code
from rackloop_models.local_erasure._cache import runs
from rackloop_models.local_erasure._cached_group import CachedGroup
from rackloop_models.local_erasure._drive import Drive
from rackloop_models.local_erasure._file import Group
from rackloop_models.local_erasure._group_reads import GroupReads
from rackloop_models.local_erasure._layout import SECTOR_BYTES


class UpdateMethod(StrEnum):
    """The way to compute the redundancy of a group that changed in part."""

    CHEAPEST = "cheapest"
    """Whichever reads fewer sectors, with what is in the cache."""
    DIRECT = "direct"
    """From all user sectors: reads those that did not change, ``k - k1`` when nothing is in the cache."""
    INDIRECT = "indirect"
    """By the difference (eq. 11): reads the changed ones as they were and the redundancy, ``k1 + m``."""


class Redundancy:
    """Computes redundancy. ``method`` may be changed at any time.

    What a group was before it changed is needed for the difference. It is in the cache, or on the drive as long as the
    new sectors were not put down; after that only the direct method is left, whatever ``method`` says.
    """

    def __init__(self, drive: Drive, code: Code, reads: GroupReads, method: UpdateMethod) -> None:
        self.method = method
        self._drive = drive
        self._code = code
        self._reads = reads
        self._statistics = drive.statistics

    @property
    def m(self) -> int:
        """Redundancy sectors of a group."""
        return self._code.m

    def encode(self, rows: Bytes, redundancy: Bytes) -> None:
        """Compute the redundancy of user sectors that are all at hand."""
        self._code.encode(rows, redundancy)
        self._statistics.encodes += 1

    def reads_needed(self, group: Group, cached: CachedGroup) -> int:
        """The number of sectors to read from the drive to bring a group up to date by the cheapest method."""
        if self._is_current(group, cached) or self._only_grew(group, cached):
            return 0
        direct = group.stored - int(np.count_nonzero(cached.present[: group.stored]))
        indirect = self._indirect_reads(group, cached)
        return direct if indirect is None else min(direct, indirect)

    def lies_behind(self, group: Group, cached: CachedGroup) -> bool:
        """Whether the group only grew, in memory, so that its redundancy is written together with what is new."""
        grew = self._only_grew(group, cached) or (cached.base == 0 and bool(cached.dirty[: group.stored].all()))
        return grew and self.reads_needed(group, cached) == 0

    def refresh(self, group: Group, cached: CachedGroup) -> None:
        """Have in ``cached.redundancy`` what belongs to the user sectors as they are. Nothing is written.

        Raises GroupUnrecoverable where sectors that it takes cannot be had.
        """
        if self._is_current(group, cached):
            return
        if self._only_grew(group, cached):
            grown = cached.rows[cached.base : group.stored]
            self._code.accumulate(cached.redundancy, cached.base, grown)
            self._statistics.progressive_updates += 1
        elif not (self._prefers_indirect(group, cached) and self._by_difference(group, cached)):
            self._from_all(group, cached)
        cached.base = group.stored
        cached.redundancy_known = True
        cached.redundancy_on_drive = False
        cached.settle_changes()

    def learn_old(self, group: Group, cached: CachedGroup) -> None:
        """Read what is to be overwritten, so that the difference is known when the new sectors have been put down."""
        before = self._statistics.read_sectors
        unknown = cached.changed & ~cached.lost
        unknown[cached.base :] = False
        unknown[list(cached.old)] = False
        for first, stop in runs(unknown):
            was = self._reads.as_was(group, first, stop)
            if was is not None:
                cached.old |= dict(zip(range(first, stop), was, strict=True))
        self._statistics.update_read_sectors += self._statistics.read_sectors - before

    def _is_current(self, group: Group, cached: CachedGroup) -> bool:
        return cached.redundancy_known and cached.base == group.stored and not cached.changed.any()

    def _only_grew(self, group: Group, cached: CachedGroup) -> bool:
        grew = cached.redundancy_known and 0 < cached.base < group.stored
        return grew and not cached.changed[: cached.base].any()

    def _indirect_reads(self, group: Group, cached: CachedGroup) -> int | None:
        """Sectors that the indirect method reads, None where it cannot be used."""
        known = cached.is_redundant
        if not known or not 0 < cached.base <= group.stored or cached.lost.any():
            return None
        changed = int(np.count_nonzero(cached.changed[: cached.base]))
        return changed - len(cached.old) + (0 if cached.redundancy_known else self._code.m)

    def _prefers_indirect(self, group: Group, cached: CachedGroup) -> bool:
        indirect = self._indirect_reads(group, cached)
        if indirect is None or self.method is UpdateMethod.DIRECT:
            return False
        if self.method is UpdateMethod.INDIRECT:
            return True
        direct = group.stored - int(np.count_nonzero(cached.present[: group.stored]))
        # Where neither reads more, whichever multiplies fewer sectors: both the old and the new, or all.
        changed = int(np.count_nonzero(cached.changed))
        return (indirect, 2 * changed) < (direct, group.stored)

    def _from_all(self, group: Group, cached: CachedGroup) -> None:
        before = self._statistics.read_sectors
        partly = cached.base > 0 or not cached.present[: group.stored].all()
        self._reads.load(group, 0, group.stored)
        read = self._statistics.read_sectors - before
        self._statistics.update_read_sectors += read
        self._code.encode(cached.rows[: group.stored], cached.redundancy)
        if partly and read:
            self._statistics.direct_updates += 1
        else:
            self._statistics.encodes += 1

    def _by_difference(self, group: Group, cached: CachedGroup) -> bool:
        """Change the redundancy by the difference; False, and nothing done, where what that takes cannot be read."""
        before = self._statistics.read_sectors
        changed = cached.changed[: cached.base]
        olds: list[tuple[int, int, Bytes]] = []
        for first, stop in runs(changed):
            old = self._old(group, cached, first, stop)
            if old is None:
                return False
            olds.append((first, stop, old))
        known = cached.redundancy_known or not self._reads.redundancy(group, cached)
        if not known and self._reads.redundancy(group, cached, retry=True):
            return False
        self._statistics.update_read_sectors += self._statistics.read_sectors - before
        for first, stop, old in olds:
            self._code.update(cached.redundancy, first, old, cached.rows[first:stop])
        if cached.base < group.stored:
            self._code.accumulate(cached.redundancy, cached.base, cached.rows[cached.base : group.stored])
        self._statistics.indirect_updates += 1
        return True

    def _old(self, group: Group, cached: CachedGroup, first: int, stop: int) -> Bytes | None:
        """Changed sectors as they were: from memory, or from the drive, to which the new were not written yet."""
        if all(row in cached.old for row in range(first, stop)):
            return np.stack([cached.old[row] for row in range(first, stop)])
        rows = np.empty((stop - first, SECTOR_BYTES), np.uint8)
        unknown = np.array([row not in cached.old for row in range(first, stop)])
        for start, end in runs(unknown):
            was = self._reads.as_was(group, first + start, first + end)
            if was is None:
                return None
            rows[start:end] = was
        for row in range(first, stop):
            if row in cached.old:
                rows[row - first] = cached.old[row]
        return rows
