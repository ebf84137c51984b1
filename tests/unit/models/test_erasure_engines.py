"""What multiplies for the erasure codes: which is taken, what is refused, and the arithmetic of the two fields."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

import numpy as np
import pytest

from rackloop.errors import ToolError
from rackloop.native import BIN_VARIABLE
from rackloop_models.erasure import (
    GF8,
    GF16,
    Bytes,
    Code,
    Field,
    GfniEngine,
    IsalEngine,
    LoopedIsalEngine,
    NumpyEngine,
    Pointer,
    best_engine,
    engines,
)
from rackloop_models.erasure import _choice as erasure_choice
from tests.unit.models.erasure_oracle import byte_product, word_product


def test_the_fastest_engine_comes_first_and_numpy_last() -> None:
    found = engines()
    kinds = (GfniEngine, LoopedIsalEngine, IsalEngine, NumpyEngine)
    order = [kinds.index(type(engine)) for engine in found]
    assert order == sorted(order)
    assert order[-1] == 3
    assert str(Code(4, 2).engine) == str(found[0])
    for kind in (LoopedIsalEngine, IsalEngine):
        versions = [[int(part) for part in engine.version.split(".")] for engine in found if isinstance(engine, kind)]
        assert versions == sorted(versions, reverse=True)
        assert versions, "pyeclib brings a copy of ISA-L, native/build the loops"


def test_what_is_not_native_is_chosen_aloud(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(BIN_VARIABLE, str(tmp_path))
    best_engine.cache_clear()
    try:
        with caplog.at_level(logging.WARNING):
            assert isinstance(Code(4, 2).engine, IsalEngine)
            best_engine.cache_clear()
            monkeypatch.setattr(erasure_choice, "_copies_of_isal", lambda: iter(["libno-such-thing.so"]))
            assert isinstance(Code(4, 2).engine, NumpyEngine)
    finally:
        best_engine.cache_clear()
    assert f"librackloop_erasure.so is not at {tmp_path}" in caplog.text
    assert "erasure codes run on ISA-L" in caplog.text
    assert "called from Python once a block" in caplog.text
    assert "ISA-L cannot be used from libno-such-thing.so" in caplog.text
    assert "no ISA-L here: erasure codes run on numpy" in caplog.text


def test_an_engine_that_is_not_isal_or_too_old_is_refused() -> None:
    with pytest.raises(ToolError, match=r"cannot be used from libc.so.6: .*ec_encode_data; install"):
        IsalEngine("libc.so.6")
    path = next(engine.path for engine in engines() if isinstance(engine, IsalEngine))
    with pytest.raises(ToolError, match=r"is 2\.\d+\.0, and 99.1.0 is needed; install"):
        IsalEngine(path, oldest=(99, 1, 0))


def test_an_engine_that_multiplies_wrongly_is_refused() -> None:
    path = next(engine.path for engine in engines() if isinstance(engine, IsalEngine))

    class Wrong(IsalEngine):
        def tables(self, matrix: Bytes) -> Bytes:
            return super().tables(matrix ^ np.uint8(1))

    with pytest.raises(ToolError, match="multiplies wrongly on this machine"):
        Wrong(path)


def test_workers_multiply_at_the_same_time() -> None:
    class Together(NumpyEngine):
        """Waits until two threads are in it."""

        def __init__(self) -> None:
            self.barrier = threading.Barrier(2, timeout=30)

        def multiply(
            self, length: int, columns: int, rows: int, tables: Pointer, sources: Pointer, outputs: Pointer
        ) -> None:
            self.barrier.wait()
            super().multiply(length, columns, rows, tables, sources, outputs)

    engine = Together()
    words = np.zeros((2, 13, 8), np.uint8)
    Code(10, 3, engine=engine).encode_groups(words[:, :10], words[:, 10:], workers=2)


def test_what_goes_wrong_in_a_worker_is_told() -> None:
    class Faulty(NumpyEngine):
        """Fails in every thread but the first, which waits for it."""

        def __init__(self) -> None:
            self.first = threading.current_thread()
            self.failed = threading.Event()

        def multiply(
            self, length: int, columns: int, rows: int, tables: Pointer, sources: Pointer, outputs: Pointer
        ) -> None:
            if threading.current_thread() is not self.first:
                self.failed.set()
                raise MemoryError("none left")
            assert self.failed.wait(30)

    words = np.zeros((2, 13, 8), np.uint8)
    with pytest.raises(MemoryError, match="none left"):
        Code(10, 3, engine=Faulty()).encode_groups(words[:, :10], words[:, 10:], workers=2)


@pytest.mark.parametrize("field", [GF8, GF16], ids=str)
def test_a_generator_makes_every_element_but_0(field: Field) -> None:
    assert sorted(field.exp[: field.order - 1]) == list(range(1, field.order))
    assert np.array_equal(field.exp[field.log[1:]], np.arange(1, field.order))


def test_products_are_those_of_the_polynomials() -> None:
    numbers = np.random.default_rng(1).integers(0, 65536, (300, 2))
    numbers[:20, 0], numbers[10:30, 1] = 0, 0
    found = GF16.multiply(numbers[:, 0], numbers[:, 1])
    assert [int(number) for number in found] == [word_product(int(a), int(b)) for a, b in numbers]
    elements = np.arange(256)
    table = GF8.multiply(elements[:, None], elements[None, :])
    assert all(int(table[a, b]) == byte_product(a, b) for a in range(256) for b in range(256))
