"""Figures of requests, key for key as results of drivesim have them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from rackloop.errors import ProtocolError

T = TypeVar("T")


def all_known(values: Iterable[T | None]) -> list[T]:
    """The values where each is known, else none of them: one that is missing could be the worst."""
    found = list(values)
    known = [value for value in found if value is not None]
    return known if len(known) == len(found) else []


@dataclass(frozen=True)
class Latency:
    """Latencies in ns, from submission to completion."""

    mean: float
    min: int
    p50: int
    p90: int
    p99: int
    p99_9: int
    max: int


@dataclass(frozen=True)
class Figures:
    """Figures of requests; rates are None where the drive took no time, latencies where there was no request."""

    requests: int
    bytes: int
    iops: float | None
    bytes_per_s: float | None
    latency_ns: Latency | None


@dataclass(frozen=True)
class Interval:
    """The completions within an interval."""

    requests: int
    bytes: int
    mean_latency_ns: int
    max_latency_ns: int


def known(value: T | None, experiment: str) -> T:
    """A figure of the experiment of that name; raises ProtocolError where it has none: nothing was done in it."""
    if value is None:
        raise ProtocolError(f"the experiment {experiment!r} came to nothing")
    return value
