"""Tenants experiments of drivesim, key for key: many loads on one drive, through a scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from rackloop_models.drives._measured import Figures, Interval, Latency
from rackloop_models.drives._shapes import Depth, Operation, Pattern, Rate, Region

Priority = Literal["urgent", "high", "medium", "low"]


@dataclass(frozen=True)
class Slo:
    """A service level objective: requests of 4 KiB a second, and the bound on the 95th percentile of read latency."""

    iops: float
    read_percent: float
    p95_us: float


@dataclass(frozen=True, kw_only=True)
class Tenant:
    """A tenant as the scheduler is told; one that has no use for a weight or an objective ignores it."""

    name: str
    weight: float = 1.0
    slo: Slo | None = None
    read_only: bool = False


@dataclass(frozen=True)
class Bursts:
    """Times with and without requests, in turns."""

    on_s: float
    off_s: float


@dataclass(frozen=True)
class WeightedSize:
    """Requests of a size, in a mix of sizes; ``weight`` is relative to those of the others."""

    block_bytes: int
    weight: float


@dataclass(frozen=True, kw_only=True)
class WeightedOperation:
    """An operation in a mix, such as a get or a compaction of a key-value store."""

    operation: Operation
    block_bytes: int
    weight: float
    pattern: Pattern = "random"
    priority: Priority | None = None


@dataclass(frozen=True)
class TraceReplay:
    """A trace in JSON lines, as :func:`write_replay` writes it, ``speed`` times as fast as it was recorded."""

    path: str
    speed: float = 1.0
    repeat: bool = False


@dataclass(frozen=True, kw_only=True)
class TenantLoad:
    """A tenant and its requests; times are since the beginning of the warm-up.

    Exactly one of ``block_bytes`` and ``sizes``, both with a ``pattern``, ``operations`` and ``trace`` says what they
    are. A trace without ``arrivals`` comes at its own times. Of a box ``drive`` is one of its drives. A tenant that
    ``follows_credit`` keeps its outstanding requests within the credit that completions carry.
    """

    tenant: Tenant
    pattern: Pattern | None = None
    block_bytes: int | None = None
    sizes: tuple[WeightedSize, ...] | None = None
    operations: tuple[WeightedOperation, ...] | None = None
    trace: TraceReplay | None = None
    arrivals: Depth | Rate | None = None
    read_percent: float | None = None
    region: Region | None = None
    priority: Priority = "medium"
    follows_credit: bool = False
    drive: int | None = None
    bursts: Bursts | None = None
    joins_s: float = 0.0
    disconnects_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class Tenants:
    """Tenants that share the drive; ``scheduler`` is its ``kind`` and those parameters that differ from its defaults.

    With ``interval_s`` the result is told by intervals of this length too, with the scheduler's state at their ends,
    and with ``histograms`` the distribution of each tenant's latencies.
    """

    name: str
    tenants: tuple[TenantLoad, ...]
    seconds: float
    scheduler: Mapping[str, Any] = field(default_factory=lambda: {"kind": "none"}, hash=False)
    warm_up_s: float = 0.0
    interval_s: float | None = None
    histograms: bool = False
    kind: Literal["tenants"] = "tenants"


@dataclass(frozen=True)
class TenantResult:
    """A tenant's figures; latencies are from arrival to completion, ``device_latency_ns`` from dispatch on.

    ``latency_buckets`` are upper bounds in ns, each with the number of latencies up to it and beyond the one before.
    """

    name: str
    errors: int
    total: Figures
    reads: Figures
    writes: Figures
    interval_s: float | None
    intervals: tuple[Interval, ...] | None
    device_latency_ns: Latency | None
    dropped: int
    latency_buckets: tuple[tuple[int, int], ...] | None = None


@dataclass(frozen=True)
class SchedulerState:
    """A scheduler's own state, ``at_s`` since the start of the measured time."""

    at_s: float
    state: dict[str, Any]


@dataclass(frozen=True)
class TenantsResult:
    """The figures of every tenant over ``seconds`` of virtual time, and the scheduler's ``snapshot`` at their end."""

    kind: Literal["tenants"]
    name: str
    scheduler: str
    start_s: float
    seconds: float
    tenants: tuple[TenantResult, ...]
    states: tuple[SchedulerState, ...] | None
    snapshot: dict[str, Any]

    def of(self, name: str) -> TenantResult:
        """The figures of the tenant of that name; raises KeyError where there is none."""
        found = {one.name: one for one in self.tenants}
        return found[name]
