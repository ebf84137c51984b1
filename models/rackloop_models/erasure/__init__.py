"""Erasure codes over whole sectors: systematic Cauchy Reed-Solomon, on ISA-L where there is one."""

from rackloop_models.erasure._code import Code
from rackloop_models.erasure._engines import Engine, IsalEngine, NumpyEngine, Pointer, best_engine, engines
from rackloop_models.erasure._field import GF8, GF16, Field
from rackloop_models.erasure._recovery import UnrecoverableError

__all__ = [
    "GF8",
    "GF16",
    "Code",
    "Engine",
    "Field",
    "IsalEngine",
    "NumpyEngine",
    "Pointer",
    "UnrecoverableError",
    "best_engine",
    "engines",
]
