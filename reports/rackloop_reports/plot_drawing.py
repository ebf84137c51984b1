"""Plots drawn side by side, on as many cores as there are."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Drawing = tuple[Callable[[], "Figure"], Literal["svg", "png"]]
"""A function that draws a figure in the format it is given."""

# A process more takes a tenth of a second to begin: few plots are drawn sooner by one.
_FEW = 4
_waiting: Sequence[Drawing] = ()


def encoded(drawings: Sequence[Drawing]) -> list[bytes]:
    """The bytes of each drawing, in their order: the same whatever the number of cores.

    Those that take longest should be the first, so that all cores are done at about the same time.

    Raises what a drawing raises.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    if cores < 2 or len(drawings) < _FEW:
        return [_encode(drawing) for drawing in drawings]
    global _waiting  # noqa: PLW0603 - what a process that is forked finds; a drawing is a closure and cannot be sent
    _waiting = drawings
    try:
        with ProcessPoolExecutor(min(cores, len(drawings)), multiprocessing.get_context("fork")) as processes:
            return list(processes.map(_encode_waiting, range(len(drawings))))
    except BrokenProcessPool:
        # One of them was killed, for want of memory perhaps.
        return [_encode(drawing) for drawing in drawings]
    finally:
        _waiting = ()


def _encode_waiting(number: int) -> bytes:
    return _encode(_waiting[number])


def _encode(drawing: Drawing) -> bytes:
    from rackloop_reports import plots

    draw, kind = drawing
    return plots.encode(draw(), kind)
