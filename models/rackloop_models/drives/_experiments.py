"""The experiments of drivesim, key for key as its document has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from rackloop_models.drives._blobstore import BlobStore
from rackloop_models.drives._box import Box
from rackloop_models.drives._shapes import Amount, Depth, Operation, Pattern, Rate, Region
from rackloop_models.drives._tenants import Tenants


@dataclass(frozen=True, kw_only=True)
class Load:
    """Requests of one size on ``region`` (without one: all of the drive); ``warm_up`` comes first, unmeasured.

    With ``interval_s`` the result is told by intervals of this length too.
    """

    name: str
    pattern: Pattern
    block_bytes: int
    arrivals: Depth | Rate
    until: Amount
    warm_up: Amount | None = None
    read_percent: float = 100.0
    region: Region | None = None
    interval_s: float | None = None
    fua: bool = False
    fail_fast: bool = False
    kind: Literal["load"] = "load"


@dataclass(frozen=True, kw_only=True)
class Seek:
    """The arm alone, over ``distances`` (shares of the stroke) or, without them, between any two cylinders.

    ``inner_share`` is what an innermost track holds of what an outermost one does.
    """

    name: str
    operation: Operation
    pairs: int
    distances: tuple[float, ...] | None = None
    inner_share: float = 1.0
    kind: Literal["seek"] = "seek"


@dataclass(frozen=True)
class LocalCode:
    """Groups of ``k`` user sectors and ``m`` redundancy sectors; ``decode_us`` is for 1, 2, ... ``m`` missing ones."""

    k: int
    m: int
    decode_us: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class SequentialRead:
    """``sectors`` consecutive user sectors of 4 KiB of a file of ``file_sectors``, or all of it, ``trials`` times.

    Each time the file lies elsewhere, caches are cold, and the arm is there when the clock begins, unless it
    ``seeks``. With a ``code`` reads fail fast and what is missing is decoded; without one the drive retries.
    """

    name: str
    sectors: int
    trials: int
    request_sectors: int
    depth: int
    file_sectors: int | None = None
    seeks: bool = False
    code: LocalCode | None = None
    kind: Literal["stretch"] = "stretch"


@dataclass(frozen=True)
class Ask:
    """A request of a step; a flush has neither ``offset`` nor ``length``."""

    operation: Literal["read", "write", "flush"]
    offset: int = 0
    length: int = 0


@dataclass(frozen=True)
class Step:
    """Requests that are given to the drive together, once the host has worked for ``work_us``."""

    requests: tuple[Ask, ...]
    work_us: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Steps:
    """A host's requests, each step when the one before is over."""

    name: str
    steps: tuple[Step, ...]
    kind: Literal["steps"] = "steps"


@dataclass(frozen=True, kw_only=True)
class Idle:
    """Nothing, for a virtual time."""

    name: str
    seconds: float
    kind: Literal["idle"] = "idle"


@dataclass(frozen=True, kw_only=True)
class Sanitize:
    """Back to the state of the factory."""

    name: str
    kind: Literal["sanitize"] = "sanitize"


Experiment = Load | Seek | SequentialRead | Steps | Tenants | Box | BlobStore | Idle | Sanitize


@dataclass(frozen=True)
class Document:
    """The input of drivesim: alike drives and the experiments they go through, in this order.

    Each of ``branches`` is further experiments, on copies of the drives as these have left them.
    """

    timing: dict[str, Any]
    bytes: int
    sector_bytes: int
    seed: int
    experiments: tuple[Experiment, ...]
    branches: tuple[tuple[Experiment, ...], ...] = ()
    drives: int = 1
    schema: Literal[1] = 1
