"""Reading sectors of a group: from the cache, from the drive, by decoding, and with the drive's own retries."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

import numpy as np

from rackloop_models.erasure import Bytes, Code
from rackloop_models.local_erasure._cache import Cache, runs
from rackloop_models.local_erasure._cached_group import CachedGroup
from rackloop_models.local_erasure._drive import Drive
from rackloop_models.local_erasure._errors import GroupUnrecoverable
from rackloop_models.local_erasure._file import Group
from rackloop_models.local_erasure._layout import SECTOR_BYTES


class ReadMode(StrEnum):
    """The drive's handling, at first, of a sector that it cannot read."""

    FAIL_FAST = "fail-fast"
    """Say so at once: the sector is decoded from its group, and the drive retries only when that fails."""
    RETRY = "retry"
    """Read it again until it is read or given up: the group is decoded only when that fails."""


class GroupReads:
    """Brings user sectors of groups into the cache, whatever it takes.

    A sector that fails is decoded from its group. Sectors in the cache are not read again. When more than ``m`` fail,
    failed ones are read with the drive's own retries, until no more than ``m`` are left. The redundancy of a group
    that is not protected is only resorted to when retries fail too, and only as far as memory knows what it stands for.
    """

    def __init__(self, drive: Drive, code: Code, cache: Cache, mode: ReadMode) -> None:
        self._drive = drive
        self._code = code
        self._cache = cache
        self._retries = mode is ReadMode.RETRY or not drive.fails_fast
        self._statistics = drive.statistics

    def load(self, group: Group, first: int, stop: int) -> CachedGroup:
        """Have the user sectors ``first`` to ``stop - 1``, which the group must have, in the cache.

        Raises GroupUnrecoverable where one cannot be had; those that can be are in the cache then.
        """
        cached = self._cache.of(group)
        self._statistics.cached_sectors += int(np.count_nonzero(cached.present[first:stop]))
        if not cached.present[first:stop].all():
            self._load(group, cached, first, stop)
        return cached

    def _load(self, group: Group, cached: CachedGroup, first: int, stop: int, *, fails: bool = False) -> None:
        retries = self._retries or group.stale
        failed: list[int] = []
        # What redundancy there is may as well stand for sectors that were not looked at one by one.
        spare = self._code.m if cached.is_redundant else 0
        for start, end in runs(~cached.present[first:stop]):
            failed += self._fetch(
                group, cached, first + start, first + end, retry=retries, fails=fails, spare=spare - len(failed)
            )
        if failed:
            self._statistics.degraded_reads += 1
            self._statistics.failed_sectors += len(failed)
            if retries and not self._retries:
                # Reads with retries are not counted as such unless a sector failed before.
                self._statistics.retried_sectors += len(failed)
            self._recover(group, cached, failed, retried=retries)
        self._cache.charge(group)

    def fresh(self, group: Group, first: int, stop: int, *, keep: bool) -> list[bytes]:
        """User sectors none of which is in the cache, in pieces as the drive gives them.

        They are in the cache afterwards where that is wished for, or one fails. Raises as ``load``.
        """
        retries = self._retries or group.stale
        if self._drive.is_watchful and not retries:
            return [self.load(group, first, stop).rows[first:stop].tobytes()]
        cached = self._cache.of(group) if keep else None
        parts: list[bytes] = []
        for start in range(first, stop, self._drive.read_sectors):
            end = min(start + self._drive.read_sectors, stop)
            part = self._drive.read(group.start + start, end - start, retry=retries)
            if part is None:
                cached = self._cache.of(group)
                if parts:
                    cached.rows[first:start] = np.frombuffer(b"".join(parts), np.uint8).reshape(-1, SECTOR_BYTES)
                    cached.present[first:start] = True
                self._load(group, cached, start, end, fails=True)
                return [self.load(group, first, stop).rows[first:stop].tobytes()]
            parts.append(part)
            if cached is not None:
                cached.rows[start:end] = np.frombuffer(part, np.uint8).reshape(-1, SECTOR_BYTES)
                cached.present[start:end] = True
        if cached is not None:
            self._cache.charge(group)
        return parts

    def redundancy(self, group: Group, cached: CachedGroup, *, retry: bool = False, spare: int = 0) -> list[int]:
        """Read the redundancy of the first ``base`` user sectors into memory; those of its sectors that fail.

        Up to ``spare`` of them need not have been looked at one by one.
        """
        failed = self._drive.read_into(
            cached.redundancy, group.start + cached.base, retry=retry or self._retries, spare=spare
        )
        cached.redundancy_known = not failed
        return failed

    def as_was(self, group: Group, first: int, stop: int) -> Bytes | None:
        """User sectors as the drive has them, whatever the cache says; None where one cannot be read."""
        rows = np.empty((stop - first, SECTOR_BYTES), np.uint8)
        failed = self._drive.read_into(rows, group.start + first, retry=self._retries)
        for row in failed:
            if not self._retry_into(rows[row : row + 1], group.start + first + row):
                return None
        return rows

    def _fetch(
        self, group: Group, cached: CachedGroup, first: int, stop: int, *, retry: bool, spare: int, fails: bool = False
    ) -> list[int]:
        rows = self._drive.read_into(
            cached.rows[first:stop], group.start + first, retry=retry, fails=fails, spare=spare
        )
        failed = [first + row for row in rows]
        cached.present[first:stop] = True
        cached.present[failed] = False
        return failed

    def _recover(self, group: Group, cached: CachedGroup, wanted: list[int], *, retried: bool) -> None:
        """Have user sectors that failed, or raise GroupUnrecoverable."""
        erased, left = self._decode(group, cached, wanted, retried=retried)
        if left:
            usable = self._code.m if cached.is_redundant else 0
            sectors = [group.start + row for row in sorted(erased)]
            raise GroupUnrecoverable(group.file.name, group.index, sectors, sorted(erased), usable)

    def _decode(
        self, group: Group, cached: CachedGroup, wanted: list[int], *, retried: bool
    ) -> tuple[set[int], list[int]]:
        """Decode ``wanted``, with retries as far as it takes them: what stays erased, and what of it is wanted."""
        base, m = cached.base, self._code.m
        tried = set(wanted) if retried else set()
        if not cached.is_redundant:
            left = [row for row in wanted if row in tried or not self._retry_row(group, cached, row)]
            return set(left), left
        # Sectors behind those that the redundancy stands for can only be read.
        beyond = [row for row in wanted if row >= base and (row in tried or not self._retry_row(group, cached, row))]
        inside = [row for row in wanted if row < base]
        failed = set(inside)
        # The head is behind what failed: what lies there, redundancy and all, comes by before the rest does.
        unread = list(runs(~cached.present[:base] & ~_among(base, failed)))
        behind = [run for run in unread if run[0] > max(inside, default=-1)]
        for start, stop in behind:
            failed |= set(self._fetch(group, cached, start, stop, retry=self._retries, spare=m - len(failed)))
        unknown = self._old_of_changed(group, cached)
        spare = m - len(failed | unknown)
        gone = set() if cached.redundancy_known else set(self.redundancy(group, cached, spare=spare))
        for start, stop in unread[: len(unread) - len(behind)]:
            spare = m - len(failed) - len(gone)
            failed |= set(self._fetch(group, cached, start, stop, retry=self._retries, spare=spare))
        if self._drive.is_watchful and not self._retries:
            surplus = len(failed | unknown) + len(gone) - m
            # Redundancy that was given up with a part was read while it seemed that less would fail.
            first = group.start + base
            found = self._read_alone(cached.redundancy, first, sorted(gone), surplus)
            gone -= found
            found = self._read_alone(cached.rows, group.start, sorted(failed - tried), surplus - len(found))
            cached.present[list(found)] = True
            failed -= found
        asked_for = [row for row in inside if row in failed]
        for row in [*asked_for, *sorted(failed - set(asked_for))]:
            if len(failed | unknown) + len(gone) <= m:
                break
            if row not in tried and self._retry_row(group, cached, row):
                failed.discard(row)
        for row in sorted(gone):
            if len(failed | unknown) + len(gone) <= m:
                break
            if self._retry_into(cached.redundancy[row : row + 1], group.start + base + row):
                gone.discard(row)
        erased = sorted(failed | unknown)
        left = [row for row in inside if row in failed]
        if len(erased) + len(gone) > m:
            return {*failed, *beyond, *(base + row for row in gone)}, left + beyond
        if failed:
            # Who reads on wants the others that failed next, and would wait for the platter again.
            self._compute(cached, [*erased, *(base + row for row in sorted(gone))], sorted(failed))
        return set(beyond), beyond

    def _read_alone(self, rows: Bytes, first: int, failed: list[int], wanted: int) -> set[int]:
        """As many as are ``wanted`` of rows that failed, each read by itself: some only shared a request with one."""
        read: set[int] = set()
        for row in failed:
            if len(read) >= wanted:
                break
            if not self._drive.read_into(rows[row : row + 1], first + row, retry=False):
                read.add(row)
        return read

    def _compute(self, cached: CachedGroup, erased: list[int], wanted: list[int]) -> None:
        base = cached.base
        if cached.changed[:base].any():
            out = np.empty((len(wanted), SECTOR_BYTES), np.uint8)
            was = [cached.old.get(row, cached.rows[row]) for row in range(base)]
            self._code.decode([*was, *cached.redundancy], erased, out, wanted=wanted)
            cached.rows[wanted] = out
        else:
            kept = cached.rows[base : base + self._code.m].copy() if cached.present[base:].any() else None
            cached.rows[base : base + self._code.m] = cached.redundancy
            self._code.decode(cached.rows[: base + self._code.m], erased, wanted=wanted)
            if kept is not None:
                cached.rows[base : base + self._code.m] = kept
        cached.present[wanted] = True
        self._statistics.decodes += 1
        self._statistics.decoded_sectors += len(wanted)

    def _old_of_changed(self, group: Group, cached: CachedGroup) -> set[int]:
        """Changed sectors whose old content, which the redundancy stands for, cannot be had."""
        unknown: set[int] = set()
        for row in np.flatnonzero(cached.changed[: cached.base]).tolist():
            if row in cached.old:
                continue
            was = None if cached.lost[row] else self.as_was(group, row, row + 1)
            if was is None:
                unknown.add(row)
            else:
                cached.old[row] = was[0]
        return unknown

    def _retry_row(self, group: Group, cached: CachedGroup, row: int) -> bool:
        read = self._retry_into(cached.rows[row : row + 1], group.start + row)
        cached.present[row] = read
        return read

    def _retry_into(self, rows: Bytes, sector: int) -> bool:
        self._statistics.retried_sectors += 1
        return not self._drive.read_into(rows, sector, retry=True)


def _among(count: int, rows: Iterable[int]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    mask = np.zeros(count, np.bool_)
    mask[list(rows)] = True
    return mask
