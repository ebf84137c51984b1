"""Sectors as callers hold them, a numpy array or buffers of their own, as addresses that nothing is copied for."""

from __future__ import annotations

import ctypes
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from rackloop.errors import BadInput
from rackloop_models.erasure._field import Bytes, Field

Addresses = NDArray[np.uint64]
OneSector: TypeAlias = bytes | bytearray | memoryview | Bytes
Sectors: TypeAlias = Bytes | Sequence[OneSector] | Sequence[OneSector | None]


@dataclass(frozen=True)
class Located:
    """The addresses of the planes of sectors, as an array of (sector, plane). ``kept`` keeps them there."""

    planes: Addresses
    sector_bytes: int
    kept: object

    def __len__(self) -> int:
        return len(self.planes)


def located(
    sectors: Sectors, what: str, field: Field, *, written: bool = False, absent: Collection[int] = ()
) -> Located:
    """Find the planes of ``sectors``, which may be None at the places ``absent`` when they are a sequence.

    Raises BadInput, with ``what`` in its message: not bytes, rows that are not contiguous, sectors of unequal size or
    one that the field cannot halve, or to be ``written`` and read-only.
    """
    if isinstance(sectors, np.ndarray):
        array = checked_array(sectors, what, field, dimensions=2, written=written)
        return Located(plane_addresses(array, field), array.shape[1], array)
    views = [
        None if sector is None and place in absent else _view(sector, f"{what}[{place}]", written=written)
        for place, sector in enumerate(sectors)
    ]
    sizes = {view.size for view in views if view is not None}
    if len(sizes) != 1 or 0 in sizes:
        raise BadInput(f"{what}: expected sectors of one size, found {sorted(sizes) or 'none'}")
    size = _checked_size(sizes.pop(), what, field)
    firsts = np.array([0 if view is None else view.ctypes.data for view in views], np.uint64)
    return Located(firsts[:, None] + plane_offsets((1, size), (0, 1), field.parts), size, views)


def checked_array(array: Bytes, what: str, field: Field, *, dimensions: int, written: bool = False) -> Bytes:
    """``array``, if it is one of whole sectors: of bytes, of so many dimensions, each sector contiguous."""
    if array.dtype != np.uint8 or array.ndim != dimensions:
        raise BadInput(f"{what}: expected uint8 in {dimensions} dimensions, found {array.dtype} in {array.ndim}")
    if 0 in array.shape:
        raise BadInput(f"{what}: expected at least one sector of one byte, found the shape {array.shape}")
    if array.strides[-1] != 1 and array.shape[-1] != 1:
        raise BadInput(f"{what}: the bytes of a sector do not follow each other; pass a contiguous copy")
    if written and not array.flags.writeable:
        raise BadInput(f"{what}: is read-only, and is where the result goes; pass a writable array")
    _checked_size(array.shape[-1], what, field)
    return array


def same_size(**sizes: int) -> int:
    """The size of all sectors. Raises BadInput when they are not of one."""
    if len(set(sizes.values())) != 1:
        found = ", ".join(f"{what} {size}" for what, size in sizes.items())
        raise BadInput(f"expected sectors of one size, found in bytes: {found}")
    return next(iter(sizes.values()))


def plane_addresses(array: Bytes, field: Field) -> Addresses:
    """Addresses of the planes of an array of (sector, byte)."""
    return plane_offsets(array.shape, array.strides, field.parts) + np.uint64(address(array))


def address(array: NDArray[Any]) -> int:
    """The address of an array: ``array.ctypes.data``, in a fifth of the time where ctypes takes the array as it is."""
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(cast("bytearray", array)))
    except (TypeError, ValueError, BufferError):
        return array.ctypes.data


@lru_cache(maxsize=64)
def plane_offsets(shape: tuple[int, ...], strides: tuple[int, ...], parts: int) -> Addresses:
    """The offsets of the planes of an array of (sector, byte) from its address, as an array of (sector, plane)."""
    count, sector_bytes = shape
    steps = (np.arange(count) * strides[0])[:, None] + np.arange(parts) * (sector_bytes // parts)
    # A negative step wraps around, and so does the sum of an address with it.
    return steps.astype(np.uint64)


def _checked_size(size: int, what: str, field: Field) -> int:
    if size % field.parts:
        raise BadInput(f"{what}: {field} needs sectors of an even number of bytes, found {size}")
    return size


def _view(sector: OneSector | None, what: str, *, written: bool) -> Bytes:
    if sector is None:
        raise BadInput(f"{what}: there is no sector, and it is not among the erased ones")
    try:
        view = np.frombuffer(sector, np.uint8)
    except (TypeError, ValueError) as error:
        raise BadInput(f"{what}: expected a contiguous buffer of bytes: {error}") from error
    if written and not view.flags.writeable:
        raise BadInput(f"{what}: is read-only, and is where the result goes; pass a writable buffer")
    return view
