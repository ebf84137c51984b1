"""A file as its users hold it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import wait
from contextlib import AbstractContextManager
from dataclasses import dataclass

from rackloop_models.local_erasure._contents import Contents
from rackloop_models.local_erasure._errors import NoSuchFile
from rackloop_models.local_erasure._file import File
from rackloop_models.local_erasure._streams import Stream, Streams
from rackloop_models.local_erasure._volume import Volume

# A page has 64 bits for it, and one that does not fit would keep all that is changed from the drive.
_MOST_NS = (1 << 63) - 1


@dataclass(frozen=True)
class FileStatus:
    """A file: how long it is, and what it takes on the drive.

    ``sectors`` are those on the drive, redundancy and all; groups that are all hole have none, and are not counted.
    """

    size_bytes: int
    sectors: int
    groups: int
    modified_ns: int
    unprotected_groups: int


class StoredFile:
    """A file of an open store. Threads may share it; it goes by its name, also when it gets another one.

    Everything raises NoSuchFile after the file was removed, or replaced by another.
    """

    def __init__(
        self,
        file: File,
        volume: Volume,
        contents: Contents,
        turn: Callable[[], AbstractContextManager[None]],
        wall_ns: Callable[[], int],
        streams: Streams,
    ) -> None:
        self._file = file
        self._volume = volume
        self._contents = contents
        self._turn = turn
        self._wall_ns = wall_ns
        self._streams = streams
        self._stream = Stream()

    @property
    def name(self) -> str:
        """Its name now."""
        return self._file.name

    @property
    def size_bytes(self) -> int:
        """Its length."""
        return self._there().size_bytes

    def read(self, offset: int, length: int) -> bytes:
        """Bytes of it: fewer where it ends, none beyond. What was never written reads as zeros.

        Raises GroupUnrecoverable where sectors cannot be had by any means, and never gives wrong bytes in their place;
        BadInput for a negative offset or length; as the drive does for errors that are not a sector's.
        """
        with self._turn():
            awaited = self._streams.follow(self._stream, self._there(), offset, length)
        # Others have their turns meanwhile. Whether it was read does not matter here.
        wait(awaited)
        with self._turn():
            return self._contents.read(self._there(), offset, length)

    def write(self, offset: int, data: bytes | bytearray | memoryview, *, sync: bool = False) -> None:
        """Write bytes at any offset; the file grows as far as it takes.

        They are in the cache until they are evicted, or ``sync`` or ``flush`` is called. With ``sync``, phase one of
        the paper's two-phase write is done on return: these bytes, and what it takes to find them, are on the drive.
        Redundancy that does not lie right behind them is out of date until ``protect`` or ``flush``, and the drive
        knows that it is.

        Raises NoRoom, with nothing written; GroupUnrecoverable where a sector is written in part that cannot be had;
        StoreInUse where another has taken the store.
        """
        with self._turn():
            file = self._there()
            self._volume.begin()
            groups = self._contents.write(file, offset, data)
            if groups:
                file.modified_ns = self._wall_ns()
            if sync:
                self._volume.drive.statistics.sync_writes += 1
                self._volume.write_synchronously(file, groups)

    def truncate(self, size_bytes: int) -> None:
        """Cut it, or have it grow by zeros that take no room. Raises as ``write`` does."""
        with self._turn():
            self._volume.begin()
            self._contents.truncate(self._there(), size_bytes)
            self._file.modified_ns = self._wall_ns()

    def set_modified(self, modified_ns: int) -> None:
        """Have it say that it was modified then, in nanoseconds since 1970. Raises StoreInUse.

        What is before 1677 or behind 2262 becomes the first or the last moment that there is room for.
        """
        with self._turn():
            self._volume.begin()
            file = self._there()
            file.modified_ns = max(-_MOST_NS - 1, min(modified_ns, _MOST_NS))
            file.change()

    def sync(self) -> None:
        """Return when its data and metadata, and those of all other files, are on the drive.

        Redundancy that takes reads to compute follows in the background. Raises StoreInUse.
        """
        with self._turn():
            self._there()
            self._volume.commit(reading=False)

    def close(self) -> None:
        """Say that no more of it will be read soon: nothing is read ahead any more. It can be used all the same."""
        with self._turn():
            self._streams.give_up(self._stream)

    def status(self) -> FileStatus:
        """Its status now."""
        with self._turn():
            return status_of(self._there(), self._volume.layout.m)

    def _there(self) -> File:
        if self._file.removed:
            raise NoSuchFile(f"file {self._file.name!r} was removed since it was opened")
        return self._file


def status_of(file: File, m: int) -> FileStatus:
    """The status of a file whose groups have ``m`` redundancy sectors."""
    groups = file.groups.values()
    return FileStatus(
        file.size_bytes,
        sum(group.stored + m for group in groups),
        len(groups),
        file.modified_ns,
        sum(group.stale for group in groups),
    )
