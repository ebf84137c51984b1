"""Isolation of one tenant: what neighbours of several kinds leave of its bandwidth, and add to its latency."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pytest

from rackloop.lab import Lab
from rackloop.measurement import MachineLoad, Window
from rackloop.parameters import choice, flag, number, part, size, text, whole
from rackloop_fixtures import (
    CountedTimes,
    Labels,
    Measure,
    Phase,
    Rack,
    RackAtWork,
    RoundConditions,
    SharedBox,
    Tenant,
    courses,
    faults_of_work,
    further_work,
    measure_phase,
    neighbours_of,
    rebuilt_drives,
    require_served,
    shared_drives,
    sharing_s,
    totals,
    victim_of,
)
from rackloop_oracles.fairness import RoundRatio, Rounds, ratio

KIB = 1 << 10
ALONE = "alone"
# No latency is shorter than the clock shows.
_TICK_S = 1e-9
# The defaults are the cases of the Gimbal paper's section 2.
PARAMETERS = {
    "drives": part(
        [""],
        "the drive that all share, or one for the victim and each neighbour; with through any number that all share; a "
        "scratch drive if empty",
        of="drive",
    ),
    "through": choice(
        "drive",
        "what shares the drives among tenants: the drive itself, or the storage switch with a scheduler",
        among=["drive", "none", "reflex", "parda", "flashfq", "gimbal"],
    ),
    "scheduler_parameters": text(
        "", "parameters of the switch's scheduler, such as virtual_slots=16,thresh_max_us=2000", longest=1000
    ),
    "box": text("", "description of the exports of a box, a YAML file; in place of drives and through", longest=1000),
    "active_range": size(0, "shared range from the start of a drive; all of it where 0", least=0, most=1 << 50),
    "purge": flag(True, "purge the drives first"),
    "fills": whole(2, "sequential fills before the measurement: a clean drive", least=0, most=100),
    "overwrites": number(
        0.0, "random 4 KiB writes after that, as multiples of the range: a fragmented drive", most=100
    ),
    "block": size(4 * KIB, "I/O size of the victim", least=512, most=64 << 20, multiple=512),
    "read_percent": whole(100, "percentage of the victim's reads", least=0, most=100),
    "iodepth": whole(32, "I/Os outstanding of the victim, at most", most=4096),
    "rate": whole(
        0, "the victim's IOPS, due at random (an open loop); as many as complete where 0", least=0, most=100_000_000
    ),
    "objective": number(0.0, "latency objective (SLO) of the victim; none where 0", most=3600, unit="s"),
    "neighbours": whole(1, "number of neighbours", most=63),
    "neighbour_blocks": size(
        [128 * KIB], "I/O sizes of neighbours, each in turn", least=512, most=64 << 20, multiple=512
    ),
    "neighbour_block_mixes": text(
        [""],
        "sizes of theirs in place of a block, each in turn, such as 4 KiB/70+128 KiB/30; neighbour_blocks if empty",
    ),
    "neighbour_read_percents": whole([100], "percentages of their reads, each in turn", least=0, most=100),
    "neighbour_iodepths": whole([1, 8], "I/Os outstanding of each of them, each in turn", most=4096),
    "neighbour_pauses": number([0.0], "pauses between their bursts, each in turn; none where 0", most=3600, unit="s"),
    "neighbour_burst": number(0.1, "duration of a burst, where there are pauses", least=0.001, most=3600, unit="s"),
    "meanwhile": choice(
        ["nothing"],
        "work of the rack beside the victim without neighbours, each in turn",
        among=["nothing", "remaps", "rebuilds"],
    ),
    "seconds": number(60.0, "duration of each phase of a round", least=0.01, most=86_400, unit="s"),
    "rounds": whole(10, "rounds in a row that are steady, each a sample", least=5, most=1000),
    "most_rounds": whole(30, "most rounds to get there", least=5, most=10_000),
    "excursion": number(0.2, "largest excursion of a steady round from the mean, as a share", most=1000),
    "slope": number(0.1, "largest drift of the trend over the steady rounds, as a share of the mean", most=1000),
}
MEASURES = {
    "isolation.kept": "1",
    "isolation.p99_factor": "1",
    "isolation.neighbours_over_victim": "1",
    "isolation.work": "1",
    "tenant.bandwidth": "B/s",
    "tenant.issued": "1",
    "tenant.p50": "s",
    "tenant.p99": "s",
    "tenant.p999": "s",
    "tenant.objective_met": "1",
}
HEADLINES = ("isolation.kept", "isolation.p99_factor")

pytestmark = pytest.mark.rackloop(
    purpose="measure what neighbours of several kinds leave of a tenant's bandwidth, and add to its latency",
    requires=["fio"],
    destructive=True,
    time_class="hours",
)


def drives_erased(lab: Lab, parameters: Mapping[str, Any]) -> list[str]:
    """The drives that the tenants share, and those of a rebuild."""
    return [*shared_drives(lab, parameters), *rebuilt_drives(lab, parameters)]


# Done is what the rack does meanwhile.
faults = faults_of_work


def estimate_s(lab: Lab, parameters: Mapping[str, Any]) -> float:
    """The preparation, and the fewest rounds of the victim alone and beside the neighbours of each case."""
    cases = neighbours_of(parameters)
    tenants = [victim_of(parameters), *_largest(cases)]
    return sharing_s(lab, parameters, tenants, 1 + len(cases) + len(further_work(parameters)))


def _largest(cases: Mapping[str, Sequence[Tenant]]) -> Sequence[Tenant]:
    """The neighbours with the largest blocks, and of these those that write most."""
    return max(cases.values(), key=lambda of: (of[0].largest_block_bytes, -of[0].workload.read_percent))


def test_isolation(
    shared_box: SharedBox, rack: Rack, labels: Labels, parameters: Mapping[str, Any], measure: Measure
) -> None:
    """Measure the victim alone, beside its neighbours and beside the rack's work in every round, case by case."""
    victim, cases, conditions = victim_of(parameters), neighbours_of(parameters), RoundConditions.of(parameters)
    # What has room for the largest blocks has room for all, and the switch lets only those write that said so.
    shared_box.prepare([victim, *_largest(cases)], parameters)
    with RackAtWork(rack, labels, shared_box, parameters) as work:
        cases |= {what: [] for what in work.done}
        phases = {ALONE: [victim], **{name: [victim, *neighbours] for name, neighbours in cases.items()}}
        meanwhile = {what: partial(work.doing, what) for what in work.done}
        found = shared_box.rounds(phases, conditions, ALONE, meanwhile)
    of_box = shared_box.labels
    judged = courses(found)
    window = conditions.window_or_last(totals(found[ALONE]), judged)
    alone = found[ALONE][victim.name]
    require_served([alone], window)
    for name in cases:
        beside = found[name][victim.name]
        neighbours = {of: phase for of, phase in found[name].items() if of != victim.name}
        of_case = {**of_box, "neighbours": name}
        pairs = {"kept": (beside.bandwidths(window), alone.bandwidths(window))}
        if neighbours and min(beside.bandwidths(window)) > 0:
            pairs["neighbours_over_victim"] = (
                totals(neighbours)[window.first - 1 : window.last],
                beside.bandwidths(window),
            )
        elif neighbours:
            measure.untaken("isolation.neighbours_over_victim", "the victim completed no I/O in a round", **of_case)
        for what, (over, under) in pairs.items():
            measure(f"isolation.{what}", _ratio(over, under, shared_box.seed), statistics=("mean",), **of_case)
        _measure_p99_factor(measure, alone, beside, window, shared_box.seed, of_case)
        measure_phase(measure, beside, window, shared_box.seed, name, of_box, alone)
        for neighbour in neighbours.values():
            measure_phase(measure, neighbour, window, shared_box.seed, name, of_box)
    measure_phase(measure, alone, window, shared_box.seed, ALONE, of_box)
    for what in work.done:
        measure("isolation.work", work.counts(what, window), statistics=("mean",), **of_box, meanwhile=what)
    conditions.require_steady(totals(found[ALONE]), "the victim alone", judged)
    shared_box.require_its_own_limit([alone], window)
    work.require_done(window)
    measure.require_taken()


def _measure_p99_factor(
    measure: Measure, alone: Phase, beside: Phase, window: Window, seed: int, labels: Mapping[str, str]
) -> None:
    """Record the victim's p99 beside others over that alone: at least so much where not all of its I/O was issued."""
    name = "isolation.p99_factor"
    if not (before := alone.p99s(window)) or not (after := beside.p99s(window)):
        lacking = {"beside them": beside.untaken(window), ALONE: alone.untaken(window)}
        measure.untaken(name, "; ".join(f"{when} {of['p99']}" for when, of in lacking.items() if "p99" in of), **labels)
    elif why := alone.unissued(window):
        measure.untaken(name, f"{ALONE} {why}", **labels)
    elif why := beside.unissued(window):
        measure.at_least(name, _factor(after, before, seed), f"beside them {why}", **labels)
    else:
        measure(name, _factor(after, before, seed), statistics=("mean",), **labels)


def _factor(after: Sequence[float], before: Sequence[float], seed: int) -> CountedTimes:
    """One latency over another by rounds, as seen and less what the machine may have added to either."""

    def less(times_s: Sequence[float], load: MachineLoad) -> list[float]:
        return [max(one - load.late_with(one), _TICK_S) for one in times_s]

    return CountedTimes(
        _ratio(after, before, seed),
        lambda load: _ratio(less(after, load), before, seed),
        lambda load: _ratio(after, less(before, load), seed),
    )


def _ratio(over: Sequence[float], under: Sequence[float], seed: int) -> RoundRatio:
    """The ratio of two series over the rounds."""
    return Rounds(list(zip(over, under, strict=True)), seed).ratio(ratio)
