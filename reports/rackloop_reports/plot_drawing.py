"""Plots drawn side by side, on as many cores as there are."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Drawing = tuple[Callable[[], "Figure"], Literal["svg", "png"]]
"""A function that draws a figure in the format it is given."""

# A process more takes a tenth of a second to begin: few plots are drawn sooner by one.
_FEW = 4
_waiting: Sequence[Callable[[], bytes]] = ()


def encoded(drawings: Sequence[Drawing], instead: Callable[[Exception], Figure] | None = None) -> list[bytes]:
    """The bytes of each drawing, in their order: the same whatever the number of cores.

    Those that take longest should be the first, so that all cores are done at about the same time.

    A drawing that raises is drawn by ``instead``. Raises what it raises where there is none.
    """
    tasks = [partial(_encode, draw, kind, instead) for draw, kind in drawings]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    if cores < 2 or len(drawings) < _FEW:
        return [task() for task in tasks]
    global _waiting  # noqa: PLW0603 - what a process that is forked finds; a drawing is a closure and cannot be sent
    _waiting = tasks
    try:
        with ProcessPoolExecutor(min(cores, len(drawings)), multiprocessing.get_context("fork")) as processes:
            return list(processes.map(_encode_waiting, range(len(drawings))))
    except BrokenProcessPool:
        # One of them was killed, for want of memory perhaps.
        return [task() for task in tasks]
    finally:
        _waiting = ()


def _encode_waiting(number: int) -> bytes:
    return _waiting[number]()


def _encode(
    draw: Callable[[], Figure], kind: Literal["svg", "png"], instead: Callable[[Exception], Figure] | None
) -> bytes:
    from rackloop_reports import plots

    try:
        return plots.encode(draw(), kind)
    except Exception as error:
        if instead is None:
            raise
        return plots.encode(instead(error), kind)
