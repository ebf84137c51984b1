"""Erasure codes over whole sectors: systematic Cauchy Reed-Solomon, at memory speed where there is native code."""

from rackloop_models.erasure._choice import best_engine as best_engine
from rackloop_models.erasure._choice import engines as engines
from rackloop_models.erasure._code import Code as Code
from rackloop_models.erasure._engines import Engine as Engine
from rackloop_models.erasure._engines import IsalEngine as IsalEngine
from rackloop_models.erasure._engines import NumpyEngine as NumpyEngine
from rackloop_models.erasure._engines import Pointer as Pointer
from rackloop_models.erasure._failure_probability import TARGET as TARGET
from rackloop_models.erasure._failure_probability import ChosenCode as ChosenCode
from rackloop_models.erasure._failure_probability import choose_code as choose_code
from rackloop_models.erasure._failure_probability import decoding_failure as decoding_failure
from rackloop_models.erasure._failure_probability import metadata_replicas as metadata_replicas
from rackloop_models.erasure._failure_probability import require_probability as require_probability
from rackloop_models.erasure._field import GF8 as GF8
from rackloop_models.erasure._field import GF16 as GF16
from rackloop_models.erasure._field import Bytes as Bytes
from rackloop_models.erasure._field import Field as Field
from rackloop_models.erasure._native import GfniEngine as GfniEngine
from rackloop_models.erasure._native import LoopedIsalEngine as LoopedIsalEngine
from rackloop_models.erasure._native import NativeEngine as NativeEngine
from rackloop_models.erasure._recovery import UnrecoverableError as UnrecoverableError
