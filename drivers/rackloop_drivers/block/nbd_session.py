"""Reads and writes through an NBD export from within the harness, by libnbd (https://libguestfs.org/libnbd.3.html).

For systems under test that the harness plays itself. Load is fio's to make, and timing rackprobe's to measure.
"""

from __future__ import annotations

import ctypes
from functools import cache
from threading import Lock
from types import TracebackType
from typing import Any, Self

from rackloop.abilities import BlockDevice
from rackloop.blocks import IoFailed
from rackloop.clock import Clock, Deadline
from rackloop.errors import BadInput, DeadlineExceeded, NotConnected, NotSupported, ToolError
from rackloop.guard import WritableDrive

_LIBRARY = "libnbd.so.0"
# How soon a request in flight notices that its session was given up.
_LOOK_MS = 20


class _Completion(ctypes.Structure):
    """libnbd's ``nbd_completion_callback``, passed by value; all null is ``NBD_NULL_COMPLETION``."""

    _fields_ = (("callback", ctypes.c_void_p), ("user_data", ctypes.c_void_p), ("free", ctypes.c_void_p))


class NbdSession:
    """One connection to the export behind ``device``: one request at a time, each within ``within_s``.

    It writes only where the guard permits it: where ``device`` is a WritableDrive that is still open. Closed with the
    context it is used in. Raises NotSupported for a device that is no NBD export, NotConnected where nothing answers
    there, ToolError where libnbd is not installed.
    """

    def __init__(self, device: BlockDevice | WritableDrive, clock: Clock, *, within_s: float = 5.0) -> None:
        self._permit = device if isinstance(device, WritableDrive) else None
        block_device = device.device if isinstance(device, WritableDrive) else device
        self._target = block_device.probe_target()
        if not self._target.startswith(("nbd:", "nbd+unix:")):
            raise NotSupported(f"{self._target} is no NBD export: only the drives of a mock rack are reached this way")
        self.size_bytes = block_device.size_bytes
        self._clock = clock
        self._within_s = within_s
        self._lock = Lock()
        self._is_given_up = False
        self._library = _library()
        self._handle: int | None = self._library.nbd_create()
        if self._handle is None:
            raise ToolError(f"libnbd has no room for a connection: {self._error()}")
        if self._library.nbd_connect_uri(self._handle, self._target.encode()) < 0:
            reason = self._error()
            self._end()
            raise NotConnected(f"{self._target}: {reason}; is the lab up?")

    def read(self, offset: int, length: int) -> bytes:
        """The bytes there. Raises IoFailed, DeadlineExceeded; after the latter the session is closed."""
        buffer = ctypes.create_string_buffer(length)
        self._complete("read", "nbd_aio_pread", buffer, ctypes.c_size_t(length), ctypes.c_uint64(offset))
        return buffer.raw

    def write(self, offset: int, data: bytes) -> None:
        """Put bytes there. Raises as :meth:`read` does, and BadInput where the guard does not permit it."""
        self._require_permission()
        self._complete("write", "nbd_aio_pwrite", data, ctypes.c_size_t(len(data)), ctypes.c_uint64(offset))

    def write_zeroes(self, offset: int, length: int) -> None:
        """Have the other side put zeroes there, at most 4 GiB less one byte at a time. Raises as :meth:`write` does."""
        self._require_permission()
        self._complete("write of zeroes", "nbd_aio_zero", ctypes.c_uint64(length), ctypes.c_uint64(offset))

    def flush(self) -> None:
        """Return when what was written stays. Raises as :meth:`read` does."""
        self._complete("flush", "nbd_aio_flush")

    def close(self) -> None:
        """End the connection. A request in flight raises NotConnected, and may or may not have been carried out."""
        self._is_given_up = True
        with self._lock:
            self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _require_permission(self) -> None:
        if self._permit is None:
            raise BadInput(f"{self._target} was opened to be read; writing takes a WritableDrive from the guard")
        _ = self._permit.device

    def _complete(self, what: str, function: str, *arguments: object) -> None:
        with self._lock:
            if self._handle is None:
                raise NotConnected(f"{self._target}: the session is closed; open another")
            cookie = getattr(self._library, function)(self._handle, *arguments, _Completion(), ctypes.c_uint32(0))
            if cookie < 0:
                raise IoFailed(f"{what} at {self._target}: {self._error()}", self._library.nbd_get_errno())
            deadline = Deadline.after(self._clock, self._within_s)
            while not (done := self._library.nbd_aio_command_completed(self._handle, ctypes.c_uint64(cookie))):
                if self._is_given_up:
                    raise NotConnected(f"{what} at {self._target}: the session was closed meanwhile")
                if deadline.is_over():
                    # The buffer must not be written to once it is given up: no handle, no write.
                    self._end()
                    raise DeadlineExceeded(f"{what} at {self._target} was not answered in {self._within_s:g} s")
                if self._library.nbd_poll(self._handle, _LOOK_MS) < 0:
                    raise NotConnected(f"{self._target}: {self._error()}; is the lab up?")
            if done < 0:
                raise IoFailed(f"{what} at {self._target}: {self._error()}", self._library.nbd_get_errno())

    def _end(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            self._library.nbd_close(handle)

    def _error(self) -> str:
        said = self._library.nbd_get_error()
        return said.decode("utf-8", "replace") if said else "libnbd gives no reason"


@cache
def _library() -> Any:
    """libnbd, with the types of the functions that are used. Raises ToolError where it cannot be loaded."""
    try:
        library = ctypes.CDLL(_LIBRARY)
    except OSError as error:
        raise ToolError(
            f"{_LIBRARY} cannot be loaded ({error}); install libnbd, which fio's nbd engine uses"
        ) from error
    handle, cookie = ctypes.c_void_p, ctypes.c_int64
    library.nbd_create.restype = handle
    library.nbd_connect_uri.argtypes = (handle, ctypes.c_char_p)
    library.nbd_close.argtypes = (handle,)
    library.nbd_close.restype = None
    common = (_Completion, ctypes.c_uint32)
    place = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64)
    span = (ctypes.c_uint64, ctypes.c_uint64)
    for name, arguments in (("pread", place), ("pwrite", place), ("zero", span), ("flush", ())):
        function = getattr(library, f"nbd_aio_{name}")
        function.argtypes = (handle, *arguments, *common)
        function.restype = cookie
    library.nbd_aio_command_completed.argtypes = (handle, ctypes.c_uint64)
    library.nbd_poll.argtypes = (handle, ctypes.c_int)
    library.nbd_get_error.restype = ctypes.c_char_p
    return library
