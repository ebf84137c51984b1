"""Blocks over a connection to an NBD export."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from types import TracebackType
from typing import Protocol, Self, runtime_checkable

from rackloop.abilities import BlockDevice, WritableDrive
from rackloop.abilities.blocks import UNREADABLE_ERRNOS
from rackloop.clock import Clock
from rackloop.errors import NotSupported
from rackloop_drivers.block.nbd_session._connection import NbdConnection, Request
from rackloop_drivers.block.nbd_session._way import way_to
from rackloop_drivers.block_io import Permit, address_of, unfilled_bytes

# A longer read or write is several requests in flight together.
_PIECE_BYTES = 256 << 10
# Parts are small, and a drive that gave one up has gone on to the next only where that waits already: as many as a
# drive's queue takes, so that it does while this process is not at its turn.
_PARTS_IN_FLIGHT = 32


@runtime_checkable
class _HasFailFastExport(Protocol):
    """A device with a second export that does not retry."""

    def failing_fast(self) -> BlockDevice: ...


class NbdSession:
    """The export behind ``device`` as Blocks (:mod:`rackloop.abilities.blocks`), one call at a time, on one connection.

    A drive of a server (HostPath) is an export too: ``rackprobe serve`` there, over SSH, which ends with the session. A
    session that was lost, whether on the way or there, answers nothing any more; open another.

    A long read or write is split, its pieces are in flight together and each is answered within ``within_s`` of the
    one before. It writes only where the guard permits it: where ``device`` is a WritableDrive that is still open.
    Closed with the context it is used in. Raises NotSupported for a device that is no NBD export and not at a server,
    or an export that its server has not, NotConnected where nothing answers there, LabError with every reason where
    the server will not serve it, ToolError where libnbd is not installed.
    """

    def __init__(self, device: BlockDevice | WritableDrive, clock: Clock, *, within_s: float = 5.0) -> None:
        self._permit = Permit(device)
        way = way_to(self._permit.device, writes=self._permit.is_given)
        self.size_bytes = way.size_bytes
        self._connection = NbdConnection(way, clock, within_s)

    def read(self, offset: int, length: int) -> bytes:
        """The bytes there. Raises IoFailed, NotConnected, DeadlineExceeded; after the latter the session is closed."""
        return _read(self._connection, offset, length)

    def read_into(self, offset: int, buffer: bytearray | memoryview) -> None:
        """Fill ``buffer`` with the bytes from ``offset`` on; nothing is copied on the way. Raises as :meth:`read`."""
        _require_writable(buffer)
        self._connection.carry_out("read", _pieces("nbd_aio_pread", offset, buffer))

    def write(self, offset: int, data: bytes | bytearray | memoryview) -> None:
        """Put bytes there, without a copy. Raises as :meth:`read` does, BadInput where the guard does not permit it."""
        self._permit.require()
        self._connection.carry_out("write", _pieces("nbd_aio_pwrite", offset, data))

    def write_zeroes(self, offset: int, length: int) -> None:
        """Have the other side put zeroes there, at most 4 GiB less one byte at a time. Raises as :meth:`write` does."""
        self._permit.require()
        request = Request("nbd_aio_zero", (ctypes.c_uint64(length), ctypes.c_uint64(offset)))
        self._connection.carry_out("write of zeroes", [request])

    def flush(self) -> None:
        """Return when what was written stays. Raises as :meth:`read` does."""
        self._connection.carry_out("flush", [Request("nbd_aio_flush")])

    def close(self) -> None:
        """End the connection. A request in flight raises NotConnected, and may or may not have been carried out."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class FailFastNbdSession(NbdSession):
    """An NbdSession with a second connection, to the export's twin that does not retry.

    As :class:`~rackloop.abilities.blocks.FailFastBlocks`: both connections reach the same drive, and a read of one does
    not wait for one of the other. Raises NotSupported, beside what NbdSession raises, where the server has no such
    twin.
    """

    def __init__(self, device: BlockDevice | WritableDrive, clock: Clock, *, within_s: float = 5.0) -> None:
        twin = _twin(Permit(device).device)
        super().__init__(device, clock, within_s=within_s)
        try:
            self._hurried = NbdConnection(way_to(twin, writes=False), clock, within_s)
        except BaseException:
            super().close()
            raise

    def read_failing_fast(self, offset: int, length: int) -> bytes:
        """The bytes there, read at the first attempt. Raises as ``read`` does: IoFailed (EIO) where one does not do."""
        return _read(self._hurried, offset, length)

    def read_parts_failing_fast(self, offset: int, buffer: bytearray | memoryview, part_bytes: int) -> list[int]:
        """Fill ``buffer`` as ``read_into`` does, at the first attempt, in requests of ``part_bytes``.

        Returns the numbers of the parts that cannot be read, in order: what ``buffer`` holds of these means nothing. A
        drive gives what lies before and behind a part that fails. Raises as ``read`` does for any other error.
        """
        _require_writable(buffer)
        pieces = _pieces("nbd_aio_pread", offset, buffer, part_bytes)
        return self._hurried.carry_out("read", pieces, permitted=UNREADABLE_ERRNOS, in_flight=_PARTS_IN_FLIGHT)

    def close(self) -> None:
        """End both connections."""
        self._hurried.close()
        super().close()


def _twin(device: BlockDevice) -> BlockDevice:
    if not isinstance(device, _HasFailFastExport):
        raise NotSupported(f"{device.probe_target()} has no twin that fails fast")
    return device.failing_fast()


def _read(connection: NbdConnection, offset: int, length: int) -> bytes:
    data, _ = unfilled_bytes(length)
    connection.carry_out("read", _pieces("nbd_aio_pread", offset, data))
    return data


def _require_writable(buffer: bytearray | memoryview) -> None:
    if memoryview(buffer).readonly:
        raise ValueError("a read cannot fill a buffer that is read-only")


def _pieces(
    function: str, offset: int, data: bytes | bytearray | memoryview, piece_bytes: int = _PIECE_BYTES
) -> Iterator[Request]:
    """Requests that together read to ``data``, or write from it; it lives, and stays where it is, until they are."""
    # Rows of sectors are a buffer too, whose length is not that in bytes.
    size = memoryview(data).nbytes
    start = address_of(data) if size else 0
    for done in range(0, size, piece_bytes):
        length = min(piece_bytes, size - done)
        place = ctypes.c_void_p(start + done), ctypes.c_size_t(length), ctypes.c_uint64(offset + done)
        yield Request(function, place)
