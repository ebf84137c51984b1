"""`rackloop model store`: key-value stores on a box of shared drives, through schedulers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from rich.console import Console

from rackloop.clock import Deadline, RealClock
from rackloop.errors import EXIT_PASS, BadInput
from rackloop.lab import load_profile
from rackloop.names import guess
from rackloop.units import format_quantity
from rackloop_cli.model.curves import size_of
from rackloop_cli.model.tenancy_results import claim_rows
from rackloop_cli.shared.output import each_once, make_directory, say, write_files, write_results
from rackloop_cli.shared.tables import print_whole, table_of_figures
from rackloop_drivers.host import LocalExecutor
from rackloop_drivers.storage_switch import SCHEDULERS, scheduler_of
from rackloop_models.drives import QUANTILES, all_known

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rackloop_models.client import Cell, StoreOutcome
    from rackloop_models.tenancy import Claim

MIXES = ("a", "b", "c", "d", "e", "f")
DRIVES = 4
_WITHIN_S = 7200.0


@dataclass(frozen=True, kw_only=True)
class StoreRequest:
    """The selection to run; no schedulers are all of them."""

    mixes: Sequence[str]
    condition: str
    schedulers: Sequence[str]
    clients: int
    records: int
    depth: int
    seconds: float
    warm_up_s: float
    profile: str
    size: str
    seed: int
    seeds: int
    out: Path | None
    as_json: bool


@dataclass(frozen=True)
class Run:
    """The cells of one mix from one seed."""

    mix: str
    seed: int
    outcomes: Sequence[StoreOutcome]


def store(request: StoreRequest) -> int:
    """Run every cell, print the tables or JSON, and draw the figures."""
    from rackloop_models.client import Setup, store_claims, stores
    from rackloop_models.drives import DriveSim
    from rackloop_models.tenancy import CONDITIONS, STATES

    mixes = each_once(request.mixes)
    for mix in mixes:
        _require_known("--mix", mix, MIXES)
    _require_known("--condition", request.condition, CONDITIONS)
    schedulers = {text: scheduler_of(text, "--scheduler") for text in each_once(request.schedulers or SCHEDULERS)}
    profile, clock = load_profile(request.profile), RealClock()
    if profile.timing["kind"] != "ssd":
        raise BadInput(f"profile {profile.name} is no SSD; name one, as nvme-ssd")
    make_directory(request.out)
    state = next(state for condition, state in STATES.items() if condition == request.condition)
    deadline = Deadline.after(clock, _WITHIN_S)
    runs: list[Run] = []
    with LocalExecutor(clock) as executor:
        for mix in mixes:
            setup = Setup(
                mix=mix,
                clients=request.clients,
                records=request.records,
                depth=request.depth,
                seconds=request.seconds,
                warm_up_s=request.warm_up_s,
            )
            for seed in range(request.seed, request.seed + request.seeds):
                sim = DriveSim(executor, profile, size_bytes=size_of(request.size), seed=seed, drives=DRIVES)
                runs.append(Run(mix, seed, stores(sim, setup, schedulers, state, deadline)))
    by_mix = _by_mix(runs)
    claims = store_claims(by_mix)
    settings = {"simulated": True, "profile": profile.name, **_settings(request), "claims": claim_rows(claims)}
    if not request.as_json:
        for mix, cells in by_mix.items():
            _print(cells, _caption(request, [mix]))
        _print_claims(claims)
    if request.out is not None:
        names = _draw(request.out, by_mix, request)
        if not request.as_json:
            say(f"{', '.join(names)} are in {request.out}")
    write_results(request.out, "store", settings, rows(runs), as_json=request.as_json)
    return EXIT_PASS


def rows(runs: Iterable[Run]) -> list[dict[str, Any]]:
    """A row for each cell of each run; latencies of gets are means over clients, and those of the worst client."""
    return [
        {
            "mix": run.mix,
            "seed": run.seed,
            "scheduler": one.cell.scheduler,
            "ablation": one.cell.ablation,
            "operations_per_s": one.operations_per_s,
            "alone_operations_per_s": one.alone_operations_per_s,
            "f_utils": one.f_utils,
            "jain": one.jain,
            **{f"get_{name}_ns": one.mean_get_ns(name) for name in QUANTILES},
            **{f"worst_get_{name}_ns": one.worst_get_ns(name) for name in QUANTILES},
            "second_replica_share": one.second_replica_share,
            "write_amplification": [client.write_amplification for client in one.clients],
            "read_amplification": [client.read_amplification for client in one.clients],
            "errors": one.errors,
        }
        for run in runs
        for one in run.outcomes
    ]


def _require_known(option: str, name: str, known: Iterable[str]) -> None:
    if name not in (names := list(known)):
        raise BadInput(f"{option} {name}: there is none of that name; {guess(name, names)}")


def _settings(request: StoreRequest) -> dict[str, Any]:
    names = ("mixes", "condition", "clients", "records", "depth", "seconds", "warm_up_s", "size", "seed", "seeds")
    return {name: getattr(request, name) for name in names}


def _by_mix(runs: Iterable[Run]) -> dict[str, dict[Cell, list[StoreOutcome]]]:
    """For each mix its cells, with an outcome from each seed."""
    found: dict[str, dict[Cell, list[StoreOutcome]]] = {}
    for run in runs:
        for outcome in run.outcomes:
            found.setdefault(run.mix, {}).setdefault(outcome.cell, []).append(outcome)
    return found


def _mean(outcomes: Iterable[StoreOutcome], figure: Callable[[StoreOutcome], float | None]) -> float | None:
    """The mean over seeds; None where one has no figure."""
    values = all_known(figure(one) for one in outcomes)
    return fmean(values) if values else None


def _rate(outcomes: Iterable[StoreOutcome]) -> float:
    return fmean(one.operations_per_s for one in outcomes)


def _get_ns(outcomes: Iterable[StoreOutcome], quantile: str) -> float | None:
    return _mean(outcomes, lambda one: one.mean_get_ns(quantile))


def _caption(request: StoreRequest, mixes: Sequence[str]) -> str:
    last = request.seed + request.seeds - 1
    seeds = f"seed {request.seed}" if request.seeds == 1 else f"means of seeds {request.seed} to {last}"
    return (
        f"YCSB {', '.join(mixes).upper()}, {request.clients} clients of {request.records} records of 1 KiB, {DRIVES} "
        f"drives {request.profile}, {request.condition}, {seeds}, in virtual time: {request.seconds:g} s after "
        f"{request.warm_up_s:g} s."
    )


def _print(cells: Mapping[Cell, Sequence[StoreOutcome]], caption: str) -> None:
    names = (
        "scheduler",
        "operations/s",
        "to the first",
        "f-Util",
        "Jain",
        *(one.shown for one in QUANTILES.values()),
        "second replica",
    )
    table = table_of_figures(*names, left={"scheduler"}, title=caption)
    first = _rate(next(iter(cells.values())))
    for cell, outcomes in cells.items():
        latencies = (_get_ns(outcomes, name) for name in QUANTILES)
        f_utils = [f_util for one in outcomes for f_util in one.f_utils]
        share = _mean(outcomes, lambda one: one.second_replica_share)
        table.add_row(
            cell.name,
            f"{_rate(outcomes):.0f}",
            f"{_rate(outcomes) / first:.2f}",
            f"{min(f_utils):.2f} to {max(f_utils):.2f}",
            f"{fmean(one.jain for one in outcomes):.3f}",
            *("-" if value is None else format_quantity(value / 1e9, "s") for value in latencies),
            "-" if share is None else f"{share:.0%}",
        )
    print_whole(Console(), table)


def _draw(out: Path, found: Mapping[str, Mapping[Cell, Sequence[StoreOutcome]]], request: StoreRequest) -> list[str]:
    """Draw the figures; returns the names of their files."""
    caption = _caption(request, list(found))
    figures = {"store": _figure(found, caption)}
    parts = {mix: of for mix, cells in found.items() if _get_ns((of := _parts(cells)).get("whole", ()), "p99_9")}
    if parts:
        figures["store-client"] = _parts_figure(parts, caption)
    for name, figure in figures.items():
        write_files(out, {}, name, figure)
    return [f"{name}.{kind}" for name in figures for kind in ("svg", "png")]


def _print_claims(claims: Sequence[Claim]) -> None:
    table = table_of_figures("claim", "published", "ours, on Gimbal", left={"claim", "published", "ours, on Gimbal"})
    for claim in claims:
        table.add_row(claim.claim, claim.published, claim.ours)
    print_whole(Console(), table)


def _figure(found: Mapping[str, Mapping[Cell, Sequence[StoreOutcome]]], caption: str) -> Figure:
    from rackloop_reports.plots import TailRange, tail_ranges

    panels = []
    for mix, cells in found.items():
        quantiles = {
            cell: {one.shown: value / 1e9 for name, one in QUANTILES.items() if (value := _get_ns(outcomes, name))}
            for cell, outcomes in cells.items()
        }
        shown = {cell: f"{cell.name}\n{_rate(outcomes) / 1e3:.0f}k/s" for cell, outcomes in cells.items()}
        whole = {shown[cell]: values for cell, values in quantiles.items() if cell.ablation is None}
        parts = {shown[cell]: values for cell, values in quantiles.items() if cell.ablation is not None}
        panels.append(TailRange(f"{mix.upper()}: schedulers", whole))
        if parts:
            panels.append(TailRange(f"{mix.upper()}: the client without a part", parts))
    return tail_ranges(panels, "Key-value stores: gets, and operations/s below (simulated)", caption)


def _parts(cells: Mapping[Cell, Sequence[StoreOutcome]]) -> dict[str, Sequence[StoreOutcome]]:
    """The client with a choice of replicas, whole and without its parts; nothing where no scheduler was run without."""
    scheduler = next((cell.scheduler for cell in cells if cell.ablation), None)
    return {
        cell.ablation or "whole": outcomes
        for cell, outcomes in cells.items()
        if cell.scheduler == scheduler and cell.ablation != "one replica"
    }


def _parts_figure(found: Mapping[str, Mapping[str, Sequence[StoreOutcome]]], caption: str) -> Figure:
    """The whole client beside itself without a part, in each mix."""
    from rackloop_reports.plots import TenantBars, tenant_bars

    def panel(title: str, figure: Callable[[Sequence[StoreOutcome]], float]) -> TenantBars:
        names = next(iter(found.values()))
        series = {name: [figure(parts[name]) / figure(parts["whole"]) for parts in found.values()] for name in names}
        return TenantBars(title, [f"YCSB {mix.upper()}" for mix in found], series, ideal=1.0)

    panels = [
        panel("Operations/s", _rate),
        # No bar where there is no figure: one of no height would be the best.
        panel("p99.9 of gets", lambda outcomes: _get_ns(outcomes, "p99_9") or nan),
    ]
    title = "A key-value store's client without its parts (simulated)"
    return tenant_bars(panels, title, "The whole client = 1", caption)
