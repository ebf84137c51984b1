"""The native library: loops over codewords around a kernel, in one foreign call without the interpreter lock."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import c_int32, c_size_t, c_uint32, c_void_p
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rackloop.errors import ToolError
from rackloop_models.erasure._engines import Engine, IsalEngine, Pointer, check
from rackloop_models.erasure._field import Bytes
from rackloop_models.erasure._sectors import address

# Of what crosses the border, as in native/crates/erasure/src/lib.rs.
ABI = 1
_NO_MEMORY, _NO_KERNEL = 1, 2

Works = NDArray[np.uint64]


class Matrix(ctypes.Structure):
    """``Matrix`` of native/crates/erasure/src/plan.rs."""

    _fields_ = (
        ("rows", c_size_t),
        ("columns", c_size_t),
        ("coefficients", c_void_p),
        ("ones", c_size_t),
        ("blocks", c_void_p),
        ("block_count", c_size_t),
    )


class Plan(ctypes.Structure):
    """``Plan`` of native/crates/erasure/src/plan.rs."""

    _fields_ = (
        ("length", c_size_t),
        ("parts", c_size_t),
        ("adds", c_size_t),
        ("product", Matrix),
        ("lost", c_void_p),
        ("lost_count", c_size_t),
        ("left", c_void_p),
        ("left_count", c_size_t),
        ("solution", Matrix),
    )


class Recovery(ctypes.Structure):
    """``Recovery`` of native/crates/erasure/src/recovery.rs."""

    _fields_ = (
        ("length", c_size_t),
        ("parts", c_size_t),
        ("data", c_size_t),
        ("m", c_size_t),
        ("coefficients", c_void_p),
        ("stride", c_size_t),
        ("exp", c_void_p),
        ("log", c_void_p),
        ("last", c_size_t),
        ("deltas", c_void_p),
    )


class Block(NamedTuple):
    """Columns that follow each other, and the address of what prepares their coefficients for ISA-L."""

    columns: int
    tables: int


class NativeEngine(Engine, Protocol):
    """An engine that does whole codewords, many in one call.

    ``run`` does works: rows of five numbers, as ``Work`` of native/crates/erasure/src/plan.rs has them, all of whose
    addresses are valid. ``takes_blocks`` says whether matrices need ISA-L's tables rather than their coefficients.
    """

    @property
    def takes_blocks(self) -> bool: ...
    def run(self, works: Works, workers: int) -> None: ...


class Library:
    """librackloop_erasure.so. Raises ToolError: it cannot be loaded, or is of another ABI."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            library = ctypes.CDLL(str(path))
            abi, has_gfni = library.rackloop_erasure_abi, library.rackloop_erasure_has_gfni
            self._run, self._recover = library.rackloop_erasure_run, library.rackloop_erasure_recover
        except (OSError, AttributeError) as error:
            raise ToolError(f"native erasure coding cannot be used from {path}: {error}; run native/build") from error
        abi.restype = has_gfni.restype = c_uint32
        abi.argtypes = has_gfni.argtypes = ()
        if abi() != ABI:
            raise ToolError(f"native erasure coding at {path} has ABI {abi()}, and {ABI} is needed; run native/build")
        self.has_gfni = bool(has_gfni())
        self._run.argtypes = (c_void_p, c_size_t, c_size_t, c_void_p)
        self._recover.argtypes = (c_void_p, c_size_t, c_size_t)
        self._run.restype = self._recover.restype = c_int32

    def run(self, works: Works, workers: int, multiply: int | None) -> None:
        """Do ``works``, with ISA-L's ``ec_encode_data`` at the address ``multiply`` or the library's own kernels.

        Raises MemoryError, and ToolError where the processor lacks what the kernels need or they have a fault.
        """
        self._judge(self._run(address(works), len(works), workers, multiply), workers)

    def recover(self, losses: Works, workers: int) -> None:
        """Make up for ``losses`` with the library's own kernels. Raises as ``run``."""
        self._judge(self._recover(address(losses), len(losses), workers), workers)

    def _judge(self, status: int, workers: int) -> None:
        if status == _NO_MEMORY:
            raise MemoryError(f"native erasure coding: no memory for {workers} workers to compute in")
        if status == _NO_KERNEL:
            raise ToolError(f"native erasure coding at {self.path}: this processor lacks GFNI or AVX-512")
        if status:
            raise ToolError(f"native erasure coding at {self.path} failed with status {status}: a fault in it")


class GfniEngine:
    """Kernels of Rackloop's own for processors with GFNI and AVX-512. Raises ToolError where they cannot be used."""

    name = "native GFNI"
    takes_blocks = False

    def __init__(self, library: Library) -> None:
        self._library = library
        self.version = str(ABI)
        check(self)

    def tables(self, matrix: Bytes) -> Bytes:
        return np.ascontiguousarray(matrix)

    def multiply(
        self, length: int, columns: int, rows: int, tables: Pointer, sources: Pointer, outputs: Pointer
    ) -> None:
        begin = (tables.value or 0) if isinstance(tables, c_void_p) else tables
        of_rows = begin + np.arange(rows, dtype=np.uint64) * np.uint64(columns)
        matrix = Matrix(rows, columns, address(of_rows))
        _multiply(self, length, matrix, sources, outputs)

    def run(self, works: Works, workers: int) -> None:
        self._library.run(works, workers, None)

    def recover(self, losses: Works, workers: int) -> None:
        """Do losses: rows of nine numbers, as ``Loss`` of native/crates/erasure/src/recovery.rs has them."""
        self._library.recover(losses, workers)

    def __str__(self) -> str:
        return f"{self.name} ({self._library.path})"


class LoopedIsalEngine:
    """ISA-L, called by native loops. Raises ToolError when they compute wrongly with it."""

    name = "ISA-L in native loops"
    takes_blocks = True

    def __init__(self, library: Library, isal: IsalEngine) -> None:
        self._library = library
        self._isal = isal
        self._multiply_at = ctypes.cast(isal.multiply, c_void_p).value
        self.version = isal.version
        self.tables = isal.tables
        check(self)

    def multiply(
        self, length: int, columns: int, rows: int, tables: Pointer, sources: Pointer, outputs: Pointer
    ) -> None:
        begin = (tables.value or 0) if isinstance(tables, c_void_p) else tables
        block = blocks_array([Block(columns, begin)])
        _multiply(self, length, Matrix(rows, columns, None, 0, address(block), 1), sources, outputs)

    def run(self, works: Works, workers: int) -> None:
        self._library.run(works, workers, self._multiply_at)

    def __str__(self) -> str:
        return f"{self.name} {self.version} ({self._library.path}, {self._isal.path})"


def blocks_array(blocks: Sequence[Block]) -> Works:
    """``Block``s of native/crates/erasure/src/plan.rs."""
    return np.array(blocks, np.uint64).reshape(len(blocks), 2)


def _multiply(engine: NativeEngine, length: int, matrix: Matrix, sources: Pointer, outputs: Pointer) -> None:
    plan = Plan(length=length, parts=1, product=matrix)
    at = [pointer.value or 0 if isinstance(pointer, c_void_p) else pointer for pointer in (sources, outputs)]
    engine.run(np.array([[ctypes.addressof(plan), at[0], 0, at[1], 0]], np.uint64), 1)
