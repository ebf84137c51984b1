"""Write-back from the cache: data and redundancy together, or data first and redundancy in the background."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from rackloop_models.erasure import Bytes, UnrecoverableError
from rackloop_models.local_erasure._cache import Cache, new_rows, runs
from rackloop_models.local_erasure._cached_group import CachedGroup
from rackloop_models.local_erasure._drive import Drive
from rackloop_models.local_erasure._errors import NoRoom
from rackloop_models.local_erasure._file import Group
from rackloop_models.local_erasure._redundancy import Redundancy, UpdateMethod
from rackloop_models.local_erasure._unprotected import UnprotectedRecord

# Groups that are recorded, with one flush, before all of them change.
_BATCH = 64
# A flush waits until the drive has written all that it has in its cache, and the arm comes back from the record. So
# where groups that follow each other in a file change, one flush is to do for those that come behind them.
_RUN = 8
_RECORDED_AHEAD = 256


class WriteBack:
    """Writes groups. Those that the metadata on the drive know are recorded as unprotected, there, before they change.

    ``stale`` are the groups whose redundancy is not that of their data, the longest unprotected first.
    ``is_in_doubt`` says that a commit failed: the drive may know its groups as they were, or as they were to be.
    ``require_mine`` raises where the store belongs to another by now; ``generation`` numbers what is written.
    """

    def __init__(
        self,
        drive: Drive,
        cache: Cache,
        redundancy: Redundancy,
        record: UnprotectedRecord,
        *,
        generation: Callable[[], int],
        require_mine: Callable[[], None],
    ) -> None:
        self.stale: dict[Group, None] = {}
        self.is_in_doubt = False
        self._drive = drive
        self._cache = cache
        self._redundancy = redundancy
        self._record = record
        self._generation = generation
        self._require_mine = require_mine
        self._scratch = new_rows(redundancy.m)
        self._written: dict[Group, None] = {}
        self._recorded_ahead: dict[Group, None] = {}
        self._overwritten: dict[Group, None] = {}

    def mark_stale(self, group: Group) -> None:
        """The redundancy of a group is not, or will not be, that of its data."""
        group.stale = True
        self.stale[group] = None
        self._written.pop(group, None)

    def mark_protected(self, group: Group) -> None:
        """There is nothing of a group on the drive that its redundancy could differ from."""
        group.stale = False
        self.stale.pop(group, None)

    def forget(self, group: Group) -> None:
        """A group is gone."""
        self._cache.drop(group)
        self.mark_protected(group)
        for groups in (self._written, self._recorded_ahead, self._overwritten):
            groups.pop(group, None)

    def overwritten(self, group: Group) -> None:
        """All of a group is new: it need not wait until there is no room in the cache, where writes need not either."""
        if self._drive.writes_behind:
            self._overwritten[group] = None
            if len(self._overwritten) >= _RUN:
                groups = list(self._overwritten)
                self._overwritten.clear()
                self.write_out(groups)

    def put_down(self, groups: Iterable[Group]) -> None:
        """Write what is new in groups, as phase one of a synchronous write: their redundancy is out of date then."""
        chosen = [(group, group.cached) for group in groups if group.cached is not None and group.cached.dirty.any()]
        if self._redundancy.method is UpdateMethod.INDIRECT:
            for group, cached in chosen:
                self._redundancy.learn_old(group, cached)
        for batch in _batches(chosen):
            self._record_before([group for group, _ in batch])
            for group, cached in batch:
                self._put_down(group, cached)

    def write_synchronously(self, groups: Iterable[Group]) -> None:
        """Phase one: write what is new in groups, and the redundancy of those alone that only grew: it lies behind."""
        behind = [group for group in groups if group.cached and self._redundancy.lies_behind(group, group.cached)]
        self.write_out(behind, reading=False)
        self.put_down(groups)

    def write_out(self, groups: Iterable[Group], *, reading: bool = True) -> None:
        """Write what is new in groups and their redundancy; without ``reading``, no redundancy that takes reads."""
        whole: list[tuple[Group, CachedGroup]] = []
        data: list[Group] = []
        with self._unless_it_fails(whole):
            for group in groups:
                cached = group.cached
                if cached is None or not (cached.dirty.any() or (reading and group.stale)):
                    continue
                # Where the group was longer, as far as the drive knows, its user sectors lie where redundancy is to be.
                allowed = group.stored >= group.committed and not (
                    not reading and self._redundancy.reads_needed(group, cached)
                )
                if allowed and self._refreshed(group, cached):
                    whole.append((group, cached))
                else:
                    data.append(group)
            for batch in _batches(whole):
                self._record_before([group for group, _ in batch])
                for group, cached in batch:
                    self._write_whole(group, cached)
        self.put_down(data)

    def write_new(self, group: Group, rows: Bytes) -> None:
        """Write a whole group that is not on the drive yet past the cache, straight from where its user sectors are."""
        self._redundancy.encode(rows, self._scratch)
        self._drive.write(group.start, rows)
        self._drive.write(group.start + len(rows), self._scratch)
        self._written[group] = None
        self._drive.statistics.redundancy_writes += 1

    def protect(self, at_most: int | None = None) -> int:
        """Bring the redundancy of so many groups up to date; how many that can be are left."""
        ready = [group for group in self.stale if not group.damaged and group.stored >= group.committed]
        for group in ready[:at_most]:
            cached = self._cache.of(group)
            if self._refreshed(group, cached):
                with self._unless_it_fails([(group, cached)]):
                    self._record_before([group])
                    self._write_whole(group, cached)
            self.let_go()
        return sum(not group.damaged for group in self.stale)

    def let_go(self, *, besides: Group | None = None) -> bool:
        """Let go of groups while there are too many in the cache; False where some must be committed first."""
        chosen = self._cache.over(besides=besides)
        if not chosen:
            return True
        self.write_out(chosen)
        enough = True
        for group in chosen:
            cached = group.cached
            if cached is None:
                continue
            if group.stale and not group.damaged and group.stored < group.committed:
                enough = False
                continue
            self._cache.drop(group)
        return enough

    def record_stale(self) -> None:
        """Have all unprotected groups in the record, before metadata say that they are there. The caller flushes."""
        self._record_before(list(self.stale), fresh=True, flushes=False)

    def flush(self) -> None:
        """Flush the drive. Groups whose redundancy was written need not be recorded any more.

        But as long as the metadata say that they are shorter, their redundancy lies elsewhere, or did, for a crash.
        """
        self._drive.flush()
        self._record.flushed()
        done = [group for group in self._written if group.stored == group.committed and not self.is_in_doubt]
        for group in done:
            del self._written[group]
        self._record.release(group.start for group in done)

    def release(self, starts: Iterable[int]) -> None:
        """No groups begin there any more."""
        current = {group.start for group in self.stale}
        self._record.release(set(starts) - current)

    def next_generation(self) -> int:
        """A number for metadata that are written, higher than any before."""
        return self._generation()

    def settle(self) -> None:
        """Write and flush that groups which are protected are not unprotected."""
        unchanged = [group for group in self._recorded_ahead if group not in self.stale and group not in self._written]
        self._record.release(group.start for group in unchanged)
        self._recorded_ahead.clear()
        if self._record.settle(self._generation()):
            self._drive.flush()
            self._record.flushed()

    def _refreshed(self, group: Group, cached: CachedGroup) -> bool:
        try:
            self._redundancy.refresh(group, cached)
        except UnrecoverableError:
            group.damaged = True
            self.mark_stale(group)
            return False
        group.damaged = False
        return True

    def _record_before(self, groups: Collection[Group], *, fresh: bool = False, flushes: bool = True) -> None:
        """Record groups that are on the drive before they change; ``fresh`` ones too, before they are on the drive."""
        for group in groups:
            # Whatever was written of it before, it is about to be unprotected again.
            self._written.pop(group, None)
        missing = self._record.missing(group.start for group in groups if fresh or group.committed)
        if not missing:
            return
        self._require_mine()
        self._make_room_to_record(len(missing))
        missing = self._record.missing(group.start for group in groups if fresh or group.committed)
        ahead = self._coming(groups)[: max(0, self._record.most - self._record.used - len(missing))]
        self._recorded_ahead |= dict.fromkeys(ahead)
        self._record.require([*missing, *(group.start for group in ahead)], self._generation())
        if flushes:
            self.flush()

    def _coming(self, groups: Collection[Group]) -> list[Group]:
        """The groups of a file that are likely to change next, when these do: they are not recorded yet."""
        last = list(groups)[-_RUN:]
        file, index = last[-1].file, last[-1].index
        if len(last) < _RUN or any(group.file is not file for group in last):
            return []
        if [group.index for group in last] != list(range(index - _RUN + 1, index + 1)):
            return []
        behind = (file.groups.get(at) for at in range(index + 1, index + 1 + _RECORDED_AHEAD))
        coming = {group.start: group for group in behind if group is not None and group.committed}
        return [coming[start] for start in self._record.missing(coming)]

    def _make_room_to_record(self, count: int) -> None:
        """Have groups protected until so many more can be recorded."""
        if self._record.used + count > self._record.most:
            self.flush()  # those that were written since need not be recorded
        if self._record.used + count > self._record.most:
            for group in [group for group in self.stale if not group.damaged and group.stored >= group.committed]:
                cached = self._cache.of(group)
                if self._refreshed(group, cached):
                    with self._unless_it_fails([(group, cached)]):
                        self._write_whole(group, cached)
            self.flush()
        if self._record.used + count > self._record.most:
            raise NoRoom(
                f"{self._record.used} groups are damaged or unprotected, and the store can keep count of "
                f"{self._record.most}; scrub it"
            )

    @contextmanager
    def _unless_it_fails(self, refreshed: Sequence[tuple[Group, CachedGroup]]) -> Iterator[None]:
        """Write groups whose redundancy was brought up to date in memory.

        Where that fails, the drive has not what that redundancy stands for, nor memory what it stood for before.
        """
        try:
            yield
        except BaseException:
            for _, cached in refreshed:
                if cached.dirty.any():
                    cached.forget_redundancy()
            raise

    def _put_down(self, group: Group, cached: CachedGroup) -> None:
        self.mark_stale(group)
        m = len(cached.redundancy)
        # Also where a write fails: nobody knows then which of them the drive has.
        known = np.zeros_like(cached.dirty)
        known[list(cached.old)] = True
        known[cached.base :] = True
        cached.lost |= cached.dirty & cached.changed & ~known
        for first, stop in runs(cached.dirty):
            if first < cached.base + m and stop > cached.base:
                cached.redundancy_on_drive = False
            self._drive.write(group.start + first, cached.rows[first:stop])
        cached.dirty[:] = False
        group.damaged = False

    def _write_whole(self, group: Group, cached: CachedGroup) -> None:
        """Write what is new and the redundancy, in one request where they follow each other."""
        self.mark_stale(group)
        stored, m = group.stored, len(cached.redundancy)
        dirty = list(runs(cached.dirty[:stored]))
        last = dirty.pop() if dirty and dirty[-1][1] == stored else (stored, stored)
        for first, stop in dirty:
            self._drive.write(group.start + first, cached.rows[first:stop])
        cached.rows[stored : stored + m] = cached.redundancy
        self._drive.write(group.start + last[0], cached.rows[last[0] : stored + m])
        cached.dirty[:] = False
        cached.redundancy_on_drive = True
        self.mark_protected(group)
        self._written[group] = None
        self._drive.statistics.redundancy_writes += 1


def _batches(chosen: Sequence[tuple[Group, CachedGroup]]) -> Iterator[Sequence[tuple[Group, CachedGroup]]]:
    for first in range(0, len(chosen), _BATCH):
        yield chosen[first : first + _BATCH]
