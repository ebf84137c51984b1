"""`rackloop model store`: key-value stores on a box of shared drives, through schedulers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from rackloop.clock import Deadline, RealClock
from rackloop.errors import EXIT_PASS, BadInput
from rackloop.lab import load_profile
from rackloop.names import guess
from rackloop.units import format_quantity
from rackloop_cli.model.curves import size_of
from rackloop_cli.model.scheduler_option import SCHEDULERS, scheduler_of
from rackloop_cli.shared.output import each_once, make_directory, print_json, say, write_files
from rackloop_cli.shared.tables import print_whole, table_of_figures
from rackloop_drivers.host import LocalExecutor

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rackloop_models.client import Setup, StoreOutcome

MIXES = ("a", "b", "c", "d", "e", "f")
DRIVES = 4
_WITHIN_S = 7200.0
_QUANTILES = {"p50": "p50", "p99": "p99", "p99_9": "p99.9"}


@dataclass(frozen=True, kw_only=True)
class StoreRequest:
    """The selection to run; no schedulers are all of them."""

    mix: str
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
    out: Path | None
    as_json: bool


def store(request: StoreRequest) -> int:
    """Run every cell, print the table or JSON, and draw the figure."""
    from rackloop_models.client import Setup, stores
    from rackloop_models.drives import DriveSim
    from rackloop_models.tenancy import CONDITIONS, STATES

    _require_known("--mix", request.mix, MIXES)
    _require_known("--condition", request.condition, CONDITIONS)
    schedulers = dict(scheduler_of(text) for text in each_once(request.schedulers or SCHEDULERS))
    profile, clock = load_profile(request.profile), RealClock()
    if profile.timing["kind"] != "ssd":
        raise BadInput(f"profile {profile.name} is no SSD; name one, as nvme-ssd")
    make_directory(request.out)
    setup = Setup(
        mix=request.mix,
        clients=request.clients,
        records=request.records,
        depth=request.depth,
        seconds=request.seconds,
        warm_up_s=request.warm_up_s,
    )
    state = next(state for condition, state in STATES.items() if condition == request.condition)
    with LocalExecutor(clock) as executor:
        sim = DriveSim(executor, profile, size_bytes=size_of(request.size), seed=request.seed, drives=DRIVES)
        outcomes = stores(sim, setup, schedulers, state, Deadline.after(clock, _WITHIN_S))
    if request.as_json:
        print_json(model="store", simulated=True, profile=profile.name, rows=rows(outcomes), **_settings(request))
    else:
        _print(outcomes, _caption(request, setup))
    if request.out is not None:
        write_files(request.out, {}, "store", _figure(outcomes, _caption(request, setup)))
        if not request.as_json:
            say(f"store.svg and store.png are in {request.out}")
    return EXIT_PASS


def rows(outcomes: Sequence[StoreOutcome]) -> list[dict[str, Any]]:
    """A row for each cell; latencies of gets are means over clients, and those of the worst client."""
    return [
        {
            "scheduler": one.cell.scheduler,
            "ablation": one.cell.ablation,
            "operations_per_s": one.operations_per_s,
            "alone_operations_per_s": one.alone_operations_per_s,
            "f_utils": one.f_utils,
            "jain": one.jain,
            **{f"get_{name}_ns": one.mean_get_ns(name) for name in _QUANTILES},
            **{f"worst_get_{name}_ns": one.worst_get_ns(name) for name in _QUANTILES},
            "second_replica_share": one.second_replica_share,
            "write_amplification": [client.write_amplification for client in one.clients],
            "read_amplification": [client.read_amplification for client in one.clients],
            "errors": one.errors,
        }
        for one in outcomes
    ]


def _require_known(option: str, name: str, known: Iterable[str]) -> None:
    if name not in (names := list(known)):
        raise BadInput(f"{option} {name}: there is none of that name; {guess(name, names)}")


def _settings(request: StoreRequest) -> dict[str, Any]:
    names = ("mix", "condition", "clients", "records", "depth", "seconds", "warm_up_s", "size", "seed")
    return {name: getattr(request, name) for name in names}


def _caption(request: StoreRequest, setup: Setup) -> str:
    return (
        f"YCSB {setup.mix.upper()}, {setup.clients} clients of {setup.records} records of 1 KiB, {DRIVES} drives "
        f"{request.profile}, {request.condition}, seed {request.seed}, in virtual time: {setup.seconds:g} s after "
        f"{setup.warm_up_s:g} s."
    )


def _print(outcomes: Sequence[StoreOutcome], caption: str) -> None:
    names = ("scheduler", "operations/s", "to the first", "f-Util", "Jain", *_QUANTILES.values(), "second replica")
    table = table_of_figures(*names, left={"scheduler"}, title=caption)
    for one in outcomes:
        latencies = (one.mean_get_ns(name) for name in _QUANTILES)
        share = one.second_replica_share
        table.add_row(
            one.cell.name,
            f"{one.operations_per_s:.0f}",
            f"{one.operations_per_s / outcomes[0].operations_per_s:.2f}",
            f"{min(one.f_utils):.2f} to {max(one.f_utils):.2f}",
            f"{one.jain:.3f}",
            *("-" if value is None else format_quantity(value / 1e9, "s") for value in latencies),
            "-" if share is None else f"{share:.0%}",
        )
    print_whole(Console(), table)


def _figure(outcomes: Sequence[StoreOutcome], caption: str) -> Figure:
    from rackloop_reports.plots import TailRange, tail_ranges

    quantiles = {
        f"{one.cell.name}\n{one.operations_per_s / 1e3:.0f}k/s": {
            shown: value / 1e9 for name, shown in _QUANTILES.items() if (value := one.mean_get_ns(name))
        }
        for one in outcomes
    }
    whole: dict[str, dict[str, float]] = {}
    parts: dict[str, dict[str, float]] = {}
    for one, (name, values) in zip(outcomes, quantiles.items(), strict=True):
        (whole if one.cell.ablation is None else parts)[name] = values
    panels = [TailRange("Schedulers", whole)]
    if parts:
        panels.append(TailRange("The client without a part", parts))
    return tail_ranges(panels, "Key-value stores: gets, and operations/s below (simulated)", caption)
