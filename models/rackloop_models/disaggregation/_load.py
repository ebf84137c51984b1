"""The load of a rack over a day: of a trace, or made up."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rackloop.seed import stream

# The standard deviation of what a load differs by from the same hour's of another day.
_NOISE = 0.03


@dataclass(frozen=True)
class Load:
    """The load on the rack from a moment on: 1 is the most that all servers together can do."""

    t_s: float
    share: float


def diurnal(*, days: float, step_s: float, seed: int, low: float = 0.1, high: float = 0.95) -> list[Load]:
    """A day and night wave from ``low`` to ``high``, one load each ``step_s``, with noise under ``seed``."""
    chance = stream(seed, "diurnal")
    loads = []
    for step in range(round(days * 86_400 / step_s)):
        t_s = step * step_s
        wave = (1 - math.cos(2 * math.pi * t_s / 86_400)) / 2
        share = low + (high - low) * wave + chance.gauss(0, _NOISE)
        loads.append(Load(t_s, min(1.0, max(0.0, share))))
    return loads


def another_day(loads: Sequence[Load], *, seed: int) -> list[Load]:
    """A day like this one, with the noise of :func:`diurnal` on every load, under ``seed``."""
    chance = stream(seed, "another day")
    return [Load(load.t_s, min(1.0, max(0.0, load.share + chance.gauss(0, _NOISE)))) for load in loads]


def of_requests(requests: Iterable[tuple[float, int]], *, step_s: float, high: float = 0.95) -> list[Load]:
    """The load of a trace, from the moment (in seconds) and the bytes of each request, one load each ``step_s``.

    Its busiest step is ``high``. Raises ValueError where there is no request.
    """
    bins: dict[int, int] = {}
    for t_s, size_bytes in requests:
        step = int(t_s // step_s)
        bins[step] = bins.get(step, 0) + size_bytes
    if not bins:
        raise ValueError("a trace without requests has no load")
    first, most = min(bins), max(bins.values())
    steps = range(first, max(bins) + 1)
    return [Load((step - first) * step_s, high * bins.get(step, 0) / most) for step in steps]


def stretched(loads: Iterable[Load], factor: float) -> list[Load]:
    """The same load, each moment ``factor`` times as late: a trace of two hours as a day."""
    return [Load(load.t_s * factor, load.share) for load in loads]
