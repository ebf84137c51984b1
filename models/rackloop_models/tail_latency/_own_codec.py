"""The decoding time of Rackloop's own codec on this machine."""

from __future__ import annotations

from statistics import median

import numpy as np

from rackloop.clock import Clock
from rackloop_models.erasure import Code
from rackloop_models.tail_latency._codes import SECTOR_BYTES

_ROUNDS = 5


def own_decoding(k: int, m: int, clock: Clock) -> tuple[float, ...]:
    """Decode times of a group that is missing 1, 2, ... m user sectors, the median of a few, on one core.

    What the engine that :func:`rackloop_models.erasure.best_engine` finds does now; a busy machine makes them longer.
    Raises BadInput for a code that cannot be.
    """
    code = Code(k, m)
    codeword = np.zeros((k + m, SECTOR_BYTES), np.uint8)
    found = []
    for missing in range(1, m + 1):
        times_ns = []
        for _ in range(_ROUNDS):
            began_ns = clock.now_ns()
            code.decode(codeword, range(missing))
            times_ns.append(clock.now_ns() - began_ns)
        found.append(median(times_ns) / 1e9)
    return tuple(found)
