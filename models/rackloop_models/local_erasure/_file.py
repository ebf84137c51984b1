"""Files and their groups as they are in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rackloop_models.local_erasure._pages import FirstPage, FurtherPage, groups_of, page_of

if TYPE_CHECKING:
    from rackloop_models.local_erasure._cached_group import CachedGroup


@dataclass(eq=False, slots=True)
class Group:
    """A group of a file: ``stored`` user sectors from ``start`` on, and redundancy behind them, in ``room`` sectors.

    ``committed`` is how many user sectors the metadata on the drive say there are at this place, 0 while they do not
    know it. ``stale`` groups have redundancy on the drive that is not that of their data. ``needed`` is what a write
    that is under way has room reserved for. ``damaged`` ones could not be protected: sectors cannot be read.
    """

    file: File
    index: int
    start: int
    room: int
    stored: int = 0
    committed: int = 0
    needed: int = 0
    stale: bool = False
    damaged: bool = False
    cached: CachedGroup | None = None


@dataclass(eq=False)
class File:
    """A file. ``groups`` has those that are not all hole; ``pages`` where on the drive its pages are, by their number.

    ``committed_bytes`` is the size that the drive knows, -1 where it does not know the file.
    ``changed`` are the numbers of pages that say something else than the drive; ``all_changed`` are the files that have
    such pages.
    """

    uid: int
    name: str
    all_changed: dict[File, None]
    size_bytes: int = 0
    modified_ns: int = 0
    groups: dict[int, Group] = field(default_factory=dict)
    pages: dict[int, int] = field(default_factory=dict)
    changed: set[int] = field(default_factory=set)
    committed_bytes: int = -1
    removed: bool = False

    @property
    def group_count(self) -> int:
        """Groups up to the last that has sectors."""
        return max((index for index, group in self.groups.items() if group.stored), default=-1) + 1

    def describe(self, page: int) -> FirstPage | FurtherPage:
        """The content for a page of the file."""
        numbers = groups_of(page)
        groups = {
            index: (group.start, group.stored)
            for index in numbers
            if (group := self.groups.get(index)) and group.stored
        }
        if page == 0:
            return FirstPage(self.uid, self.name, self.size_bytes, self.modified_ns, self.group_count, groups)
        return FurtherPage(self.uid, page, groups)

    def change(self, group: Group | None = None) -> None:
        """Name, size or time are others, or a group lies elsewhere, or has another number of sectors."""
        self.changed |= {0} if group is None else {0, page_of(group.index)}
        self.all_changed[self] = None
