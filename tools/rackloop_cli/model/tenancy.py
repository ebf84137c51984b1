"""`rackloop model tenancy`: tenants that share a drive model through schedulers, beside the papers' claims."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from rackloop.clock import Deadline, RealClock
from rackloop.errors import EXIT_PASS, BadInput
from rackloop.lab import Profile, load_profile
from rackloop.names import guess
from rackloop.units import counted, format_quantity
from rackloop_cli.model.curves import size_of
from rackloop_cli.model.tenancy_results import (
    Series,
    Sweeps,
    TenancyRequest,
    TenancyResults,
    claim_rows,
    rows,
    verdict,
    with_interval,
)
from rackloop_cli.shared.output import each_once, make_directory, print_json, say
from rackloop_cli.shared.progress import watched
from rackloop_cli.shared.tables import print_whole, table_of_figures
from rackloop_drivers.host import LocalExecutor
from rackloop_drivers.storage_switch import SCHEDULERS, scheduler_of
from rackloop_models.drives import QUANTILES

if TYPE_CHECKING:
    from rackloop_models.drives import DriveSim, Record
    from rackloop_models.tenancy import Outcome, Scenario, Timing

_COUNTS = (4, 8, 16)
_WITHIN_S = 3600.0
_CORES = 4
_BOX_BYTES = 1 << 30


def tenancy(request: TenancyRequest) -> int:
    """Run everything, print the tables, and write the page and the plots."""
    from rackloop_models.drives import Recorded, tenant_tables

    recorded: list[Recorded] = []
    found = _found(request, lambda seed, result: recorded.append(Recorded(seed, result)))
    if request.as_json:
        print_json(model="tenancy", **found.settings(), rows=rows(found.outcomes), claims=claim_rows(found.claims))
    else:
        _print(found)
    if request.out is not None:
        from rackloop_cli.model.tenancy_files import write

        names = [*write(request.out, found), *tenant_tables(recorded).write(request.out)]
        if not request.as_json:
            say(f"{', '.join(names[:-1])} and {names[-1]} are in {request.out}")
    return EXIT_PASS


def _found(request: TenancyRequest, record: Record) -> TenancyResults:
    """Everything that is asked for; ``record`` is told of the results of the scenarios' drives."""
    from rackloop_models.drives import DriveSim
    from rackloop_models.tenancy import Timing, claims, measured

    schedulers = {text: scheduler_of(text, "--scheduler") for text in each_once(request.schedulers or SCHEDULERS)}
    scenarios = _scenarios(request)
    profile, size_bytes, clock = load_profile(request.profile), size_of(request.size), RealClock()
    if profile.timing["kind"] != "ssd":
        raise BadInput(
            f"profile {profile.name} is of kind {profile.timing['kind']}: conditions are of SSDs; name one, as nvme-ssd"
        )
    make_directory(request.out)
    timing = Timing(request.warm_up_s, request.seconds)
    whole = f"{counted(len(scenarios), 'scenario')}, {counted(len(schedulers), 'scheduler')}"
    deadline = Deadline.after(clock, _WITHIN_S)
    with LocalExecutor(clock) as executor, watched(whole) as progress:
        sims = {
            seed: DriveSim(executor, profile, size_bytes=size_bytes, seed=seed, record=record)
            for seed in range(request.seed, request.seed + request.seeds)
        }
        first = sims[request.seed]
        counts = each_once(request.counts) or _COUNTS
        outcomes = measured(sims, scenarios, counts, schedulers, timing, deadline, progress)
        has_files = request.out is not None
        return TenancyResults(
            profile=profile.name,
            like=profile.like,
            size_bytes=size_bytes,
            request=request,
            outcomes=outcomes,
            claims=claims(outcomes),
            series=_series(first, scenarios, deadline) if has_files else Series(),
            sweeps=_sweeps(executor, first, request.seed, timing, deadline)
            if has_files and request.with_sweeps
            else Sweeps(),
        )


def _series(sim: DriveSim, scenarios: Sequence[Scenario], deadline: Deadline) -> Series:
    from rackloop_models.tenancy import CONDITIONS, interference, time_line

    conditions = [one for one in CONDITIONS if one in {scenario.condition for scenario in scenarios}]
    return Series(
        interference=interference(sim, deadline),
        time_lines=[time_line(sim, condition, deadline) for condition in conditions],
    )


def _sweeps(executor: LocalExecutor, sim: DriveSim, seed: int, timing: Timing, deadline: Deadline) -> Sweeps:
    from rackloop_models.drives import DriveSim, box_curves, box_names, load_box
    from rackloop_models.remote_flash import A72
    from rackloop_models.tenancy import behind_box, box_interference, sweeps

    def other(profile: Profile) -> DriveSim:
        return DriveSim(executor, profile, size_bytes=sim.size_bytes, seed=seed)

    boxes = [box for box in map(load_box, box_names()) if box.drive == sim.profile.name]
    pair = DriveSim(executor, sim.profile, size_bytes=_BOX_BYTES, seed=seed, drives=2)
    return Sweeps(
        behind_box=behind_box(sim, A72.hardware(_CORES), timing, deadline),
        parameters=sweeps(other, sim.profile, timing, deadline),
        boxes=box_curves(executor, boxes, deadline, size_bytes=_BOX_BYTES, seed=seed),
        box_interference=[one for box in boxes for one in box_interference(pair, box, deadline)],
    )


def _scenarios(request: TenancyRequest) -> tuple[Scenario, ...]:
    from rackloop_models.tenancy import CONDITIONS, SCENARIOS, load_scenarios

    known = SCENARIOS if request.file is None else load_scenarios(request.file)
    _require_known("--scenario", request.scenarios, [one.name for one in known])
    _require_known("--condition", request.conditions, CONDITIONS)
    found = tuple(
        one
        for one in known
        if (not request.scenarios or one.name in request.scenarios)
        and (not request.conditions or one.condition in request.conditions)
    )
    if not found:
        conditions = " or ".join(request.conditions)
        raise BadInput(f"--condition: none of these scenarios is on a {conditions} drive; leave one of the options out")
    return found


def _require_known(option: str, asked: Iterable[str], known: Sequence[str]) -> None:
    for name in asked:
        if name not in known:
            raise BadInput(f"{option} {name}: there is none of that name; {guess(name, known)}")


def _print(found: TenancyResults) -> None:
    console = Console()
    console.print(f"[bold]simulated[/bold] {found.profile}, like {found.like}", highlight=False)
    for table in _tables(found.outcomes):
        print_whole(console, table)
    table = table_of_figures("claim", "published", "ours", "", left={"claim", "published", "ours", ""})
    for claim in found.claims:
        table.add_row(claim.claim, claim.published, claim.ours, verdict(claim))
    print_whole(console, table)


def _tables(outcomes: Sequence[Outcome]) -> Iterator[Table]:
    """One for each scenario and number of tenants."""
    groups: dict[tuple[Scenario, int], list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault((outcome.scenario, outcome.count), []).append(outcome)
    for (scenario, count), members in groups.items():
        kinds = [f"f-Util {kind.name}" for kind in scenario.kinds]
        columns = ("scheduler", *kinds, "Jain", "utilisation", "bandwidth", *(one.shown for one in QUANTILES.values()))
        title = f"{scenario.name}, {scenario.condition}, {count} tenants"
        table = table_of_figures(*columns, left={"scheduler"}, title=title)
        for outcome in members:
            table.add_row(*_cells(outcome))
        yield table


def _cells(outcome: Outcome) -> Iterator[str]:
    yield outcome.scheduler
    for kind in outcome.scenario.kinds:
        yield with_interval(outcome.kinds[kind.name], 2)
    yield with_interval(outcome.jain, 3)
    yield with_interval(outcome.utilisation, 2)
    yield format_quantity(outcome.bytes_per_s, "B/s")
    for name in QUANTILES:
        value = outcome.worst_ns(name)
        yield "-" if value is None else format_quantity(value / 1e9, "s")
