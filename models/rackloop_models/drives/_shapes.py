"""The parts of a load of any kind: patterns, arrivals, amounts and regions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Pattern = Literal["random", "sequential"]
Operation = Literal["read", "write"]


@dataclass(frozen=True)
class Depth:
    """A closed loop: as many requests are kept in flight."""

    depth: int


@dataclass(frozen=True)
class Rate:
    """An open loop: requests come in a Poisson process, whatever the drive makes of them."""

    per_second: float


@dataclass(frozen=True)
class Requests:
    """Until as many have completed."""

    requests: int


@dataclass(frozen=True)
class Seconds:
    """For this virtual time."""

    seconds: float


@dataclass(frozen=True)
class Passes:
    """As many requests as it takes to cover the region so often, each completed."""

    passes: float


Amount = Requests | Seconds | Passes


@dataclass(frozen=True)
class Region:
    """A part of a drive, in bytes."""

    offset: int
    length: int
