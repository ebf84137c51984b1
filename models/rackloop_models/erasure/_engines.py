"""Engines that multiply planes of bytes by matrices: ISA-L, from the system or the pyeclib wheel, or numpy."""

from __future__ import annotations

import ctypes
import re
from functools import cache
from pathlib import Path
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rackloop.errors import ToolError
from rackloop_models.erasure._field import GF8, Bytes
from rackloop_models.erasure._sectors import address

OLDEST = (2, 30, 0)
_TABLE_BYTES = 32


Pointer: TypeAlias = int | ctypes.c_void_p


class Engine(Protocol):
    """Multiplies planes of bytes by matrices over GF(2^8).

    ``tables`` prepares a matrix: one row of bytes for each of its rows, all equally long. ``multiply`` takes addresses:
    of prepared rows that follow each other, of ``columns`` addresses of planes, of ``rows`` addresses of planes to be
    written, each of ``length`` bytes. An address that is used again is best kept as a ``c_void_p``, for which ctypes
    takes half as long. Threads may call both at the same time.
    """

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str: ...
    def tables(self, matrix: Bytes) -> Bytes: ...
    def multiply(
        self, length: int, columns: int, rows: int, tables: Pointer, sources: Pointer, outputs: Pointer
    ) -> None: ...


class IsalEngine:
    """Intel's Intelligent Storage Acceleration Library, through ctypes, which lets go of the interpreter lock."""

    name = "ISA-L"

    def __init__(self, path: str, *, oldest: tuple[int, ...] = OLDEST) -> None:
        """Load the library at ``path``, or of that name where the loader looks.

        Raises ToolError: it cannot be loaded, is older than ``oldest``, or does not multiply.
        """
        self.path = path
        try:
            self._library = ctypes.CDLL(path)
            self.multiply = self._library.ec_encode_data
            self._prepare = self._library.ec_init_tables
        except (OSError, AttributeError) as error:
            raise ToolError(f"ISA-L cannot be used from {path}: {error}; install libisal2 or pyeclib") from error
        self.multiply.argtypes = [ctypes.c_int] * 3 + [ctypes.c_void_p] * 3
        self.multiply.restype = None
        self._prepare.argtypes = [ctypes.c_int] * 2 + [ctypes.c_void_p] * 2
        self._prepare.restype = None
        numbers = self._numbers()
        self.version = ".".join(map(str, numbers))
        if numbers < oldest:
            needed = ".".join(map(str, oldest))
            raise ToolError(f"ISA-L at {path} is {self.version}, and {needed} is needed; install libisal2 or pyeclib")
        check(self)

    def tables(self, matrix: Bytes) -> Bytes:
        matrix = np.ascontiguousarray(matrix)
        rows, columns = matrix.shape
        tables = np.empty((rows, columns * _TABLE_BYTES), np.uint8)
        self._prepare(columns, rows, address(matrix), address(tables))
        return tables

    def _numbers(self) -> tuple[int, ...]:
        """The version as numbers: asked of the library, which older ones do not answer, or by its file's name."""
        try:
            text = self._library.isal_get_version_str
        except AttributeError:
            return self._numbers_by_name()
        text.restype = ctypes.c_char_p
        return tuple(int(number) for number in re.findall(rb"\d+", text())[:3])

    def _numbers_by_name(self) -> tuple[int, ...]:
        maps = Path("/proc/self/maps").read_text(encoding="utf-8")
        found = re.search(rf"\S*{re.escape(Path(self.path).name)}\.(\d+)\.(\d+)$", maps, re.MULTILINE)
        if found is None:
            raise ToolError(f"ISA-L at {self.path} does not say its version; install libisal2 or pyeclib")
        return 2, int(found[2]), 0

    def __str__(self) -> str:
        return f"{self.name} {self.version} ({self.path})"


class NumpyEngine:
    """Tables of products and numpy: the same bytes as ISA-L, a hundred times slower."""

    name = "numpy"
    version = np.__version__

    def tables(self, matrix: Bytes) -> Bytes:
        return np.ascontiguousarray(matrix)

    def multiply(
        self, length: int, columns: int, rows: int, tables: Pointer, sources: Pointer, outputs: Pointer
    ) -> None:
        matrix = _at(tables, rows * columns).reshape(rows, columns)
        written = np.zeros((rows, length), np.uint8)
        for column, source in enumerate(_addresses_at(sources, columns)):
            written ^= _products()[matrix[:, column]][:, _at(source, length)]
        for row, output in enumerate(_addresses_at(outputs, rows)):
            _at(output, length)[:] = written[row]

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


def check(engine: Engine) -> None:
    """Multiply a little, and compare: a library that is miscompiled for this processor must not get any data.

    Raises ToolError when it multiplies wrongly.
    """
    matrix = np.array([[1, 2, 0x8E], [0xFF, 0, 0x1D]], np.uint8)
    planes = (np.arange(3 * 97) % 251).astype(np.uint8).reshape(3, 97)
    written = np.zeros((2, 97), np.uint8)
    tables = engine.tables(matrix)
    sources = planes.ctypes.data + np.arange(3, dtype=np.uint64) * np.uint64(97)
    outputs = written.ctypes.data + np.arange(2, dtype=np.uint64) * np.uint64(97)
    engine.multiply(97, 3, 2, tables.ctypes.data, sources.ctypes.data, outputs.ctypes.data)
    if not np.array_equal(written, GF8.matrix_product(matrix.astype(np.int64), planes.astype(np.int64))):
        raise ToolError(f"{engine} multiplies wrongly on this machine; install another libisal2 or pyeclib")


@cache
def _products() -> Bytes:
    elements = np.arange(256)
    return GF8.multiply(elements[:, None], elements[None, :]).astype(np.uint8)


def _at(address: Pointer, length: int) -> Bytes:
    return np.frombuffer(memoryview((ctypes.c_uint8 * length).from_address(_number(address))), np.uint8)


def _addresses_at(address: Pointer, count: int) -> NDArray[np.uint64]:
    return np.frombuffer(memoryview((ctypes.c_uint64 * count).from_address(_number(address))), np.uint64)


def _number(address: Pointer) -> int:
    return (address.value or 0) if isinstance(address, ctypes.c_void_p) else int(address)
