"""Scrubbing: every sector of a store is read, compared with its redundancy, and repaired where it can be."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import numpy as np

from rackloop_models.erasure import Bytes, Code
from rackloop_models.local_erasure._file import Group
from rackloop_models.local_erasure._layout import SECTOR_BYTES
from rackloop_models.local_erasure._replicas import ReplicatedArea
from rackloop_models.local_erasure._volume import Volume

Progress = Callable[[int, int], None]


@dataclass(frozen=True, order=True)
class GroupName:
    """A group of a file."""

    file: str
    group: int


@dataclass
class ScrubReport:
    """The findings of a scrub, in sectors of the drive, and what it did about them.

    ``repaired_sectors`` were unreadable and have been written again, ``corrected_sectors`` had other bytes than their
    redundancy says and were the only ones in their group. ``mismatches`` are groups whose sectors and redundancy do
    not belong together, and which is wrong cannot be told; their bytes are left as they are. ``unrecoverable`` groups
    have more unreadable sectors than redundancy. ``protected_groups`` were unprotected and are not any more.
    """

    checked_sectors: int = 0
    unreadable_sectors: int = 0
    repaired_sectors: int = 0
    corrected_sectors: int = 0
    protected_groups: int = 0
    metadata_repairs: int = 0
    metadata_lost: int = 0
    unprotected: list[GroupName] = field(default_factory=list)
    mismatches: list[GroupName] = field(default_factory=list)
    unrecoverable: list[GroupName] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        """Whether all is protected, readable and consistent now."""
        return not (self.unprotected or self.mismatches or self.unrecoverable or self.metadata_lost)


class Scrub:
    """One pass over a volume. ``turn`` holds it for the work on one group; others may use it in between.

    One wrong sector in a group is found out by itself when there are two redundancy sectors or more: the differences
    of all redundancy sectors point to the same one. Without ``repair`` nothing is written.
    """

    def __init__(self, volume: Volume, turn: Callable[[], AbstractContextManager[object]], *, repair: bool) -> None:
        self._volume = volume
        self._turn = turn
        self._repair = repair
        self._report = ScrubReport()

    def run(self, progress: Progress | None = None) -> ScrubReport:
        """Scrub metadata, then every group of every file that there is when it begins."""
        report = self._report
        with self._turn():
            unprotected = list(self._volume.write_back.stale)
            before = self._volume.drive.statistics.metadata_repairs
            self._scrub_metadata()
            report.metadata_repairs = self._volume.drive.statistics.metadata_repairs - before
            files = list(self._volume.table)
        m = self._volume.layout.m
        total = sum(group.stored + m for file in files for group in file.groups.values())
        for file in files:
            with self._turn():
                indexes = sorted(file.groups)
            for index in indexes:
                with self._turn():
                    group = file.groups.get(index)
                    if group is not None and not file.removed:
                        self._scrub_group(group)
                if progress:
                    progress(min(report.checked_sectors, total), total)
        if self._repair:
            with self._turn():
                self._volume.write_back.flush()
                self._volume.write_back.settle()
        report.protected_groups = sum(not group.stale and not group.file.removed for group in unprotected)
        return report

    def _scrub_metadata(self) -> None:
        """Read all replicas. What none of them says any more is written from memory."""
        volume = self._volume
        volume.check_superblock()
        if self._repair:
            volume.commit()
        lost = {area: self._lost(area) for area in (volume.journal.pages, volume.record.area, volume.journal.area)}
        if self._repair and any(lost.values()):
            pages = lost[volume.journal.pages]
            for first in range(0, len(pages), volume.journal.most):
                volume.table.write_again(pages[first : first + volume.journal.most])
                volume.commit()
            volume.record.write_again(volume.write_back.next_generation())
            volume.write_back.flush()
            volume.journal.empty(volume.write_back.next_generation())
            volume.write_back.flush()
            volume.drive.statistics.metadata_repairs += sum(map(len, lost.values()))
        else:
            self._report.metadata_lost = sum(map(len, lost.values()))

    def _lost(self, area: ReplicatedArea) -> list[int]:
        found = area.read_each(area.count, repair=self._repair)
        self._report.checked_sectors += area.count * area.replicas
        return [number for number, sealed in enumerate(found) if isinstance(sealed, str)]

    def _scrub_group(self, group: Group) -> None:
        name = GroupName(group.file.name, group.index)
        if self._repair:
            self._volume.bring_up_to_date(group)
        if group.cached is not None and group.cached.dirty.any():
            # Only without repair: what is on the drive is not what will be.
            self._report.unprotected.append(name)
            return
        if group.stale:
            self._report.unprotected.append(name)
        content = self._read(group)
        if content is None:
            self._report.unrecoverable.append(name)
            return
        rows, failed = content
        if group.stale:
            self._rewrite(group, rows, [row for row in failed if row < group.stored])
            return
        code = self._volume.code
        difference = _difference(code, rows, group.stored)
        if difference.any() and failed:
            # A wrong sector has spoilt what was decoded: what the drive says after retries is compared instead.
            retried = self._read(group, decode=False)
            if retried is None:
                self._report.mismatches.append(name)
                return
            rows, failed = retried
            difference = _difference(code, rows, group.stored)
        if difference.any():
            wrong = located(code, difference, group.stored)
            if wrong is None:
                self._report.mismatches.append(name)
                return
            rows[wrong] ^= difference[0] if wrong < group.stored else difference[wrong - group.stored]
            if not self._repair:
                self._report.mismatches.append(name)
                return
            self._report.corrected_sectors += 1
            self._volume.drive.write(group.start + wrong, rows[wrong : wrong + 1])
            self._volume.cache.drop(group)
        self._rewrite(group, rows, failed)

    def _read(self, group: Group, *, decode: bool = True) -> tuple[Bytes, list[int]] | None:
        """All sectors of a group, and those that had failed; None where some cannot be had by any means."""
        count, m, drive = group.stored + self._volume.layout.m, self._volume.layout.m, self._volume.drive
        rows = np.empty((count, SECTOR_BYTES), np.uint8)
        failed = drive.read_into(rows, group.start, retry=False)
        if decode:
            self._report.checked_sectors += count
            self._report.unreadable_sectors += len(failed)
        erased = list(failed)
        for row in failed:
            if decode and not group.stale and len(erased) <= m:
                break
            drive.statistics.retried_sectors += 1
            if not drive.read_into(rows[row : row + 1], group.start + row, retry=True):
                erased.remove(row)
        if group.stale:
            # Its redundancy means nothing.
            return None if any(row < group.stored for row in erased) else (rows, failed)
        if len(erased) > (m if decode else 0):
            return None
        if erased:
            self._volume.code.decode(rows, erased)
            drive.statistics.decodes += 1
            drive.statistics.decoded_sectors += len(erased)
        return rows, failed

    def _rewrite(self, group: Group, rows: Bytes, failed: list[int]) -> None:
        if self._repair:
            for row in failed:
                self._volume.drive.write(group.start + row, rows[row : row + 1])
            self._report.repaired_sectors += len(failed)


def _difference(code: Code, rows: Bytes, stored: int) -> Bytes:
    """Redundancy as it is, exclusive or as it should be."""
    expected = np.empty((code.m, SECTOR_BYTES), np.uint8)
    code.encode(rows[:stored], expected)
    expected ^= rows[stored:]
    return expected


def located(code: Code, difference: Bytes, stored: int) -> int | None:
    """The one position of a codeword that explains how its redundancy differs from what it should be, or None.

    A wrong redundancy sector differs alone. A wrong user sector differs in the first redundancy sector, the exclusive
    or of all, as it does itself, and in the others by its coefficients.
    """
    differs = np.flatnonzero(difference.any(axis=1))
    if code.m < 2 or not len(differs):
        return None
    if len(differs) == 1:
        return stored + int(differs[0])
    if not difference[0].any():
        return None
    for position in range(stored):
        left = difference.copy()
        code.accumulate(left, position, difference[:1])
        if not left.any():
            return position
    return None
