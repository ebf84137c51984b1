"""Trials: what is done with a drive in a known state, and what is made of the results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

from rackloop.clock import Deadline
from rackloop_models.drives._box import BoxResult
from rackloop_models.drives._experiments import Experiment, Idle, Load
from rackloop_models.drives._measured import known
from rackloop_models.drives._results import LoadResult, Result, SeekResult
from rackloop_models.drives._shapes import Depth, Passes
from rackloop_models.drives._simulation import DriveSim

KIB = 1 << 10
MIB = 1 << 20
# Gimbal (SIGCOMM 2021) calls an SSD clean after a sequential fill in such blocks, and fragmented after long 4 KiB
# random writes.
_FILL_BLOCK_BYTES = 128 * KIB
_OVERWRITES = 3.0

T = TypeVar("T")


class State(Enum):
    """The state of a drive before a trial."""

    NEW = "new"
    FILLED = "filled"
    FRAGMENTED = "fragmented"


_FILL = Load(
    name="fill",
    pattern="sequential",
    read_percent=0,
    block_bytes=_FILL_BLOCK_BYTES,
    arrivals=Depth(32),
    until=Passes(1),
)
_OVERWRITE = Load(
    name="overwrite",
    pattern="random",
    read_percent=0,
    block_bytes=4 * KIB,
    arrivals=Depth(128),
    until=Passes(_OVERWRITES),
)
PREPARATIONS: dict[State, tuple[Experiment, ...]] = {
    State.NEW: (),
    State.FILLED: (_FILL,),
    State.FRAGMENTED: (_FILL, _OVERWRITE),
}
# Longer than any model destages or collects garbage once the host leaves it alone.
REST = Idle(name="rest", seconds=10)


def on_prepared(sim: DriveSim, state: State, acts: Sequence[Experiment], deadline: Deadline) -> tuple[Result, ...]:
    """The result of each of ``acts``, on drives in ``state`` that no other has changed. Raises as DriveSim.run.

    The drives are prepared once, for fragmenting takes longer than all else, and copied for each.
    """
    prepared = (*PREPARATIONS[state], REST)
    return sim.run(prepared, deadline, branches=[(act,) for act in acts])[len(prepared) :]


@dataclass(frozen=True)
class Trial:
    """Experiments on a drive in ``state``."""

    state: State
    experiments: tuple[Experiment, ...]


@dataclass(frozen=True)
class Measurement(Generic[T]):
    """Trials, and what the results of all their experiments, in this order, come to."""

    trials: tuple[Trial, ...]
    evaluate: Callable[[Sequence[Result]], T]


def loads(results: Sequence[Result]) -> list[LoadResult]:
    """Those of the results that are a load's."""
    return [result for result in results if isinstance(result, LoadResult)]


def seeks(results: Sequence[Result]) -> list[SeekResult]:
    """Those of the results that are the arm's."""
    return [result for result in results if isinstance(result, SeekResult)]


def iops(result: LoadResult | BoxResult) -> float:
    """Requests a second; raises ProtocolError where the drive took no time."""
    return known(result.total.iops, result.name)


def bytes_per_s(result: LoadResult) -> float:
    """Bytes a second; raises ProtocolError where the drive took no time."""
    return known(result.total.bytes_per_s, result.name)


def mean_latency_s(result: LoadResult | BoxResult) -> float:
    """The mean latency; raises ProtocolError where nothing completed."""
    latency = result.total.latency_ns
    return known(latency.mean if latency else None, result.name) / 1e9


def p99_latency_s(result: LoadResult) -> float:
    """The 99th percentile of the latency; raises ProtocolError where nothing completed."""
    latency = result.total.latency_ns
    return known(latency.p99 if latency else None, result.name) / 1e9
