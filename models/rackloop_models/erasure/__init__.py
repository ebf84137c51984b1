"""Erasure codes over whole sectors: systematic Cauchy Reed-Solomon, at memory speed where there is native code."""

from rackloop_models.erasure._choice import best_engine, engines
from rackloop_models.erasure._code import Code
from rackloop_models.erasure._engines import Engine, IsalEngine, NumpyEngine, Pointer
from rackloop_models.erasure._failure_probability import (
    TARGET,
    ChosenCode,
    choose_code,
    decoding_failure,
    metadata_replicas,
    require_probability,
)
from rackloop_models.erasure._field import GF8, GF16, Bytes, Field
from rackloop_models.erasure._native import GfniEngine, LoopedIsalEngine, NativeEngine
from rackloop_models.erasure._recovery import UnrecoverableError

__all__ = [
    "GF8",
    "GF16",
    "TARGET",
    "Bytes",
    "ChosenCode",
    "Code",
    "Engine",
    "Field",
    "GfniEngine",
    "IsalEngine",
    "LoopedIsalEngine",
    "NativeEngine",
    "NumpyEngine",
    "Pointer",
    "UnrecoverableError",
    "best_engine",
    "choose_code",
    "decoding_failure",
    "engines",
    "metadata_replicas",
    "require_probability",
]
