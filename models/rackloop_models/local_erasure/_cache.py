"""Groups in memory: user sectors, what became of them, and redundancy that is kept while a group is filled."""

from __future__ import annotations

import mmap
from collections import OrderedDict
from collections.abc import Iterator

import numpy as np

from rackloop_models.erasure import Bytes
from rackloop_models.local_erasure._cached_group import LEAST_CHARGE, CachedGroup, Mask
from rackloop_models.local_erasure._file import Group
from rackloop_models.local_erasure._layout import SECTOR_BYTES, Layout


def runs(mask: Mask) -> Iterator[tuple[int, int]]:
    """The runs in which a mask is true, as (first, end)."""
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
        """The cached part of a group; empty at first."""
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
            now = max(LEAST_CHARGE, int(np.count_nonzero(cached.present)) + self._layout.m + len(cached.old))
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
