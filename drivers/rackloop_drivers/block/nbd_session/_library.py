"""The functions of libnbd that sessions call, with their types."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from rackloop.errors import ToolError

_LIBRARY = "libnbd.so.0"


class Completion(ctypes.Structure):
    """libnbd's ``nbd_completion_callback``, passed by value; all null is ``NBD_NULL_COMPLETION``."""

    _fields_ = (("callback", ctypes.c_void_p), ("user_data", ctypes.c_void_p), ("free", ctypes.c_void_p))


@cache
def library() -> Any:
    """libnbd, with the types of the functions that are used. Raises ToolError where it cannot be loaded."""
    try:
        loaded = ctypes.CDLL(_LIBRARY)
    except OSError as error:
        raise ToolError(
            f"{_LIBRARY} cannot be loaded ({error}); install libnbd, which fio's nbd engine uses"
        ) from error
    handle, cookie = ctypes.c_void_p, ctypes.c_int64
    loaded.nbd_create.restype = handle
    loaded.nbd_aio_connect_uri.argtypes = (handle, ctypes.c_char_p)
    loaded.nbd_close.argtypes = (handle,)
    loaded.nbd_close.restype = None
    common = (Completion, ctypes.c_uint32)
    place = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64)
    span = (ctypes.c_uint64, ctypes.c_uint64)
    for name, arguments in (("pread", place), ("pwrite", place), ("zero", span), ("flush", ())):
        function = getattr(loaded, f"nbd_aio_{name}")
        function.argtypes = (handle, *arguments, *common)
        function.restype = cookie
    loaded.nbd_aio_command_completed.argtypes = (handle, ctypes.c_uint64)
    loaded.nbd_aio_peek_command_completed.argtypes = (handle,)
    loaded.nbd_aio_peek_command_completed.restype = cookie
    loaded.nbd_set_export_name.argtypes = (handle, ctypes.c_char_p)
    loaded.nbd_aio_connect_socket.argtypes = (handle, ctypes.c_int)
    for name in ("in_flight", "is_connecting", "is_ready", "is_dead", "is_closed"):
        getattr(loaded, f"nbd_aio_{name}").argtypes = (handle,)
    loaded.nbd_poll.argtypes = (handle, ctypes.c_int)
    loaded.nbd_get_error.restype = ctypes.c_char_p
    return loaded


def reason() -> str:
    """The reason that libnbd gives for the last call of this thread that failed."""
    said = library().nbd_get_error()
    return said.decode("utf-8", "replace") if said else "libnbd gives no reason"
