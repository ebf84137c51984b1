"""Addresses of bytes in memory, for C code and the kernel to fill or take without a copy."""

from __future__ import annotations

import ctypes

import numpy as np

_new_bytes = ctypes.pythonapi.PyBytes_FromStringAndSize
_new_bytes.argtypes = (ctypes.c_char_p, ctypes.c_ssize_t)
_new_bytes.restype = ctypes.py_object


def address_of(data: bytes | bytearray | memoryview) -> int:
    """The address of the first byte of ``data``, which is not empty, as long as it lives and keeps its size."""
    address: int = np.frombuffer(data, np.uint8).ctypes.data
    return address


def unfilled_bytes(length: int) -> tuple[bytes, memoryview]:
    """Bytes of any content, and a view to fill them through before anybody else sees them: Python's own way in C."""
    data: bytes = _new_bytes(None, length)
    view = (ctypes.c_ubyte * length).from_address(address_of(data)) if length else b""
    return data, memoryview(view).cast("B")
