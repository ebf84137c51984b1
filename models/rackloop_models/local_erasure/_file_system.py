"""A store as a file system asks for it: by paths and handles, its errors as numbers. What libfuse calls, without it."""

from __future__ import annotations

import functools
import os
import stat
from collections.abc import Callable, Iterator
from errno import EEXIST, EINVAL, EIO, EISDIR, ENAMETOOLONG, ENOENT, ENOSPC, ENOTEMPTY, ENOTSUP, EPERM
from itertools import count
from typing import Concatenate, ParamSpec, TypeVar, cast

from rackloop.clock import Clock
from rackloop.errors import BadInput, NotSupported, RackloopError
from rackloop_models.local_erasure._errors import (
    FileExists,
    FolderNotEmpty,
    NameTooLong,
    NoRoom,
    NoSuchFile,
    StoreInUse,
)
from rackloop_models.local_erasure._layout import SECTOR_BYTES
from rackloop_models.local_erasure._store import LocalStore
from rackloop_models.local_erasure._stored_file import StoredFile

LEFT_BY_LIBFUSE = ".fuse_hidden"
"""The name that libfuse gives a file that was removed while it was open."""

_FILE_MODE = stat.S_IFREG | 0o644
_FOLDER_MODE = stat.S_IFDIR | 0o755
_LONGEST_NAME = 255
# renameat2(2); and utimensat(2)'s marks in the place of nanoseconds.
_NO_REPLACE = 1
_NOW_NS, _OMIT_NS = (1 << 30) - 1, (1 << 30) - 2
# The first that an error is an instance of says its number; what is the drive's or the lab's is EIO.
_NUMBERS: tuple[tuple[type[RackloopError], int], ...] = (
    (NoSuchFile, ENOENT),
    (FileExists, EEXIST),
    (FolderNotEmpty, ENOTEMPTY),
    (NameTooLong, ENAMETOOLONG),
    (NoRoom, ENOSPC),
    (StoreInUse, EIO),
    (BadInput, EINVAL),
    (NotSupported, ENOTSUP),
    (RackloopError, EIO),
)

P = ParamSpec("P")
T = TypeVar("T")


def _answering(call: Callable[Concatenate[FileSystem, str, P], T]) -> Callable[Concatenate[FileSystem, str, P], T]:
    """Have a call about a path raise OSError and nothing else, and tell what went wrong with the drive or the store."""

    @functools.wraps(call)
    def answer(self: FileSystem, path: str, *arguments: P.args, **named: P.kwargs) -> T:
        self.asked_ns = self.clock.now_ns()
        try:
            return call(self, path, *arguments, **named)
        except RackloopError as error:
            number = next(number for kind, number in _NUMBERS if isinstance(error, kind))
            if number == EIO:
                self.tell(f"{call.__name__} of {path}: {error}", error)
            raise OSError(number, os.strerror(number)) from error
        except OSError:
            raise
        except Exception as error:
            self.tell(f"{call.__name__} of {path}: {type(error).__name__}: {error}", error)
            raise OSError(EIO, os.strerror(EIO)) from error

    return cast("Callable[Concatenate[FileSystem, str, P], T]", answer)


def _changing(call: Callable[Concatenate[FileSystem, str, P], T]) -> Callable[Concatenate[FileSystem, str, P], T]:
    """As ``_answering``, of a call that may change something, also when it fails."""
    answering = _answering(call)

    @functools.wraps(call)
    def change(self: FileSystem, path: str, *arguments: P.args, **named: P.kwargs) -> T:
        try:
            return answering(self, path, *arguments, **named)
        finally:
            # Not before: what is flushed meanwhile is flushed without it.
            self.is_changed = True

    return cast("Callable[Concatenate[FileSystem, str, P], T]", change)


class FileSystem:
    """The files and folders of ``store``, of the user who runs this process.

    Every call raises OSError with the number that the program at the other end gets. Those that end with EIO are also
    given to ``on_trouble``, in a sentence and as they are. ``asked_ns`` is when the last call came, on ``clock``;
    ``is_changed`` whether anything was written since it was last set to False.

    A file has no owner and no permissions of its own, so others than its own are refused; a folder has no time. There
    are no links and no extended attributes. Calls of several threads are the store's to put in order.
    """

    use_ns = True

    def __init__(
        self,
        store: LocalStore,
        clock: Clock,
        *,
        on_trouble: Callable[[str, Exception], None] = lambda _text, _error: None,
    ) -> None:
        self.store = store
        self.clock = clock
        self.tell = on_trouble
        self.asked_ns = clock.now_ns()
        self.is_changed = False
        self._made_ns = round(clock.wall().timestamp() * 1e9)
        self._held: dict[int, StoredFile] = {}
        self._numbers = count(1)

    def remove_leftovers(self) -> None:
        """Remove the files that had been removed while they were open when an earlier mount was killed."""
        for name in self.store.names():
            if name.rpartition("/")[2].startswith(LEFT_BY_LIBFUSE):
                self.store.remove(name)

    @_answering
    def getattr(self, path: str, handle: int | None = None) -> dict[str, int]:
        """The fields of ``stat`` for a file or a folder."""
        if self._is_folder(path):
            return self._attributes(_FOLDER_MODE, 2, 0, 0, self._made_ns)
        status = self.store.stat(_named(path))
        blocks = status.sectors * (SECTOR_BYTES // 512)
        return self._attributes(_FILE_MODE, 1, status.size_bytes, blocks, status.modified_ns)

    @_answering
    def readdir(self, path: str, handle: int) -> Iterator[str]:
        """The names in a folder."""
        inside = path.strip("/") + "/" if path != "/" else ""
        names = (
            name.removeprefix(inside) for name in self.store.names() + self.store.folders() if name.startswith(inside)
        )
        return iter([".", "..", *(name for name in names if "/" not in name)])

    @_answering
    def statfs(self, path: str) -> dict[str, int]:
        """The room on the drive: ``f_bfree`` in sectors of the drive, ``f_bavail`` what data can have of them.

        ``f_ffree`` is how many more files and folders there may be.
        """
        layout = self.store.layout
        free = self.store.free_bytes() // SECTOR_BYTES
        files = self.store.free_files()
        return {
            "f_bsize": SECTOR_BYTES,
            "f_frsize": SECTOR_BYTES,
            "f_blocks": self.store.data_bytes // SECTOR_BYTES,
            "f_bfree": free,
            "f_bavail": free * layout.k // (layout.k + layout.m),
            "f_files": self.store.most_files,
            "f_ffree": files,
            "f_favail": files,
            "f_namemax": _LONGEST_NAME,
        }

    @_changing
    def create(self, path: str, mode: int, flags: int) -> int:
        """Make a file and open it; the mode it is to have is not kept."""
        name = _named(path)
        try:
            return self._hold(self.store.create(name))
        except FileExists:
            if flags & os.O_EXCL:
                raise
            return self._opened(name, flags)

    @_answering
    def open(self, path: str, flags: int) -> int:
        """A handle for a file, which is emptied where ``flags`` say so."""
        return self._opened(_named(path), flags)

    @_answering
    def release(self, path: str, handle: int) -> int:
        """Give a handle back."""
        file = self._held.pop(handle, None)
        if file is not None:
            file.close()
        return 0

    @_answering
    def read(self, path: str, size: int, offset: int, handle: int) -> bytes:
        """Bytes of a file, fewer at its end; EIO where they cannot be had by any means."""
        return self._held[handle].read(offset, size)

    @_changing
    def write(self, path: str, data: bytes, offset: int, handle: int) -> int:
        """Put bytes into a file; ENOSPC with nothing written where there is no room for all of them."""
        self._held[handle].write(offset, data)
        return len(data)

    @_changing
    def truncate(self, path: str, length: int, handle: int | None = None) -> int:
        """Cut a file or have it grow by zeros."""
        self.store.open(_named(path)).truncate(length)
        return 0

    @_answering
    def fsync(self, path: str, is_data_only: int, handle: int) -> int:
        """Return when data and metadata are on the drive; redundancy follows (phase two)."""
        self._held[handle].sync()
        return 0

    @_answering
    def fsyncdir(self, path: str, is_data_only: int, handle: int) -> int:
        """Return when names are on the drive, and with them all else that metadata are."""
        self.store.sync()
        return 0

    @_changing
    def unlink(self, path: str) -> int:
        """Remove a file."""
        self.store.remove(_named(path))
        return 0

    @_changing
    def rename(self, path: str, new: str, flags: int = 0) -> int:
        """Give a file another name, in place of one that has it unless ``flags`` (renameat2) forbid."""
        if flags & ~_NO_REPLACE:
            raise OSError(EINVAL, os.strerror(EINVAL))
        if flags & _NO_REPLACE and (new[1:] in self.store.names() or self._is_folder(new)):
            raise FileExists(f"there is a {new[1:]!r}")
        self.store.rename(_named(path), _named(new))
        return 0

    @_changing
    def utimens(self, path: str, times: tuple[int, int] | None = None) -> int:
        """Set when a file was modified; when it was read is not kept."""
        now_ns = round(self.clock.wall().timestamp() * 1e9)
        modified_ns = now_ns if times is None or times[1] == _NOW_NS else times[1]
        if modified_ns != _OMIT_NS and not self._is_folder(path):
            self.store.open(_named(path)).set_modified(modified_ns)
        return 0

    @_answering
    def chmod(self, path: str, mode: int) -> int:
        """Nothing where it is the mode that it has; EPERM, for none is kept."""
        return _only(stat.S_IMODE(mode) == stat.S_IMODE(_FOLDER_MODE if self._is_folder(path) else _FILE_MODE))

    @_answering
    def chown(self, path: str, user: int, group: int) -> int:
        """Nothing where it is the owner that it has, -1 being any; EPERM, for none is kept."""
        return _only(user in {-1, 0xFFFFFFFF, os.getuid()} and group in {-1, 0xFFFFFFFF, os.getgid()})

    @_changing
    def mkdir(self, path: str, mode: int) -> int:
        """Make a folder; the mode it is to have is not kept."""
        self.store.make_folder(_named(path))
        return 0

    @_changing
    def rmdir(self, path: str) -> int:
        """Remove an empty folder."""
        self.store.remove_folder(_named(path))
        return 0

    @_answering
    def symlink(self, path: str, source: str) -> int:
        """EPERM: there are no links."""
        return _only(is_so=False)

    @_answering
    def link(self, path: str, source: str) -> int:
        """EPERM: there are no links."""
        return _only(is_so=False)

    def _is_folder(self, path: str) -> bool:
        return self.store.is_folder(path.removeprefix("/"))

    def _opened(self, name: str, flags: int) -> int:
        file = self.store.open(name)
        if flags & os.O_TRUNC:
            try:
                file.truncate(0)
            finally:
                self.is_changed = True
        return self._hold(file)

    def _hold(self, file: StoredFile) -> int:
        handle = next(self._numbers)
        self._held[handle] = file
        return handle

    def _attributes(self, mode: int, links: int, size: int, blocks: int, modified_ns: int) -> dict[str, int]:
        return {
            "st_mode": mode,
            "st_nlink": links,
            "st_uid": os.getuid(),
            "st_gid": os.getgid(),
            "st_size": size,
            "st_blocks": blocks,
            "st_blksize": SECTOR_BYTES,
            **dict.fromkeys(("st_atime", "st_mtime", "st_ctime"), modified_ns),
        }


def _named(path: str) -> str:
    """The name of a file or folder in the store. Raises OSError where none can have it."""
    name = path.removeprefix("/")
    if not name:
        raise OSError(EISDIR, os.strerror(EISDIR))
    try:
        length = len(name.encode())
    except UnicodeEncodeError:
        raise OSError(EINVAL, "a name is UTF-8") from None
    if length > _LONGEST_NAME:
        raise OSError(ENAMETOOLONG, os.strerror(ENAMETOOLONG))
    return name


def _only(is_so: bool) -> int:  # noqa: FBT001 - it is asked as a question
    if not is_so:
        raise OSError(EPERM, os.strerror(EPERM))
    return 0
