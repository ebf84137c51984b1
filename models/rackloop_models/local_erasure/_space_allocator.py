"""The allocator of sectors for groups, which small groups do not fragment and growing ones extend in place."""

from __future__ import annotations

from rackloop_models.local_erasure._allocation import FreeSpace
from rackloop_models.local_erasure._file import File, Group
from rackloop_models.local_erasure._layout import Layout

# A group is given twice the room that it needs now, but not less than for this many user sectors.
_LEAST_RESERVED = 16


class SpaceAllocator:
    """Gives sectors to groups, each ``stored + m`` that follow each other, and some behind to grow into.

    What groups had that the metadata on the drive still know is not given to others before ``release_freed``.
    """

    def __init__(self, layout: Layout, first: int, stop: int) -> None:
        self._layout = layout
        self._space = FreeSpace(first, stop)
        self._freed: list[tuple[int, int]] = []
        self._loose: dict[Group, None] = {}

    @property
    def free_sectors(self) -> int:
        """Sectors that are free, will be after the next commit, or are reserved and not needed."""
        reserved = sum(group.room - self._used(group) for group in self._loose)
        return self._space.free + sum(count for _, count in self._freed) + reserved

    def claim(self, start: int, count: int) -> bool:
        """Sectors of a group that is on the drive; False where they are another's, or not on the drive."""
        return self._space.take_at(start, count)

    def reserve(self, file: File, index: int, rows: int) -> Group | None:
        """A new group with room for ``rows`` user sectors and redundancy, or None."""
        m = self._layout.m
        for wanted in (self._generous(rows), rows):
            start = self._space.take(wanted + m)
            if start is not None:
                group = Group(file, index, start, wanted + m, needed=rows)
                self._loose[group] = None
                return group
        return None

    def extend(self, group: Group, rows: int) -> bool:
        """Room behind a group for ``rows`` user sectors altogether."""
        for wanted in (self._generous(rows), rows):
            more = wanted + self._layout.m - group.room
            if more <= 0 or self._space.take_at(group.start + group.room, more):
                group.room += max(0, more)
                self._loose[group] = None
                return True
        return False

    def give_up(self, group: Group) -> None:
        """A group is gone, or lies elsewhere now."""
        self._loose.pop(group, None)
        self.free(group.start, group.room, committed=group.committed > 0)

    def adopt(self, group: Group, place: Group) -> None:
        """A group lies where ``place``, which is no group any more, was to lie."""
        self._loose.pop(place)
        group.start, group.room, group.committed = place.start, place.room, 0
        self._loose[group] = None

    def free(self, start: int, room: int, *, committed: bool) -> None:
        """Sectors are not a group's any more."""
        if committed:
            self._freed.append((start, room))
        else:
            self._space.give(start, room)

    def trim(self) -> None:
        """Take back what groups have reserved and do not need. There must be nothing that awaits a commit."""
        for group in self._loose:
            kept = self._used(group)
            self._space.give(group.start + kept, group.room - kept)
            group.room = kept
        self._loose.clear()

    def release_freed(self) -> list[int]:
        """The metadata on the drive do not know groups any more that were freed: where these began."""
        freed, self._freed = self._freed, []
        for start, room in freed:
            self._space.give(start, room)
        return [start for start, _ in freed]

    def loosen(self, group: Group) -> None:
        """A group needs less than it has."""
        self._loose[group] = None

    @property
    def awaits_commit(self) -> bool:
        """Whether a commit would free sectors."""
        return bool(self._freed) or any(group.committed > group.stored for group in self._loose)

    def _used(self, group: Group) -> int:
        return max(group.stored, group.needed) + self._layout.m

    def _generous(self, rows: int) -> int:
        return min(self._layout.k, max(2 * rows, _LEAST_RESERVED))
