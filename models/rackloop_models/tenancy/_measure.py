"""Scenarios through schedulers, in virtual time on a drive model, and the measures of what each tenant got."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any

import numpy as np

from rackloop.clock import Deadline
from rackloop_models.drives import (
    PREPARATIONS,
    REST,
    DriveSim,
    Experiment,
    Figures,
    Latency,
    Sanitize,
    State,
    TenantLoad,
    Tenants,
    TenantsResult,
)
from rackloop_models.tenancy._scenarios import Condition, Scenario, TenantKind
from rackloop_oracles.fairness import f_util, jain_index, min_max_share, utilisation

STATES: dict[Condition, State] = {"clean": State.FILLED, "fragmented": State.FRAGMENTED}
_AS_NEW = Sanitize(name="as new")

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Timing:
    """The virtual times of a run: a ``warm_up_s`` in which a scheduler finds its rates, then what is measured."""

    warm_up_s: float
    seconds: float


@dataclass(frozen=True)
class TenantOutcome:
    """A tenant's figures, and its fair share of what its kind has alone."""

    name: str
    kind: str
    bytes_per_s: float
    alone_bytes_per_s: float
    f_util: float
    latency_ns: Latency | None


@dataclass(frozen=True)
class Outcome:
    """A scenario with so many tenants through a scheduler."""

    scenario: Scenario
    tenants: tuple[TenantOutcome, ...]
    scheduler: str
    jain: float
    min_max: float
    utilisation: float

    @property
    def count(self) -> int:
        """The number of tenants."""
        return len(self.tenants)

    @property
    def bytes_per_s(self) -> float:
        """The bandwidth of all tenants together."""
        return sum(tenant.bytes_per_s for tenant in self.tenants)

    def of_kind(self, kind: str) -> list[TenantOutcome]:
        """The tenants of a kind."""
        return [tenant for tenant in self.tenants if tenant.kind == kind]

    def worst_ns(self, quantile: str, kind: str | None = None) -> float | None:
        """A quantile of latency of that tenant, of all or of a kind, for which it is longest."""
        found = [
            float(getattr(tenant.latency_ns, quantile))
            for tenant in self.tenants
            if tenant.latency_ns is not None and kind in (None, tenant.kind)
        ]
        return max(found, default=None)


@dataclass(frozen=True)
class _Cell:
    """Tenants through a scheduler, or those of one kind alone."""

    scenario: Scenario
    count: int
    scheduler: str
    loads: tuple[TenantLoad, ...]
    alone: str | None = None


def measured(
    sim: DriveSim,
    scenarios: Sequence[Scenario],
    counts: Sequence[int],
    schedulers: Mapping[str, Mapping[str, Any]],
    timing: Timing,
    deadline: Deadline,
    progress: Progress,
) -> tuple[Outcome, ...]:
    """Each of the scenarios with each number of tenants through each scheduler, given by the name it is told under.

    The standalone maximum of a kind is what as many tenants of that kind get together without a scheduler. Raises
    BadInput where tenants do not fit or drivesim refuses something, ToolError where it fails, DeadlineExceeded.
    """
    cells = [
        cell
        for scenario in scenarios
        for count in counts
        for cell in _cells(scenario, count, sim.size_bytes, list(schedulers))
    ]
    found = _run(sim, cells, schedulers, timing, deadline, progress)
    return tuple(_outcome(cell, found) for cell in cells if cell.alone is None)


def _cells(scenario: Scenario, count: int, size_bytes: int, schedulers: Sequence[str]) -> list[_Cell]:
    loads = scenario.tenants(count, size_bytes)
    alone = [
        _Cell(scenario, count, "none", scenario.alike(kind, count, size_bytes), kind.name) for kind in scenario.kinds
    ]
    return alone + [_Cell(scenario, count, name, loads) for name in schedulers]


def _run(
    sim: DriveSim,
    cells: Sequence[_Cell],
    schedulers: Mapping[str, Mapping[str, Any]],
    timing: Timing,
    deadline: Deadline,
    progress: Progress,
) -> dict[_Cell, TenantsResult]:
    """All cells: fragmented drives are fragmented once for each number of tenants, clean ones are as new for each."""
    lives: dict[tuple[Any, ...], list[_Cell]] = {}
    for cell in cells:
        state = STATES[cell.scenario.condition]
        once = cell.count if state is State.FRAGMENTED else (cell.scenario, cell.count)
        lives.setdefault((state, once), []).append(cell)
    found: dict[_Cell, TenantsResult] = {}
    pool = ThreadPoolExecutor(max_workers=os.cpu_count())
    try:
        # The longest first: fragmenting takes longer than all else.
        order = sorted(lives.items(), key=lambda life: life[0][0] is not State.FRAGMENTED)
        running = [pool.submit(_live, sim, key[0], life, schedulers, timing, deadline) for key, life in order]
        for over, future in enumerate(as_completed(running), 1):
            found |= future.result()
            progress(over, len(running))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    return found


def _live(
    sim: DriveSim,
    state: State,
    life: Sequence[_Cell],
    schedulers: Mapping[str, Mapping[str, Any]],
    timing: Timing,
    deadline: Deadline,
) -> dict[_Cell, TenantsResult]:
    experiments: list[Experiment] = [*PREPARATIONS[state]]
    for number, cell in enumerate(life):
        if number and state is not State.FRAGMENTED:
            experiments += [_AS_NEW, *PREPARATIONS[state]]
        experiments += [REST, _experiment(cell, schedulers, timing)]
    results = [result for result in sim.run(experiments, deadline) if isinstance(result, TenantsResult)]
    return dict(zip(life, results, strict=True))


def _experiment(cell: _Cell, schedulers: Mapping[str, Mapping[str, Any]], timing: Timing) -> Tenants:
    kind = f" {cell.alone}" if cell.alone else ""
    return Tenants(
        name=f"{cell.scenario.condition} {cell.scenario.name} {cell.count} {cell.scheduler}{kind}",
        scheduler={"kind": "none"} if cell.alone else schedulers[cell.scheduler],
        tenants=cell.loads,
        warm_up_s=timing.warm_up_s,
        seconds=timing.seconds,
        histograms=True,
    )


def _outcome(cell: _Cell, found: Mapping[_Cell, TenantsResult]) -> Outcome:
    scenario, result = cell.scenario, found[cell]
    maxima = {
        other.alone: sum(_rate(tenant.total) for tenant in alone.tenants)
        for other, alone in found.items()
        if other.alone and (other.scenario, other.count) == (scenario, cell.count)
    }
    kinds: list[TenantKind] = [scenario.kind_of(number) for number in range(cell.count)]
    alone = np.array([maxima[kind.name] for kind in kinds])
    together = np.array([_rate(tenant.total) for tenant in result.tenants])
    shares = f_util(alone, together)
    tenants = tuple(
        TenantOutcome(one.name, kind.name, float(rate), float(most), float(share), one.total.latency_ns)
        for one, kind, rate, most, share in zip(result.tenants, kinds, together, alone, shares, strict=True)
    )
    return Outcome(
        scenario,
        tenants,
        cell.scheduler,
        jain=float(jain_index(shares)),
        min_max=float(min_max_share(shares)),
        utilisation=float(utilisation(alone, together)),
    )


def _rate(figures: Figures) -> float:
    return figures.bytes_per_s or 0.0
