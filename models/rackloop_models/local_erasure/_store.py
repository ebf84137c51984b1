"""The store: files on one drive, each protected by groups of its own."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock
from types import TracebackType
from typing import Self, TypeVar

from rackloop.abilities.blocks import Blocks, FailFastBlocks
from rackloop.clock import Clock
from rackloop.errors import BadInput
from rackloop_models.local_erasure._contents import Contents
from rackloop_models.local_erasure._drive import Drive
from rackloop_models.local_erasure._errors import NoRoom
from rackloop_models.local_erasure._file import File
from rackloop_models.local_erasure._group_reads import ReadMode
from rackloop_models.local_erasure._journal import Journal
from rackloop_models.local_erasure._layout import SECTOR_BYTES, Geometry, Layout
from rackloop_models.local_erasure._owner import Owner
from rackloop_models.local_erasure._pages import pack
from rackloop_models.local_erasure._redundancy import UpdateMethod
from rackloop_models.local_erasure._scrub import Progress, Scrub, ScrubReport
from rackloop_models.local_erasure._statistics import Statistics
from rackloop_models.local_erasure._stored_file import FileStatus, StoredFile, status_of
from rackloop_models.local_erasure._streams import Streams
from rackloop_models.local_erasure._superblock import Superblock, erase_superblock
from rackloop_models.local_erasure._unprotected import UnprotectedRecord
from rackloop_models.local_erasure._volume import Volume

CACHE_BYTES = 64 << 20
IN_FLIGHT_BYTES = 16 << 20
"""Enough for a hard disk: more than it reads in a tenth of a second."""
# A transaction is sure to have room for these.
_MOVES_AT_ONCE = 16

T = TypeVar("T")


def format_drive(blocks: Blocks, layout: Layout, *, files: int = 1024) -> None:
    """Make a drive carry an empty store, with room to describe ``files`` files or more. What was there is lost.

    The superblock is written last: a drive whose formatting was cut short carries no store. Raises BadInput where the
    drive is too small, and says what it takes.
    """
    drive = Drive(blocks, Statistics())
    geometry = Geometry.of(layout, drive.sectors, files)
    store_id = uuid.uuid4().bytes
    erase_superblock(drive)
    Journal(drive, geometry, store_id).format(pack(None))
    UnprotectedRecord(drive, geometry, store_id).format()
    drive.flush()
    Superblock(store_id, 1, geometry).write(drive)


class LocalStore:
    """Files on one drive whose sectors fail softly, with local erasure coding as in the FAST'17 paper on it.

    Opening takes the store: a mark in its superblock says who has it. Redundancy that a crash left out of date is known
    and counted (``unprotected_groups`` of a file), and ``protect`` or ``scrub`` brings it up to date.

    ``cache_bytes`` bounds the cache, beside the groups that one call works on. ``read_mode`` says what the drive does
    with a sector it cannot read; one that is plain Blocks always retries. ``take_over`` takes the store from
    an owner that may be alive: that one fails with StoreInUse before it changes metadata again. An owner on this host
    whose process is gone needs no such word. ``owner`` is a name for messages.

    Raises NoStore, UnknownSuperblock, StoreInUse, ReplicasDisagree, and as the drive does. Threads may share a store.
    """

    def __init__(
        self,
        drive: FailFastBlocks | Blocks,
        clock: Clock,
        *,
        cache_bytes: int = CACHE_BYTES,
        read_mode: ReadMode = ReadMode.FAIL_FAST,
        update: UpdateMethod = UpdateMethod.CHEAPEST,
        take_over: bool = False,
        owner: str = "",
        in_flight_bytes: int = 0,
    ) -> None:
        self._clock = clock
        self.statistics = Statistics()
        self._drive = Drive(
            drive, self.statistics, in_flight_bytes=in_flight_bytes, ahead_retries=read_mode is ReadMode.RETRY
        )
        superblock = Superblock.read(self._drive)
        if superblock.geometry.sectors > self._drive.sectors:
            raise BadInput(
                f"the store was made for {superblock.geometry.sectors} sectors, the drive has {self._drive.sectors}; "
                "is it the right drive?"
            )
        superblock = superblock.taken(self._drive, Owner.here(owner), take_over=take_over)
        self._lock = RLock()
        self._is_open = True
        try:
            self._volume = Volume(self._drive, superblock, cache_bytes=cache_bytes, read_mode=read_mode, update=update)
            self._contents = Contents(self._volume)
            self._streams = Streams(self._volume)
            self._volume.recover()
        except BaseException:
            superblock.released(self._drive)
            raise

    @property
    def layout(self) -> Layout:
        """The layout that the drive was formatted with."""
        return self._volume.layout

    @property
    def covers_silent_corruption(self) -> bool:
        """Whether a read notices that a sector has other bytes than were written to it: it does not, as in the paper.

        A sector is wrong when the drive says so. ``scrub`` compares data with redundancy and finds what is silent.
        """
        return False

    @property
    def update_method(self) -> UpdateMethod:
        """The way to bring redundancy up to date. May be set, as for measurements."""
        return self._volume.redundancy.method

    @update_method.setter
    def update_method(self, method: UpdateMethod) -> None:
        with self._lock:
            self._volume.redundancy.method = method

    def names(self) -> list[str]:
        """The names of all files, in order; of those in folders with ``/`` behind the name of each folder."""
        with self._opened():
            return self._volume.table.names()

    def folders(self) -> list[str]:
        """The names of all folders, in order."""
        with self._opened():
            return self._volume.table.folders()

    def is_folder(self, name: str) -> bool:
        """Whether a folder has that name."""
        with self._opened():
            return self._volume.table.is_folder(name)

    def make_folder(self, name: str) -> None:
        """A new, empty folder, of whose name the last byte is the 254th at most.

        Raises BadInput, FileExists, NoRoom, and NoSuchFile where the folder it is to lie in is not there.
        """
        with self._opened():
            self._volume.begin()
            self._with_pages(lambda: self._volume.table.make_folder(name, self._wall_ns()))

    def remove_folder(self, name: str) -> None:
        """Remove a folder. Raises NoSuchFile, and FolderNotEmpty."""
        with self._opened():
            self._volume.begin()
            self._volume.table.remove_folder(name)

    def create(self, name: str) -> StoredFile:
        """A new, empty file. Names have 1 to 255 bytes of UTF-8, folders and ``/`` and all, and no NUL.

        Raises BadInput, FileExists, NoRoom, and NoSuchFile where the folder it is to lie in is not there.
        """
        with self._opened():
            self._volume.begin()
            return self._held(self._with_pages(lambda: self._volume.table.create(name, self._wall_ns())))

    def open(self, name: str) -> StoredFile:
        """A file. Raises NoSuchFile."""
        with self._opened():
            return self._held(self._volume.table.named(name))

    def remove(self, name: str) -> None:
        """Remove a file; those who have it open get NoSuchFile from now on. Raises NoSuchFile."""
        with self._opened():
            file = self._volume.table.named(name)
            self._volume.begin()
            self._volume.table.remove(file)
            self._volume.remove(file)

    def rename(self, old: str, new: str) -> None:
        """Give a file another name, in place of the file that had it: after a crash it names the one or the other.

        A folder goes with all that is in it, in place of an empty one; where that is more than 15 files and folders, a
        crash may find some of them gone and others not. Raises NoSuchFile, FileExists, FolderNotEmpty and BadInput.
        """
        with self._opened():
            for number, (name, other) in enumerate(self._volume.table.moves(old, new)):
                if number % _MOVES_AT_ONCE == 0:
                    self._volume.begin()
                replaced = self._volume.table.rename(name, other)
                if replaced is not None:
                    self._volume.remove(replaced)

    def stat(self, name: str) -> FileStatus:
        """Size and room of a file. Raises NoSuchFile."""
        with self._opened():
            return status_of(self._volume.table.named(name), self._volume.layout.m)

    def free_bytes(self) -> int:
        """Bytes of free sectors. Redundancy has to fit in them too, and each group has to lie in one piece."""
        with self._opened():
            return self._volume.allocator.free_sectors * SECTOR_BYTES

    def free_files(self) -> int:
        """The number of files and folders that can still be described, if none takes more than one page."""
        with self._opened():
            return self._volume.table.free_pages

    @property
    def most_files(self) -> int:
        """The number of files and folders that can be described altogether, as ``free_files`` counts them."""
        return self._volume.journal.pages.count

    @property
    def data_bytes(self) -> int:
        """Bytes of all sectors that groups can have, free or not."""
        geometry = self._volume.superblock.geometry
        return (geometry.sectors - geometry.data_at) * SECTOR_BYTES

    def sync(self) -> None:
        """Return when data and metadata of all files are on the drive: phase one, as ``StoredFile.sync`` does it.

        Raises StoreInUse.
        """
        with self._opened():
            self._volume.commit(reading=False)

    def flush(self) -> None:
        """Return when all that was written is on the drive: data, metadata and redundancy.

        Groups with sectors that cannot be read stay unprotected, which the drive knows. Raises StoreInUse.
        """
        with self._opened():
            self._volume.flush()

    def protect(self, *, at_most_groups: int | None = None) -> int:
        """Bring the redundancy of unprotected groups up to date, the oldest first; how many are left that can be.

        It is what runs in the background of synchronous writes: call it from a thread when the drive is idle, a few
        groups at a time. Raises StoreInUse.
        """
        with self._opened():
            return self._volume.protect(at_most_groups)

    def scrub(self, progress: Progress | None = None, *, repair: bool = True) -> ScrubReport:
        """Read everything, and repair what can be repaired; see ScrubReport.

        Other threads get their turns between groups. ``progress(done, all)`` is called after each group, with sectors
        of the drive.
        """
        return Scrub(self._volume, self._opened, repair=repair).run(progress)

    def places(self, name: str, group: int) -> list[int]:
        """Byte offsets on the drive of a group's user sectors, then redundancy sectors; none where it is a hole.

        Raises NoSuchFile, and BadInput where the file has no such group.
        """
        with self._opened():
            file = self._volume.table.named(name)
            count = -(-file.size_bytes // (self._volume.layout.k * SECTOR_BYTES))
            if not 0 <= group < count:
                raise BadInput(f"file {name!r} has {count} groups, from 0 on; found {group}")
            found = file.groups.get(group)
            if found is None:
                return []
            stop = found.start + found.stored + self._volume.layout.m
            return [sector * SECTOR_BYTES for sector in range(found.start, stop)]

    def metadata_places(self) -> list[list[int]]:
        """Byte offsets of the replicas of each metadata sector, the lead first.

        They are the superblock, the record of unprotected groups, the journal and the pages, in this order.
        """
        volume = self._volume
        areas = (volume.record.area, volume.journal.area, volume.journal.pages)
        places = [volume.superblock.places(), *(area.places(number) for area in areas for number in range(area.count))]
        return [[sector * SECTOR_BYTES for sector in replicas] for replicas in places]

    def close(self) -> None:
        """Flush and give the store up. Nothing happens when it is closed already, and nothing else can be done then.

        Where that fails, it stays open, with all that is not on the drive yet: it can be closed again.
        """
        with self._lock:
            if self._is_open:
                self._drive.stop()
                self._volume.close()
                self._is_open = False
                self._drive.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def _opened(self) -> Iterator[None]:
        with self._lock:
            if not self._is_open:
                raise BadInput("the store is closed; open it anew")
            yield

    def _with_pages(self, operation: Callable[[], T]) -> T:
        """Do something that takes pages; once more after a commit, if that may have freed some."""
        try:
            return operation()
        except NoRoom:
            if not self._volume.free_by_commit():
                raise
        return operation()

    def _held(self, file: File) -> StoredFile:
        return StoredFile(file, self._volume, self._contents, self._opened, self._wall_ns, self._streams)

    def _wall_ns(self) -> int:
        return int(self._clock.wall().timestamp() * 1e6) * 1000
