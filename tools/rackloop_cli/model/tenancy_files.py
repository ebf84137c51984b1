"""The files of `rackloop model tenancy --out`: a page, JSON, CSV, and the papers' figures as SVG and PNG."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rackloop.units import format_quantity
from rackloop_cli.model.tenancy_results import TenancyResults, claim_rows, rows, with_interval
from rackloop_cli.shared.output import write_files
from rackloop_models.drives import QUANTILES, REQUESTS_BEYOND

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rackloop_models.drives import Points
    from rackloop_models.tenancy import BehindBox, Outcome, Scenario, TimeLine
    from rackloop_oracles.fairness import Terms
    from rackloop_reports.plots import LinePanel

# Gimbal, section 2.3: the neighbour's bandwidth by its depth, and the victim's that the ratios there come to.
_PUBLISHED_NEIGHBOUR = ((1.0, 377e6), (8.0, 1275e6))
_PUBLISHED_VICTIM = ((1.0, 377e6 / (1 - 0.584)), (8.0, 1275e6 / 3.1))
_LARGE_READS = "128 KiB reads"


def write(out: Path, found: TenancyResults) -> list[str]:
    """Write everything; returns the names of the files. Raises BadInput where one cannot be written."""
    table = io.StringIO()
    all_rows = rows(found.outcomes)
    writer = csv.DictWriter(table, list(all_rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(all_rows)
    document = {
        "schema": 1,
        "model": "tenancy",
        **found.settings(),
        "rows": all_rows,
        "claims": claim_rows(found.claims),
        "interference": [
            {"neighbour": one.neighbour, "victim": one.victim_points, "neighbours": one.neighbour_points}
            for one in found.series.interference
        ],
        "time_lines": [
            {
                "condition": one.condition,
                "bandwidths": dict(one.bandwidths),
                "latencies": dict(one.latencies),
                "write_cost": one.write_cost,
            }
            for one in found.series.time_lines
        ],
        "sweeps": [
            {
                "parameter": one.parameter,
                "scenario": one.scenario.name,
                "condition": one.scenario.condition,
                "tenants": one.count,
                "f_util": dict(one.lines),
            }
            for one in found.sweeps.parameters
        ],
        "boxes": [asdict(one) for one in found.sweeps.boxes],
        "box_interference": [asdict(one) | {"loss": one.loss} for one in found.sweeps.box_interference],
        "behind_box": None if found.sweeps.behind_box is None else {"f_util": dict(found.sweeps.behind_box.shares)},
    }
    asked_for = {
        "sweeps": found.sweeps.parameters,
        "iops-by-cores": found.sweeps.boxes,
        "unloaded-latency": found.sweeps.boxes,
        "interference-in-boxes": found.sweeps.box_interference,
    }
    figures = {name: draw(found) for name, draw in _FIGURES.items() if asked_for.get(name, True)}
    texts = {
        "tenancy.json": json.dumps(document, indent=1) + "\n",
        "tenancy.csv": table.getvalue(),
        "index.md": page(found, list(figures)),
    }
    names = list(texts)
    write_files(out, texts, "", None)
    for name, figure in figures.items():
        write_files(out, {}, name, figure)
        names += [f"{name}.svg", f"{name}.png"]
    return names


def page(found: TenancyResults, figures: Sequence[str]) -> str:
    """The page of the results: the claims, the figures, a table of every outcome."""
    return "\n".join(_page(found, figures)) + "\n"


def _page(found: TenancyResults, figures: Sequence[str]) -> Iterator[str]:
    yield f"# Tenants on {found.profile}, like {found.like} (simulated)"
    yield ""
    yield _caption(found)
    yield ""
    yield from claims_table(found)
    yield ""
    for name in figures:
        yield f"![{name}]({name}.svg)"
        yield ""
    if found.sweeps.behind_box is not None:
        yield from behind_box_table(found.sweeps.behind_box)
        yield ""
    yield from outcomes_table(found.outcomes)


def behind_box_table(found: BehindBox) -> Iterator[str]:
    """The mean f-Utils behind a box, as Markdown."""
    kinds = [kind.name for kind in found.scenario.kinds]
    yield f"{found.scenario.name}, {found.scenario.condition}, {found.count} tenants, behind four A72 cores:"
    yield ""
    yield f"| scheduler | {' | '.join(f'f-Util {kind}' for kind in kinds)} |"
    yield "|---" * (len(kinds) + 1) + "|"
    for scheduler, shares in found.shares.items():
        yield f"| {scheduler} | {' | '.join(f'{shares[kind]:.2f}' for kind in kinds)} |"


def claims_table(found: TenancyResults) -> Iterator[str]:
    """The claims of the paper beside ours, as Markdown."""
    yield "| claim | published | ours | verdict |"
    yield "|---|---|---|---|"
    for row in claim_rows(found.claims):
        yield f"| {row['claim']} | {row['published']} | {row['ours']} | {row['verdict']} |"


def outcomes_table(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Every outcome, a row each, as Markdown."""
    yield "| condition | scenario | tenants | scheduler | f-Util | Jain | utilisation | bandwidth | p50 | p99 | p99.9 |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    for one in outcomes:
        shares = " ".join(f"{kind.name} {with_interval(one.kinds[kind.name], 2)}" for kind in one.scenario.kinds)
        latencies = " | ".join(
            "-" if (value := one.worst_ns(name)) is None else format_quantity(value / 1e9, "s") for name in QUANTILES
        )
        yield (
            f"| {one.scenario.condition} | {one.scenario.name} | {one.count} | {one.scheduler} | {shares} | "
            f"{with_interval(one.jain, 3)} | {with_interval(one.utilisation, 2)} | "
            f"{format_quantity(one.bytes_per_s, 'B/s')} | {latencies} |"
        )


def _caption(found: TenancyResults, *more: str, of_scenarios: bool = True) -> str:
    request, size = found.request, format_quantity(found.size_bytes, "B")
    last = request.seed + request.seeds - 1
    seeds = f"seed {request.seed}" if request.seeds == 1 or not of_scenarios else f"seeds {request.seed} to {last}"
    times = f": {request.seconds:g} s after {request.warm_up_s:g} s" if of_scenarios else ""
    return " ".join((*more, f"{found.profile}, {size}, {seeds}, in virtual time{times}."))


def _by_scenario(found: TenancyResults) -> dict[Scenario, dict[str, Outcome]]:
    """The outcomes with most tenants, by scenario and scheduler."""
    most = max(outcome.count for outcome in found.outcomes)
    groups: dict[Scenario, dict[str, Outcome]] = {}
    for outcome in found.outcomes:
        if outcome.count == most:
            groups.setdefault(outcome.scenario, {})[outcome.scheduler] = outcome
    return groups


def _title(scenario: Scenario, outcomes: dict[str, Outcome]) -> str:
    count = next(iter(outcomes.values())).count
    return f"{scenario.name}, {scenario.condition}, {count} tenants"


def _fairness(found: TenancyResults) -> Figure:
    from rackloop_reports.plots import TenantBars, tenant_bars

    panels = [
        TenantBars(
            _title(scenario, outcomes),
            [f"{name}\nJain {outcome.jain.value:.2f}" for name, outcome in outcomes.items()],
            {
                f"tenants {number}": [outcome.kinds[kind.name].value for outcome in outcomes.values()]
                for number, kind in enumerate(scenario.kinds, 1)
            },
            1.0 if _is_one_ideal(scenario, outcomes, found.request.warm_up_s) else None,
        )
        for scenario, outcomes in _by_scenario(found).items()
    ]
    ideal = "ideal: 1" if any(panel.ideal for panel in panels) else "no ideal"
    without = "" if all(panel.ideal for panel in panels) else " (none where demands are bounded or weights differ)"
    said = f"Bars: the mean f-Util of each kind of tenants, in the order of the scenario; {ideal}{without}."
    return tenant_bars(panels, "Fairness of schedulers (simulated)", "f-Util", _caption(found, said))


def _is_one_ideal(scenario: Scenario, schedulers: Iterable[str], warm_up_s: float) -> bool:
    """Whether an f-Util of 1 is the ideal of all: they always ask for all they can get, and have equal weights."""
    terms = _terms(scenario, schedulers, warm_up_s)
    return not any(one.is_bounded for one in terms) and len({one.weight for one in terms}) == 1


def _terms(scenario: Scenario, schedulers: Iterable[str], warm_up_s: float) -> list[Terms]:
    return [kind.terms(one.partition(":")[0], warm_up_s) for one in schedulers for kind in scenario.kinds]


def _utilisation(found: TenancyResults) -> Figure:
    from rackloop_reports.plots import TenantBars, tenant_bars

    panels = []
    for condition in dict.fromkeys(outcome.scenario.condition for outcome in found.outcomes):
        groups = {one: of for one, of in _by_scenario(found).items() if one.condition == condition}
        names = list(dict.fromkeys(name for outcomes in groups.values() for name in outcomes))
        series = {name: [outcomes[name].utilisation.value for outcomes in groups.values()] for name in names}
        terms = [one for pair in groups.items() for one in _terms(*pair, found.request.warm_up_s)]
        ideal = None if any(one.is_bounded for one in terms) else 1.0
        panels.append(TenantBars(condition, [scenario.name for scenario in groups], series, ideal))
    said = ["The sum of each tenant's bandwidth over its standalone maximum, as it is of all."]
    if not all(panel.ideal for panel in panels):
        said.append("No line at 1 where a demand is bounded: there it may be more.")
    caption = _caption(found, *said)
    return tenant_bars(panels, "Utilisation by schedulers (simulated)", "Utilisation", caption)


def _tail(found: TenancyResults) -> Figure:
    from rackloop_reports.plots import TailRange, tail_ranges

    panels = [
        TailRange(
            _title(scenario, outcomes),
            {
                name: {
                    quantile.shown: value / 1e9
                    for key, quantile in QUANTILES.items()
                    if (value := outcome.worst_ns(key)) is not None
                }
                for name, outcome in outcomes.items()
            },
        )
        for scenario, outcomes in _by_scenario(found).items()
    ]
    said = ["Quantiles of that tenant for which they are longest, from arrival to completion."]
    if any(len(quantiles) < len(QUANTILES) for panel in panels for quantiles in panel.schedulers.values()):
        said.append(f"None with fewer than {REQUESTS_BEYOND} requests of a tenant beyond it.")
    caption = _caption(found, *said)
    return tail_ranges(panels, "Tail latency of schedulers (simulated)", caption)


def _distribution(found: TenancyResults) -> Figure:
    from rackloop_reports.plots import LinePanel, line_panels

    panels = [
        LinePanel(
            f"{kind.name} of {_title(scenario, outcomes)}",
            "One request of so many takes longer",
            "Latency",
            {name: outcome.distribution(kind.name) for name, outcome in outcomes.items()},
            "s",
            is_log2=True,
        )
        for scenario, outcomes in _by_scenario(found).items()
        for kind in scenario.kinds
    ]
    caption = _caption(found, "All tenants of a kind over all seeds, from arrival to completion.")
    return line_panels(panels, "Distribution of latency by schedulers (simulated)", caption)


def _tenants(found: TenancyResults) -> Figure:
    from rackloop_reports.plots import LinePanel, line_panels

    panels = []
    for scenario in dict.fromkeys(outcome.scenario for outcome in found.outcomes):
        lines: dict[str, list[tuple[float, float]]] = {}
        for outcome in found.outcomes:
            if outcome.scenario == scenario:
                lines.setdefault(outcome.scheduler, []).append((outcome.count, outcome.jain.value))
        title = f"{scenario.name}, {scenario.condition}"
        panels.append(LinePanel(title, "Tenants", "Jain's index", lines, is_log2=True))
    return line_panels(panels, "Fairness by the number of tenants (simulated)", _caption(found))


def _interference(found: TenancyResults) -> Figure:
    from rackloop_reports.plots import LinePanel, line_panels

    panels = []
    for one in found.series.interference:
        published = None
        if one.neighbour == _LARGE_READS:
            published = {"neighbour, published": _PUBLISHED_NEIGHBOUR, "victim, from its ratios": _PUBLISHED_VICTIM}
        lines = {"victim": one.victim_points, "neighbour": one.neighbour_points}
        title = f"Neighbour: {one.neighbour}"
        panels.append(LinePanel(title, "Neighbour's depth", "Bandwidth", lines, "B/s", published, is_log2=True))
    caption = _caption(
        found,
        "Victim: 4 KiB random reads at depth 32, no scheduler. Published: Gimbal, section 2.3.",
        of_scenarios=False,
    )
    return line_panels(panels, "A tenant beside a neighbour (simulated)", caption)


def _box_interference(found: TenancyResults) -> Figure:
    from rackloop_reports.plots import TenantBars, tenant_bars

    panels = []
    for box in dict.fromkeys(one.box for one in found.sweeps.box_interference):
        losses: dict[str, list[float]] = {}
        cases = [one for one in found.sweeps.box_interference if one.box == box]
        for one in cases:
            losses.setdefault(one.scheduler, []).append(one.loss)
        panels.append(TenantBars(box, list(dict.fromkeys(one.case for one in cases)), losses))
    caption = (
        "Victim: 4 KiB random reads at depth 32. The neighbour reads from another drive, as much as its drive, a core "
        f"of both or the link (25 Gb/s) gives. {found.profile}, seed {found.request.seed}, in virtual time."
    )
    title = "A tenant beside a neighbour on another drive of its box (simulated)"
    return tenant_bars(panels, title, "Bandwidth lost", caption)


def _time_lines(found: TenancyResults) -> Figure:
    from rackloop_reports.plots import line_panels

    panels = [panel for line in found.series.time_lines for panel in _time_line(line)]
    said = "Four readers of 4 KiB all the time, four writers of 4 KiB from 1 s to 3 s."
    caption = _caption(found, said, of_scenarios=False)
    return line_panels(panels, "Gimbal over time (simulated)", caption)


def _time_line(line: TimeLine) -> Iterator[LinePanel]:
    from rackloop_reports.plots import LinePanel

    yield LinePanel(f"Congestion control, {line.condition}", "Time, s", "Rate", line.bandwidths, "B/s")
    yield LinePanel(f"Latency, {line.condition}", "Time, s", "Latency", line.latencies, "s")
    yield LinePanel(f"Write cost, {line.condition}", "Time, s", "Write cost", {"write cost": line.write_cost})


def _sweeps(found: TenancyResults) -> Figure:
    from rackloop_reports.plots import LinePanel, line_panels

    panels = [
        LinePanel(
            f"{one.scenario.name}, {one.scenario.condition}, {one.count} tenants",
            one.parameter[:1].upper() + one.parameter[1:],
            "Mean f-Util",
            one.lines,
            is_log2=True,
        )
        for one in found.sweeps.parameters
    ]
    caption = _caption(found, "Gimbal, with one parameter of the drive or of its own changed.", of_scenarios=False)
    return line_panels(panels, "Readers beside writers, by one parameter (simulated)", caption)


def _iops_by_cores(found: TenancyResults) -> Figure:
    panels = _box_panels(
        "Cores", "Served", "IOPS", {one.name: (one.iops, one.published_iops) for one in found.sweeps.boxes}
    )
    return _box_figure(found, "Boxes by the number of their cores (simulated)", panels)


def _unloaded_latency(found: TenancyResults) -> Figure:
    lines = {one.name: (one.latency, one.published_latency) for one in found.sweeps.boxes}
    panels = _box_panels("Size, KiB", "Mean latency", "s", lines, is_log2=True)
    return _box_figure(found, "Requests to boxes without other load (simulated)", panels)


def _box_panels(
    x_label: str,
    y_label: str,
    unit: str,
    boxes: Mapping[str, tuple[Mapping[str, Points], Mapping[str, Points]]],
    *,
    is_log2: bool = False,
) -> list[LinePanel]:
    """A panel for each kind of request, with a line and the published points of each box."""
    from rackloop_reports.plots import LinePanel

    return [
        LinePanel(
            what[:1].upper() + what[1:],
            x_label,
            y_label,
            {name: lines[what] for name, (lines, _) in boxes.items()},
            unit,
            {f"{name}, published": points[what] for name, (_, points) in boxes.items() if what in points} or None,
            is_log2,
        )
        for what in dict.fromkeys(what for lines, _ in boxes.values() for what in lines)
    ]


def _box_figure(found: TenancyResults, title: str, panels: Sequence[LinePanel]) -> Figure:
    from rackloop_reports.plots import line_panels

    likes = "; ".join(f"{box.name}: like {box.like}" for box in found.sweeps.boxes)
    seed = f"Seed {found.request.seed}, in virtual time"
    return line_panels(panels, title, f"{likes}. {seed}. Published: Gimbal, sections 1 and 2.2.")


_FIGURES: dict[str, Callable[[TenancyResults], Figure]] = {
    "fairness": _fairness,
    "tenants": _tenants,
    "utilisation": _utilisation,
    "tail-latency": _tail,
    "distribution": _distribution,
    "interference": _interference,
    "time-lines": _time_lines,
    "sweeps": _sweeps,
    "iops-by-cores": _iops_by_cores,
    "unloaded-latency": _unloaded_latency,
    "interference-in-boxes": _box_interference,
}
