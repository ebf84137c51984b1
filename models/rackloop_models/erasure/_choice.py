"""The engines that this machine has, and the choice of one."""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from rackloop.errors import ToolError
from rackloop.native import find_library
from rackloop_models.erasure._engines import Engine, IsalEngine, NumpyEngine
from rackloop_models.erasure._native import GfniEngine, Library, LoopedIsalEngine, NativeEngine

SYSTEM = "libisal.so.2"
_LOG = logging.getLogger("rackloop.erasure")


def engines() -> tuple[Engine, ...]:
    """The engines of this machine, best first: native, then ISA-L alone, newer copies before older ones, numpy last."""
    isal: list[IsalEngine] = []
    for path in _copies_of_isal():
        try:
            isal.append(IsalEngine(path))
        except ToolError as error:
            _LOG.warning("%s", error)
    isal.sort(key=lambda engine: [int(number) for number in engine.version.split(".")], reverse=True)
    return (*_native(isal), *isal, NumpyEngine())


@cache
def best_engine() -> Engine:
    """The first of ``engines()``. That it is not native, or that it is numpy, is logged as a warning."""
    best = engines()[0]
    if isinstance(best, IsalEngine):
        _LOG.warning("erasure codes run on %s, called from Python once a block: about half as fast as native", best)
    if isinstance(best, NumpyEngine):
        _LOG.warning("no ISA-L here: erasure codes run on numpy, about 100 times slower; install libisal2 or pyeclib")
    return best


def _native(isal: list[IsalEngine]) -> Iterator[NativeEngine]:
    try:
        library = Library(find_library("rackloop_erasure"))
        if library.has_gfni:
            yield GfniEngine(library)
        for engine in isal:
            yield LoopedIsalEngine(library, engine)
    except ToolError as error:
        _LOG.warning("%s", error)


def _copies_of_isal() -> Iterator[str]:
    """Paths, or names for the loader, of every copy that is there."""
    pyeclib = find_spec("pyeclib")
    for folder in (pyeclib.submodule_search_locations or ()) if pyeclib else ():
        for path in sorted(Path(folder).parent.glob("pyeclib.libs/libisal*.so*")):
            yield str(path)
    try:
        ctypes.CDLL(SYSTEM)
    except OSError:
        return
    yield SYSTEM
