"""Tenants experiments of drivesim, key for key: many loads on one drive, through a scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from rackloop_models.drives._measured import Figures, Interval, Latency
from rackloop_models.drives._shapes import Depth, Pattern, Rate, Region


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


@dataclass(frozen=True, kw_only=True)
class TenantLoad:
    """A tenant and its requests, all of one size; times are since the beginning of the warm-up."""

    tenant: Tenant
    pattern: Pattern
    block_bytes: int
    arrivals: Depth | Rate
    read_percent: float = 100.0
    region: Region | None = None
    bursts: Bursts | None = None
    joins_s: float = 0.0
    disconnects_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class Tenants:
    """Tenants that share the drive; ``scheduler`` is its ``kind`` and those parameters that differ from its defaults.

    With ``interval_s`` the result is told by intervals of this length too, with the scheduler's state at their ends.
    """

    name: str
    tenants: tuple[TenantLoad, ...]
    seconds: float
    scheduler: Mapping[str, Any] = field(default_factory=lambda: {"kind": "none"}, hash=False)
    warm_up_s: float = 0.0
    interval_s: float | None = None
    kind: Literal["tenants"] = "tenants"


@dataclass(frozen=True)
class TenantResult:
    """A tenant's figures; latencies are from arrival to completion, ``device_latency_ns`` from dispatch on."""

    name: str
    errors: int
    total: Figures
    reads: Figures
    writes: Figures
    interval_s: float | None
    intervals: tuple[Interval, ...] | None
    device_latency_ns: Latency | None
    dropped: int


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
