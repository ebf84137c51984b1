"""Scenarios through schedulers, in virtual time on a drive model, and the measures of what each tenant got."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, fields
from typing import Any

from rackloop.clock import Deadline
from rackloop.errors import BadInput
from rackloop_models.drives import (
    QUANTILES,
    DriveSim,
    Figures,
    Latency,
    State,
    TenantLoad,
    Tenants,
    TenantsResult,
    all_known,
    on_prepared,
)
from rackloop_models.tenancy._distribution import Buckets, Exceedance, exceedance, merged
from rackloop_models.tenancy._scenarios import Condition, Scenario
from rackloop_models.tenancy._shares import Figure, Shares, shares_of
from rackloop_oracles.fairness import Terms, standalone_maximum

STATES: dict[Condition, State] = {"clean": State.FILLED, "fragmented": State.FRAGMENTED}

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Timing:
    """The virtual times of a run: a ``warm_up_s`` in which a scheduler finds its rates, then what is measured."""

    warm_up_s: float
    seconds: float


@dataclass(frozen=True)
class TenantOutcome:
    """A tenant's figures, and its fair share of what one of its kind has alone: means over the seeds.

    ``least_requests`` are those of the seed in which it completed fewest.
    """

    name: str
    kind: str
    bytes_per_s: float
    alone_bytes_per_s: float
    f_util: float
    least_requests: int
    latency_ns: Latency | None
    latency_buckets: Buckets

    def quantile_ns(self, quantile: str) -> float | None:
        """A quantile of latency, by its name; None where a seed has too few requests for it."""
        if self.latency_ns is None or not QUANTILES[quantile].is_of(self.least_requests):
            return None
        return float(getattr(self.latency_ns, quantile))


@dataclass(frozen=True)
class Outcome:
    """A scenario with so many tenants through a scheduler, over all seeds; ``kinds`` has each kind's mean f-Util."""

    scenario: Scenario
    tenants: tuple[TenantOutcome, ...]
    scheduler: str
    jain: Figure
    min_max: Figure
    utilisation: Figure
    kinds: Mapping[str, Figure]

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

    def distribution(self, kind: str) -> Exceedance:
        """The latencies of all tenants of a kind over all seeds, in seconds: one of so many takes longer."""
        return exceedance(merged(tenant.latency_buckets for tenant in self.of_kind(kind)))

    def worst_ns(self, quantile: str, kind: str | None = None) -> float | None:
        """A quantile of latency of that tenant, of all or of a kind, for which it is longest.

        None where one of them completed too few requests with some seed: it may have waited longer than is known.
        """
        found = (tenant.quantile_ns(quantile) for tenant in self.tenants if kind in (None, tenant.kind))
        return max(all_known(found), default=None)


@dataclass(frozen=True)
class _Cell:
    """Tenants through a scheduler, or one of a kind alone, on a drive of a seed."""

    seed: int
    scenario: Scenario
    count: int
    scheduler: str
    loads: tuple[TenantLoad, ...]
    alone: str | None = None


def measured(
    sims: Mapping[int, DriveSim],
    scenarios: Sequence[Scenario],
    counts: Sequence[int],
    schedulers: Mapping[str, Mapping[str, Any]],
    timing: Timing,
    deadline: Deadline,
    progress: Progress,
) -> tuple[Outcome, ...]:
    """Each of the scenarios with each number of tenants through each scheduler, given by the name it is told under.

    ``sims`` are drives by their seeds, all of one size. The standalone maximum of a kind is what one tenant of it gets
    with its own load and no other tenant on the drive (Gimbal, section 5.1). From five seeds on, ratios have intervals.

    Raises BadInput where tenants do not fit or drivesim refuses something, ToolError where it fails, DeadlineExceeded.
    """
    size_bytes = next(iter(sims.values())).size_bytes
    for scenario in scenarios:
        scenario.require_times(timing.warm_up_s + timing.seconds)
    keys = [(scenario, count) for scenario in scenarios for count in counts]
    cells = [cell for seed in sims for key in keys for cell in _cells(seed, *key, size_bytes, list(schedulers))]
    found = _run(sims, cells, schedulers, timing, deadline, progress)
    return tuple(
        _outcome(
            [cell for cell in cells if (cell.scenario, cell.count) == key],
            name,
            found,
            _terms(key[0], schedulers[name], timing),
        )
        for key in keys
        for name in schedulers
    )


def _cells(seed: int, scenario: Scenario, count: int, size_bytes: int, schedulers: Sequence[str]) -> list[_Cell]:
    loads = scenario.tenants(count, size_bytes)
    # The first of each kind, in the region it has among the others.
    alone = [
        _Cell(seed, scenario, count, "none", (load,), kind.name)
        for kind, load in zip(scenario.kinds, loads, strict=False)
    ]
    return alone + [_Cell(seed, scenario, count, name, loads) for name in schedulers]


def _run(
    sims: Mapping[int, DriveSim],
    cells: Sequence[_Cell],
    schedulers: Mapping[str, Mapping[str, Any]],
    timing: Timing,
    deadline: Deadline,
    progress: Progress,
) -> dict[_Cell, TenantsResult]:
    """All cells, each on a drive that no other has changed; those of a life are on copies of one that was prepared."""
    lives: dict[tuple[Any, ...], list[_Cell]] = {}
    for cell in cells:
        state = STATES[cell.scenario.condition]
        once = cell.count if state is State.FRAGMENTED else (cell.scenario, cell.count)
        lives.setdefault((state, cell.seed, once), []).append(cell)
    found: dict[_Cell, TenantsResult] = {}
    pool = ThreadPoolExecutor(max_workers=os.cpu_count())
    try:
        # The longest first: fragmenting takes longer than all else.
        order = sorted(lives.items(), key=lambda life: life[0][0] is not State.FRAGMENTED)
        running = [
            pool.submit(_live, sims[seed], state, life, schedulers, timing, deadline)
            for (state, seed, _), life in order
        ]
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
    acts = [_experiment(cell, schedulers, timing) for cell in life]
    results = [one for one in on_prepared(sim, state, acts, deadline) if isinstance(one, TenantsResult)]
    return dict(zip(life, results, strict=True))


def _experiment(cell: _Cell, schedulers: Mapping[str, Mapping[str, Any]], timing: Timing) -> Tenants:
    what = f"{cell.alone} alone" if cell.alone else cell.scheduler
    return Tenants(
        name=f"{cell.scenario.condition} {cell.scenario.name} {cell.count} {what}",
        scheduler={"kind": "none"} if cell.alone else schedulers[cell.scheduler],
        tenants=cell.loads,
        warm_up_s=timing.warm_up_s,
        seconds=timing.seconds,
        histograms=True,
    )


def _terms(scenario: Scenario, scheduler: Mapping[str, Any], timing: Timing) -> dict[str, Terms]:
    return {kind.name: kind.terms(scheduler["kind"], timing.warm_up_s) for kind in scenario.kinds}


def _outcome(
    cells: Sequence[_Cell], scheduler: str, found: Mapping[_Cell, TenantsResult], terms: Mapping[str, Terms]
) -> Outcome:
    """The outcome of a scheduler, of the cells of a scenario and a number of tenants over all seeds."""
    together = [cell for cell in cells if cell.alone is None and cell.scheduler == scheduler]
    scenario, count = together[0].scenario, together[0].count
    kinds = [scenario.kind_of(number).name for number in range(count)]
    alone = [
        [
            _alone(kind, next(cell for cell in cells if cell.alone == kind and cell.seed == one.seed), found)
            for kind in kinds
        ]
        for one in together
    ]
    rates = [[_rate(tenant.total) for tenant in found[one].tenants] for one in together]
    if idle := [one.seed for one, row in zip(together, rates, strict=True) if not any(row)]:
        raise BadInput(
            f"scenario {scenario.name}: no tenant is served in the measured time, all together, by {scheduler} with "
            f"seed {idle[0]}; measure for longer, or give the scheduler other parameters"
        )
    shares: Shares = shares_of(kinds, alone, rates, seed=together[0].seed, terms=terms)
    results = [found[one].tenants for one in together]
    tenants = tuple(
        TenantOutcome(
            name=results[0][place].name,
            kind=kind,
            bytes_per_s=_mean([row[place] for row in rates]),
            alone_bytes_per_s=_mean([row[place] for row in alone]),
            f_util=shares.f_utils[place],
            least_requests=min(row[place].total.requests for row in results),
            latency_buckets=merged(row[place].latency_buckets for row in results),
            latency_ns=_latency([row[place].total.latency_ns for row in results]),
        )
        for place, kind in enumerate(kinds)
    )
    return Outcome(scenario, tenants, scheduler, shares.jain, shares.min_max, shares.utilisation, shares.kinds)


def _alone(kind: str, cell: _Cell, found: Mapping[_Cell, TenantsResult]) -> float:
    served = {tenant.name: _rate(tenant.total) for tenant in found[cell].tenants}
    if not any(served.values()):
        raise BadInput(
            f"scenario {cell.scenario.name}: a tenant of kind {kind} does nothing in the measured time even alone; "
            "measure for longer, or let it ask for more"
        )
    return float(standalone_maximum(cell.loads[0].tenant.name, served))


def _latency(found: Sequence[Latency | None]) -> Latency | None:
    """The mean of each quantile over the seeds; None where a seed has none."""
    known = all_known(found)
    if not known:
        return None
    means = {field.name: _mean([getattr(one, field.name) for one in known]) for field in fields(Latency)}
    whole = {name: round(mean) for name, mean in means.items() if name != "mean"}
    return Latency(mean=means["mean"], **whole)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _rate(figures: Figures) -> float:
    return figures.bytes_per_s or 0.0
