"""The results of drivesim, key for key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rackloop_models.drives._blobstore import BlobStoreResult
from rackloop_models.drives._box import BoxResult
from rackloop_models.drives._measured import Figures, Interval
from rackloop_models.drives._tenants import TenantsResult


@dataclass(frozen=True)
class LoadResult:
    """A load's figures over ``seconds`` of virtual time; ``errors`` counts the reads that failed."""

    kind: Literal["load"]
    name: str
    start_s: float
    seconds: float
    errors: int
    total: Figures
    reads: Figures
    writes: Figures
    interval_s: float | None
    intervals: tuple[Interval, ...] | None


@dataclass(frozen=True)
class Distance:
    """The time that the arm takes over a distance, with command and transfer and without the wait for the platter.

    ``positioning_ns`` is the mean of the pairs of requests, ``least_positioning_ns`` that of the quickest pair.
    """

    distance: float | None
    positioning_ns: float
    least_positioning_ns: int
    revolution_ns: int


@dataclass(frozen=True)
class SeekResult:
    """A seek experiment's distances, in the order asked for."""

    kind: Literal["seek"]
    name: str
    pairs: int
    distances: tuple[Distance, ...]


@dataclass(frozen=True)
class SequentialReadResult:
    """The latency of every trial of a sequential read, and how many sectors of all trials had which fate.

    ``failed`` failed fast; ``passed_over`` lay behind one of these in the same request; ``fetched`` were read only to
    decode others; ``read_again`` and ``retried`` were read once more, the latter with the drive's retries; ``lost``
    not even so. ``decoded`` counts groups.
    """

    kind: Literal["stretch"]
    name: str
    latencies_ns: tuple[int, ...]
    failed: int
    passed_over: int
    decoded: int
    fetched: int
    read_again: int
    retried: int
    lost: int


@dataclass(frozen=True)
class StepsResult:
    """The result of a host's steps, and the virtual time they took."""

    kind: Literal["steps"]
    name: str
    seconds: float
    requests: int
    read_bytes: int
    written_bytes: int
    errors: int


@dataclass(frozen=True)
class Done:
    """An experiment that measures nothing, and the virtual time at its end."""

    kind: Literal["idle", "sanitize"]
    name: str
    end_s: float


Result = (
    LoadResult | SeekResult | SequentialReadResult | StepsResult | TenantsResult | BoxResult | BlobStoreResult | Done
)
