"""The native library of the erasure codes: what is refused, by libraries that are not what they should be."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rackloop.errors import ToolError
from rackloop.native import BIN_VARIABLE, find_library
from rackloop_models.erasure import Code, GfniEngine, IsalEngine, LoopedIsalEngine, engines
from rackloop_models.erasure._native import ABI, Library

Made = Callable[[str], Path]
NAMES = ("abi", "has_gfni", "recover", "run")


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """Compiles libraries with one C function or more."""

    def make(text: str) -> Path:
        source, library = tmp_path / "library.c", tmp_path / "librackloop_erasure.so"
        source.write_text(text, encoding="utf-8")
        subprocess.run(("cc", "-shared", "-fPIC", "-o", library, source), check=True)
        return library

    return make


def functions(abi: int = ABI, has_gfni: int = 1, run: str = "0") -> str:
    """A library that does nothing when it runs, and returns ``run``, in which ``workers`` may occur."""
    return (
        f"unsigned rackloop_erasure_abi(void) {{ return {abi}; }}\n"
        f"unsigned rackloop_erasure_has_gfni(void) {{ return {has_gfni}; }}\n"
        "int rackloop_erasure_run(const void *works, unsigned long count, unsigned long workers, void *multiply)\n"
        f"{{ return {run}; }}\n"
        "int rackloop_erasure_recover(const void *losses, unsigned long count, unsigned long workers)\n"
        f"{{ return {run}; }}\n"
    )


def isal() -> IsalEngine:
    return next(engine for engine in engines() if isinstance(engine, IsalEngine))


def test_the_library_that_was_built_is_of_this_abi() -> None:
    library = Library(find_library("rackloop_erasure"))
    assert library.has_gfni == any(isinstance(engine, GfniEngine) for engine in engines())


@pytest.mark.parametrize("abi", [ABI - 1, ABI + 1])
def test_another_abi_is_refused(abi: int, made: Made) -> None:
    with pytest.raises(ToolError, match=rf"\.so has ABI {abi}, and {ABI} is needed; run native/build"):
        Library(made(functions(abi=abi)))


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_function_is_refused(name: str, made: Made) -> None:
    text = functions().replace(f"rackloop_erasure_{name}(", "something_else(")
    with pytest.raises(ToolError, match=rf"cannot be used from .*rackloop_erasure_{name}; run native/build"):
        Library(made(text))


def test_what_is_no_library_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "librackloop_erasure.so"
    path.write_bytes(b"no library")
    with pytest.raises(ToolError, match=r"cannot be used from .*librackloop_erasure.so"):
        Library(path)


def test_a_library_that_multiplies_wrongly_is_refused(made: Made) -> None:
    library = Library(made(functions()))
    with pytest.raises(ToolError, match=r"native GFNI .* multiplies wrongly on this machine"):
        GfniEngine(library)
    with pytest.raises(ToolError, match=r"ISA-L in native loops .* multiplies wrongly on this machine"):
        LoopedIsalEngine(library, isal())


def test_what_is_refused_leaves_isal_and_is_told(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made(functions(abi=ABI + 1))
    monkeypatch.setenv(BIN_VARIABLE, str(tmp_path))
    assert isinstance(engines()[0], IsalEngine)
    assert f"has ABI {ABI + 1}, and {ABI} is needed" in caplog.text


@pytest.mark.parametrize(
    ("status", "error", "said"),
    [
        ("1", MemoryError, "no memory for 3 workers"),
        ("2", ToolError, "lacks GFNI or AVX-512"),
        ("1000 + workers", ToolError, "failed with status 1003"),
    ],
)
def test_a_status_is_told_as_an_error(status: str, error: type[Exception], said: str, made: Made) -> None:
    library = Library(made(functions(run=status)))
    with pytest.raises(error, match=said):
        library.run(np.zeros((1, 5), np.uint64), 3, None)
    with pytest.raises(error, match=said):
        library.recover(np.zeros((1, 9), np.uint64), 3)


@pytest.mark.parametrize("engine", [one for one in engines() if hasattr(one, "run")], ids=str)
def test_plans_are_kept_and_serve_other_sectors(engine: GfniEngine | LoopedIsalEngine) -> None:
    code = Code(40, 4, engine=engine)
    numbers = np.random.default_rng(1)
    for erased in ([0, 41], [3], [43], [0, 41], [41, 0], [1, 2, 3, 40]):
        for _ in range(2):
            word = numbers.integers(0, 256, (44, 96), np.uint8)
            code.encode(word[:40], word[40:])
            found = word.copy()
            found[erased] = 0
            code.decode(found, erased)
            assert np.array_equal(found, word)
