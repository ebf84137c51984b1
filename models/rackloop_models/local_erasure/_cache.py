"""Groups in memory: user sectors, what became of them, and redundancy that is kept while a group is filled."""

from __future__ import annotations

import mmap
from collections import OrderedDict
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from rackloop_models.erasure._field import Bytes
from rackloop_models.local_erasure._file import Group
from rackloop_models.local_erasure._layout import SECTOR_BYTES, Layout

Mask = NDArray[np.bool_]

# A group costs this much at least, so that there are not too many mappings of memory.
_LEAST_CHARGE = 16


class CachedGroup:
    """What memory holds of a group. Arrays of ``rows`` are page-aligned, as the codec likes them.

    ``present``: rows that hold the user sector as it is. ``dirty``: those that the drive does not have yet.
    ``redundancy`` is that of the first ``base`` user sectors as they were before those that are ``changed`` did
    change; ``redundancy_known`` says that it is in memory, ``redundancy_on_drive`` that it is behind sector ``base`` on
    the drive. ``old`` has changed sectors as they were; ``lost`` are those whose old content is nowhere any more.
    """

    def __init__(self, layout: Layout, rows: Bytes) -> None:
        self.rows = rows
        self.present: Mask = np.zeros(layout.k, np.bool_)
        self.dirty: Mask = np.zeros(layout.k, np.bool_)
        self.changed: Mask = np.zeros(layout.k, np.bool_)
        self.lost: Mask = np.zeros(layout.k, np.bool_)
        self.old: dict[int, Bytes] = {}
        self.base = 0
        self.redundancy: Bytes = np.zeros((layout.m, SECTOR_BYTES), np.uint8)
        self.redundancy_known = False
        self.redundancy_on_drive = False
        self.charge = _LEAST_CHARGE

    @property
    def is_redundant(self) -> bool:
        """Whether there is redundancy that stands for anything, in memory or on the drive."""
        return self.redundancy_known or self.redundancy_on_drive

    def forget_redundancy(self) -> None:
        """No redundancy stands for anything any more: it has to be computed from all sectors."""
        self.base = 0
        self.redundancy_known = self.redundancy_on_drive = False
        self.settle_changes()

    def settle_changes(self) -> None:
        """The redundancy is that of the sectors as they are."""
        self.changed[:] = False
        self.lost[:] = False
        self.old.clear()


def runs(mask: Mask) -> Iterator[tuple[int, int]]:
    """Where a mask is true, as (first, end) of each run."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    yield from zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)


class Cache:
    """Cached groups, the least recently used first. ``over`` are those to be let go, when there are too many."""

    def __init__(self, layout: Layout, cache_bytes: int) -> None:
        self._layout = layout
        self._most = cache_bytes // SECTOR_BYTES
        self._groups: OrderedDict[Group, None] = OrderedDict()
        self._spare: list[Bytes] = []
        self._charged = 0

    def __iter__(self) -> Iterator[Group]:
        return iter(list(self._groups))

    def of(self, group: Group) -> CachedGroup:
        """What memory holds of a group; nothing, at first."""
        cached = group.cached
        if cached is None:
            cached = group.cached = CachedGroup(
                self._layout, self._spare.pop() if self._spare else new_rows(self._layout.group_sectors)
            )
            cached.base = 0 if group.stale else group.stored
            cached.redundancy_on_drive = not group.stale and group.stored > 0
            self._groups[group] = None
            self._charged += cached.charge
        self._groups.move_to_end(group)
        return cached

    def charge(self, group: Group) -> None:
        """Count the memory of a group anew, after something was put there."""
        cached = group.cached
        if cached is not None:
            now = max(_LEAST_CHARGE, int(np.count_nonzero(cached.present)) + self._layout.m + len(cached.old))
            self._charged += now - cached.charge
            cached.charge = now

    def over(self, *, besides: Group | None = None) -> list[Group]:
        """The groups to be let go so that the others are few enough, and as many again so that this is done seldom."""
        if self._charged <= self._most:
            return []
        left = self._charged - self._most * 3 // 4
        chosen: list[Group] = []
        for group in self._groups:
            if left <= 0:
                break
            if group is not besides and group.cached is not None:
                chosen.append(group)
                left -= group.cached.charge
        return chosen

    def drop(self, group: Group) -> None:
        """Let go of a group. What the drive does not have is lost."""
        cached, group.cached = group.cached, None
        if cached is not None:
            del self._groups[group]
            self._charged -= cached.charge
            # Memory that was all used is had again without asking the kernel for every page of it.
            spare = (1 + len(self._spare)) * self._layout.group_sectors
            if cached.charge > self._layout.k // 2 and spare + self._charged <= self._most:
                self._spare.append(cached.rows)


def new_rows(sectors: int) -> Bytes:
    """Memory for so many sectors that begins at a page, all zeros."""
    return np.frombuffer(mmap.mmap(-1, sectors * SECTOR_BYTES), np.uint8).reshape(-1, SECTOR_BYTES)
