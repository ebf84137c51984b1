"""Shares of tenants: each alone, then all together, in rounds until they are steady."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest

from rackloop.lab import Lab
from rackloop.parameters import choice, flag, number, part, size, text, whole
from rackloop_fixtures import (
    NOTHING,
    Labels,
    Measure,
    Rack,
    RackAtWork,
    RoundConditions,
    SharedBox,
    courses,
    faults_of_work,
    further_work,
    index_of,
    measure_phase,
    rebuilt_drives,
    require_served,
    shared_drives,
    sharing_s,
    tenants_of,
    terms_labels,
    terms_of,
    totals,
)
from rackloop_oracles.fairness import TenantShares, standalone_maximum

KIB = 1 << 10
TOGETHER = "together"
PARAMETERS = {
    "drives": part(
        [""],
        "the drive that all tenants share, or one for each; with through any number that all share; the first scratch "
        "drive if empty",
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
    "tenants": whole(4, "number of tenants", least=2, most=64),
    "blocks": size([4 * KIB], "I/O size of each tenant, in turn", least=512, most=64 << 20, multiple=512),
    "read_percents": whole([100], "percentage of reads of each tenant, in turn", least=0, most=100),
    "patterns": choice(["random"], "order of each tenant's I/O, in turn", among=["random", "sequential"]),
    "iodepths": whole([32], "I/Os outstanding of each tenant, in turn", most=4096),
    "block_mixes": text(
        [""], "sizes of each tenant in place of blocks, in turn, such as 4 KiB/70+128 KiB/30; blocks if empty"
    ),
    "rates": whole(
        [0],
        "IOPS of each tenant, in turn, due at random (an open loop); as many as complete where 0",
        least=0,
        most=100_000_000,
    ),
    "pauses": number(
        [0.0], "pauses between bursts of each tenant, in turn; none where 0", least=0, most=3600, unit="s"
    ),
    "bursts": number([0.1], "duration of a burst, where there are pauses, in turn", least=0.001, most=3600, unit="s"),
    "weights": whole([1], "weight of each tenant, in turn, for schedulers that have weights", most=1_000_000),
    "objectives": number([0.0], "latency objective (SLO) of each tenant, in turn; none where 0", most=3600, unit="s"),
    "seconds": number(
        60.0, "duration of a tenant's I/O alone in a round, and of all together", least=0.01, most=86_400, unit="s"
    ),
    "meanwhile": choice(
        ["nothing"],
        "work of the rack in further phases of all together, each in turn",
        among=["nothing", "remaps", "rebuilds"],
    ),
    "rounds": whole(10, "rounds in a row that are steady, each a sample", least=5, most=1000),
    "most_rounds": whole(30, "most rounds to get there", least=5, most=10_000),
    "excursion": number(0.2, "largest excursion of a steady round from the mean, as a share", most=1000),
    "slope": number(0.1, "largest drift of the trend over the steady rounds, as a share of the mean", most=1000),
}
MEASURES = {
    "tenant.f_util": "1",
    "tenant.bandwidth": "B/s",
    "tenant.issued": "1",
    "tenant.p50": "s",
    "tenant.p99": "s",
    "tenant.p999": "s",
    "tenant.objective_met": "1",
    "fairness.jain": "1",
    "fairness.min_max": "1",
    "fairness.utilisation": "1",
    "fairness.work": "1",
}
HEADLINES = ("tenant.f_util", "fairness.jain", "fairness.utilisation")

pytestmark = pytest.mark.rackloop(
    purpose="measure whether tenants that share a drive get a fair share of it, and what each waits",
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
    """The preparation, and the fewest rounds of every tenant alone and all together."""
    tenants = tenants_of(parameters)
    return sharing_s(lab, parameters, tenants, len(tenants) + 1 + len(further_work(parameters)))


def test_fair_share(
    shared_box: SharedBox, rack: Rack, labels: Labels, parameters: Mapping[str, Any], measure: Measure
) -> None:
    """Measure every tenant alone and all together in each round, and judge what each got of an equal share."""
    tenants, conditions = tenants_of(parameters), RoundConditions.of(parameters)
    shared_box.prepare(tenants, parameters)
    together = {NOTHING: TOGETHER, **{what: f"{TOGETHER}, {what}" for what in further_work(parameters)}}
    phases = {**{tenant.name: [tenant] for tenant in tenants}, **dict.fromkeys(together.values(), tenants)}
    with RackAtWork(rack, labels, shared_box, parameters) as work:
        meanwhile = {together[what]: partial(work.doing, what) for what in work.done}
        found = shared_box.rounds(phases, conditions, TOGETHER, meanwhile)
    of_box = shared_box.labels
    judged = courses(found)
    window = conditions.window_or_last(totals(found[TOGETHER]), judged)
    alone = {tenant.name: found[tenant.name][tenant.name] for tenant in tenants}
    require_served(list(alone.values()), window)
    maxima = {
        name: standalone_maximum(name, {one: phase.bandwidths(window) for one, phase in found[name].items()}).tolist()
        for name in alone
    }
    terms = terms_of(tenants, parameters)
    on_terms = terms_labels(terms)
    for what, when in together.items():
        shares = TenantShares(
            maxima,
            {name: phase.bandwidths(window) for name, phase in found[when].items()},
            shared_box.seed,
            terms,
        )
        for name, f_util in shares.f_utils().items():
            labels_of = {**alone[name].tenant.labels, **on_terms[name], **of_box, "meanwhile": what}
            measure("tenant.f_util", f_util, statistics=("mean",), **labels_of)
        for name, index in {"jain": shares.jain, "min_max": shares.min_max}.items():
            measured = index_of(index, conditions.seconds)
            measure(f"fairness.{name}", measured, statistics=("mean",), **of_box, meanwhile=what)
        measure("fairness.utilisation", shares.utilisation(), statistics=("mean",), **of_box, meanwhile=what)
    for what in work.done:
        measure("fairness.work", work.counts(what, window), statistics=("mean",), **of_box, meanwhile=what)
    for when, phases_of in {"alone": alone, **{when: found[when] for when in together.values()}}.items():
        for name, phase in phases_of.items():
            beside = None if when == "alone" else alone[name]
            measure_phase(measure, phase, window, shared_box.seed, when, of_box, beside)
    conditions.require_steady(totals(found[TOGETHER]), "all tenants together", judged)
    shared_box.require_its_own_limit(list(alone.values()), window)
    work.require_done(window)
    measure.require_taken()
