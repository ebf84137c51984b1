"""Reads and writes through a device node of this machine, or a regular file in its place, from within the harness.

The kernel cannot be told, read by read, not to retry what cannot be read at the first attempt: that is the drive's own
setting, for all reads (SCT error recovery control: ``smartctl -l scterc,1,70 DEVICE``). So these are plain blocks.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EINVAL
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Self

from rackloop.abilities import BlockDevice, WritableDrive
from rackloop.abilities.blocks import IoFailed
from rackloop.errors import LabError, NotConnected, RackloopError
from rackloop_drivers.block_io import Permit, address_of, unfilled_bytes

# What direct I/O wants of an address, whichever the device's sector; and what one request moves.
_PAGE_BYTES = mmap.PAGESIZE
_PIECE_BYTES = 1 << 20


class PathSession:
    """The node or file behind ``device`` as ``rackloop.abilities.blocks.Blocks``; any number of threads may use it.

    Beside the page cache (O_DIRECT) where the device and its file system allow that, else through it: ``is_direct``
    says which. Buffers that begin on a page go to the device as they are, others by way of one that does. How long a
    request takes, and how often it is tried again, is the kernel's and the drive's to say.

    It writes only where the guard permits it: where ``device`` is a WritableDrive that is still open, whose claim
    (O_EXCL, a file's lock) keeps others out meanwhile. Closed with the context it is used in. Raises LabError where
    there is nothing to open, GuardRefused where the path leads to another device than the one that is claimed.
    """

    def __init__(self, device: BlockDevice | WritableDrive) -> None:
        self._permit = Permit(device)
        self._path = self._permit.device.probe_target()
        self.size_bytes = self._permit.device.size_bytes
        flags = os.O_CLOEXEC | (os.O_RDWR if self._permit.is_given else os.O_RDONLY)
        self._descriptor, self.is_direct = _opened(self._path, flags)
        if self._permit.is_given:
            # The name may have been led elsewhere since the drive was claimed.
            try:
                self._permit.require(self._descriptor)
            except RackloopError:
                os.close(self._descriptor)
                raise
        self._spare: SimpleQueue[mmap.mmap] = SimpleQueue()

    def read(self, offset: int, length: int) -> bytes:
        """The bytes there. Raises IoFailed as the kernel does, NotConnected once closed."""
        data, unfilled = unfilled_bytes(length)
        self.read_into(offset, unfilled)
        return data

    def read_into(self, offset: int, buffer: bytearray | memoryview) -> None:
        """Fill ``buffer`` with the bytes from ``offset`` on. Raises as :meth:`read` does."""
        for at, piece in _pieces(memoryview(buffer)):
            if self._may_go_as_it_is(piece):
                self._read(offset + at, piece)
            else:
                with self._page_aligned(len(piece)) as aligned:
                    self._read(offset + at, aligned)
                    piece[:] = aligned

    def write(self, offset: int, data: bytes | bytearray | memoryview) -> None:
        """Put bytes there. Raises as :meth:`read` does, and BadInput where the guard does not permit it."""
        self._permit.require()
        for at, piece in _pieces(memoryview(data)):
            if self._may_go_as_it_is(piece):
                self._write(offset + at, piece)
            else:
                with self._page_aligned(len(piece)) as aligned:
                    aligned[:] = piece
                    self._write(offset + at, aligned)

    def flush(self) -> None:
        """Return when what was written stays. Raises as :meth:`read` does."""
        try:
            os.fdatasync(self._open())
        except OSError as error:
            raise self._failed("flush", 0, error) from error

    def close(self) -> None:
        """Close the node; no read or write may be under way."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _read(self, offset: int, buffer: memoryview) -> None:
        try:
            done = os.preadv(self._open(), [buffer], offset)
        except OSError as error:
            raise self._failed("read", offset, error) from error
        if done != len(buffer):
            raise IoFailed(f"read at byte {offset} of {self._path}: it ends after {offset + done} bytes", EINVAL)

    def _write(self, offset: int, data: memoryview) -> None:
        try:
            done = os.pwrite(self._open(), data, offset)
        except OSError as error:
            raise self._failed("write", offset, error) from error
        if done != len(data):
            raise IoFailed(f"write at byte {offset} of {self._path}: {done} of {len(data)} bytes were taken", EINVAL)

    def _open(self) -> int:
        if self._descriptor < 0:
            raise NotConnected(f"{self._path}: the session is closed; open another")
        return self._descriptor

    def _failed(self, what: str, offset: int, error: OSError) -> IoFailed:
        return IoFailed(f"{what} at byte {offset} of {self._path}: {error.strerror}", error.errno or 0)

    def _may_go_as_it_is(self, piece: memoryview) -> bool:
        return not self.is_direct or address_of(piece) % _PAGE_BYTES == 0

    @contextmanager
    def _page_aligned(self, length: int) -> Iterator[memoryview]:
        """A buffer that begins on a page; it is used again, for a fresh one costs a page fault every 4 KiB."""
        try:
            whole = self._spare.get_nowait()
        except Empty:
            whole = mmap.mmap(-1, _PIECE_BYTES)
        with memoryview(whole) as view, view[:length] as part:
            yield part
        self._spare.put(whole)


def _opened(path: str, flags: int) -> tuple[int, bool]:
    """The descriptor, and whether it goes beside the page cache."""
    try:
        with suppress(OSError):
            return os.open(path, flags | os.O_DIRECT), True
        return os.open(path, flags), False
    except OSError as error:
        raise LabError(f"{path} cannot be opened: {error.strerror}; is the drive plugged in and mapped?") from error


def _pieces(data: memoryview) -> Iterator[tuple[int, memoryview]]:
    whole = data.cast("B")
    for at in range(0, len(whole), _PIECE_BYTES):
        yield at, whole[at : at + _PIECE_BYTES]
