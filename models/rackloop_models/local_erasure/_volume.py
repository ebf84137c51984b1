"""An open store beneath its files: all parts together, and what makes memory and drive agree."""

from __future__ import annotations

from rackloop_models.erasure import Code
from rackloop_models.local_erasure._cache import Cache
from rackloop_models.local_erasure._drive import Drive
from rackloop_models.local_erasure._errors import StoreInUse
from rackloop_models.local_erasure._file import File, Group
from rackloop_models.local_erasure._file_table import FileTable
from rackloop_models.local_erasure._group_reads import GroupReads, ReadMode
from rackloop_models.local_erasure._journal import Journal
from rackloop_models.local_erasure._redundancy import Redundancy, UpdateMethod
from rackloop_models.local_erasure._space_allocator import SpaceAllocator
from rackloop_models.local_erasure._superblock import Superblock
from rackloop_models.local_erasure._unprotected import UnprotectedRecord
from rackloop_models.local_erasure._write_back import WriteBack

# Leaves each opening of a store room for as many generations and files.
_PER_OPENING = 32


class Volume:
    """The parts of an open store, for one thread at a time.

    The order in which the drive hears of things is what makes a power cut harmless: that a group is unprotected before
    it changes; data before the metadata that describe them; that sectors are free before anything else is put there.
    """

    def __init__(
        self, drive: Drive, superblock: Superblock, *, cache_bytes: int, read_mode: ReadMode, update: UpdateMethod
    ) -> None:
        geometry, store_id = superblock.geometry, superblock.store_id
        layout = geometry.layout
        self.drive = drive
        self.superblock = superblock
        self.layout = layout
        self.code = Code(layout.k, layout.m, layout.field)
        self.cache = Cache(layout, cache_bytes)
        self.reads = GroupReads(drive, self.code, self.cache, read_mode)
        self.redundancy = Redundancy(drive, self.code, self.reads, update)
        self.record = UnprotectedRecord(drive, geometry, store_id)
        self.write_back = WriteBack(
            drive,
            self.cache,
            self.redundancy,
            self.record,
            generation=self._generation,
            require_mine=self._require_mine,
        )
        self.allocator = SpaceAllocator(layout, geometry.data_at, geometry.sectors)
        self.journal = Journal(drive, geometry, store_id)
        self.table = FileTable(self.journal, self.allocator, layout.m)
        self._last_generation = superblock.generation << _PER_OPENING
        self._fenced: StoreInUse | None = None
        # A release failed: the drive may say that the store is closed.
        self._may_be_released = False

    def recover(self) -> None:
        """Finish the last transaction, and learn what is on the drive and what of it is unprotected."""
        self.journal.recover()
        self.table.load(self.superblock.generation << _PER_OPENING)
        recorded = self.record.load()
        by_start = {group.start: group for file in self.table for group in file.groups.values()}
        for start in sorted(recorded & by_start.keys()):
            self.write_back.mark_stale(by_start[start])
        self.record.release(recorded - by_start.keys())
        self.drive.statistics.recovered_groups = len(self.write_back.stale)

    def begin(self, *, besides: Group | None = None) -> None:
        """Make ready for an operation, or a part of one, that changes something; ``besides`` stays in the cache.

        Raises StoreInUse where the store was taken over.
        """
        if self._fenced:
            raise self._fenced
        if self.table.is_full:
            self.commit()
        self.let_go(besides=besides)

    def let_go(self, *, besides: Group | None = None) -> None:
        """Have no more in the cache than there may be."""
        if not self.write_back.let_go(besides=besides):
            self.commit()
            self.write_back.let_go(besides=besides)

    def commit(self, *, reading: bool = True) -> None:
        """All data and metadata are on the drive; without ``reading``, redundancy only where that took no reading.

        Groups whose redundancy is not are recorded there. To read before data are overwritten is safer: after that, as
        many sectors fewer may be unreadable as were changed.
        """
        if self._fenced:
            raise self._fenced
        self.write_back.write_out(self.cache, reading=reading)
        self.write_back.record_stale()
        self.write_back.flush()
        if self.table.has_changed:
            self._require_mine()
            self.write_back.is_in_doubt = True
            self.table.commit(self._generation())
            self.write_back.is_in_doubt = False
            self.drive.statistics.commits += 1
        self.write_back.release(self.allocator.release_freed())

    def free_by_commit(self) -> bool:
        """Commit if that may free pages or sectors; False where it would not."""
        if not (self.allocator.awaits_commit or self.table.awaits_commit):
            return False
        self.commit()
        return True

    def flush(self) -> None:
        """All data, metadata and redundancy are on the drive, but redundancy of groups that cannot be read."""
        self.commit()
        left = -1
        while left and left != (left := self.write_back.protect()):
            self.commit()  # what became shorter is protected after the drive knows that it did
        self.write_back.flush()
        self.write_back.settle()
        self.allocator.trim()

    def write_synchronously(self, file: File, groups: list[Group]) -> None:
        """Have what is new in groups of a file on the drive, and whatever it takes to find it there."""
        self.write_back.write_synchronously(groups)
        found = file.size_bytes == file.committed_bytes and all(group.stored == group.committed for group in groups)
        if found and not self.write_back.is_in_doubt:
            self.write_back.flush()
        else:
            self.commit(reading=False)

    def protect(self, at_most: int | None = None) -> int:
        """Bring so many unprotected groups up to date; how many are left that can be."""
        if any(group.stored < group.committed for group in self.write_back.stale):
            self.commit()
        is_needed = bool(self.write_back.stale)
        left = self.write_back.protect(at_most)
        # Who is asked without need, as a drive that is busy is now and then, has it wait for no flush.
        if is_needed and not left:
            self.write_back.flush()
            self.write_back.settle()
        return left

    def bring_up_to_date(self, group: Group) -> None:
        """Have a group on the drive with its redundancy, if its sectors can be read."""
        if group.stored < group.committed:
            self.commit()
        self.cache.of(group)
        self.write_back.write_out([group])
        self.let_go()

    def check_superblock(self) -> None:
        """Repair its replicas. Raises StoreInUse where it is another's."""
        self._require_mine()
        Superblock.read(self.drive)

    def close(self) -> None:
        """Flush, and release the store."""
        self.flush()
        self._require_mine()
        self._may_be_released = True
        self.superblock.released(self.drive)

    def give_up(self, group: Group) -> None:
        """A group of a file is gone."""
        self.write_back.forget(group)
        self.allocator.give_up(group)

    def remove(self, file: File) -> None:
        """Give up all groups of a file that was taken out of the table."""
        for group in file.groups.values():
            self.give_up(group)
        file.groups.clear()

    def _generation(self) -> int:
        self._last_generation += 1
        return self._last_generation

    def _require_mine(self) -> None:
        if self._fenced:
            raise self._fenced
        try:
            if self._may_be_released:
                self.superblock = self.superblock.taken_back(self.drive)
                self._may_be_released = False
            self.superblock.require_mine(self.drive)
        except StoreInUse as taken:
            self._fenced = taken
            self.drive.end()
            raise
