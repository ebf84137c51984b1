"""Tenants on a drive model: scenarios, the measures of outcomes, claims beside them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import pytest

from rackloop.abilities import Completed
from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import BadInput
from rackloop.lab import Profile, load_profile
from rackloop_cli.model.tenancy_files import outcomes_table
from rackloop_models.drives import (
    Bursts,
    Cores,
    Depth,
    DriveSim,
    Hardware,
    Link,
    Rate,
    TraceReplay,
    load_box,
)
from rackloop_models.tenancy import (
    SCENARIOS,
    Figure,
    Outcome,
    Scenario,
    TenantKind,
    Timing,
    behind_box,
    box_interference,
    claims,
    measured,
    quantile_ns,
    shares_of,
    sweeps,
)
from rackloop_oracles.fairness import Terms
from tests.unit.models.run_only_executor import RunOnlyExecutor

SOON = Deadline.after(VirtualClock(), 60)
GIB = 1 << 30
BY_NAME = {(one.name, one.condition): one for one in SCENARIOS}
SIZES = BY_NAME["sizes", "clean"]


def figures(bytes_per_s: float, p99_9: int, requests: int = 10_000) -> dict[str, Any]:
    latency = {"mean": 1.0, "min": 1, "p50": 2, "p90": 3, "p99": 4, "p99_9": p99_9, "max": 9}
    return {"requests": requests, "bytes": 1, "iops": 1.0, "bytes_per_s": bytes_per_s, "latency_ns": latency}


def acts_of(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All experiments of a document, in the order of their results."""
    return [*document["experiments"], *chain.from_iterable(document["branches"])]


@dataclass
class Host(RunOnlyExecutor):
    """A drivesim whose tenants get 10 MB/s, one in two of them 30 under any scheduler but the first.

    Each completes ``requests``, or as many as ``fewer`` says of its scheduler and its place.
    """

    documents: list[dict[str, Any]] = field(default_factory=list)
    requests: int = 10_000
    fewer: Mapping[tuple[str, int], int] = field(default_factory=dict)

    def run(self, argv: Sequence[str], deadline: Deadline, *, stdin: str = "") -> Completed:
        assert deadline is SOON
        document = json.loads(stdin)
        self.documents.append(document)
        lines = [json.dumps(self._answer(experiment)) for experiment in acts_of(document)]
        return Completed(tuple(argv), 0, "\n".join(lines), "")

    def _answer(self, experiment: dict[str, Any]) -> dict[str, Any]:
        named = {"name": experiment["name"], "kind": experiment["kind"]}
        match experiment["kind"]:
            case "tenants":
                kind = experiment["scheduler"]["kind"]
                tenants = []
                for number, load in enumerate(experiment["tenants"]):
                    rate = 30e6 if kind != "none" and number % 2 else 10e6
                    requests = self.fewer.get((kind, number), self.requests)
                    total = figures(rate, 100 if kind == "gimbal" else 400, requests)
                    rest: dict[str, Any] = {
                        "errors": 0,
                        "interval_s": None,
                        "intervals": None,
                        "dropped": 0,
                        "device_latency_ns": None,
                        "latency_buckets": [[100, 30], [200, 10]],
                    }
                    tenants.append(
                        {"name": load["tenant"]["name"], "total": total, "reads": total, "writes": total} | rest
                    )
                return named | {
                    "scheduler": kind,
                    "start_s": 0,
                    "seconds": 1,
                    "tenants": tenants,
                    "states": None,
                    "snapshot": {},
                }
            case "box":
                acted = self._answer({**experiment, "kind": "tenants"})
                added = {"drive": 0, "read_phases_ns": None, "write_phases_ns": None}
                path = {"utilisation": 0.5, "bytes_per_s": 1.0}
                return named | {
                    "scheduler": acted["scheduler"],
                    "start_s": 0,
                    "seconds": 1,
                    "total": figures(1.0, 1),
                    "tenants": [tenant | added for tenant in acted["tenants"]],
                    "drives": [{"states": None, "snapshot": {}}],
                    "cores": [{"utilisation": 0.5}],
                    "link": {"to_box": path, "from_box": path},
                    "memory": None,
                }
            case "load":
                total = figures(1.0, 1)
                rest = {"start_s": 0, "seconds": 1, "errors": 0, "total": total, "reads": total, "writes": total}
                return named | rest | {"interval_s": None, "intervals": None}
            case _:
                return named | {"end_s": 1.0}


def outcomes_of(
    host: Host, *scenarios: Scenario, schedulers: Sequence[str] = ("none", "gimbal"), seeds: Sequence[int] = (3,)
) -> list[Outcome]:
    profile = load_profile("nvme-ssd")
    sims = {seed: DriveSim(host, profile, size_bytes=4 * GIB, seed=seed, binary="drivesim") for seed in seeds}
    kinds = {name: {"kind": name} for name in schedulers}
    return list(measured(sims, scenarios, (4,), kinds, Timing(1.0, 0.5), SOON, lambda *_: None))


def test_the_share_of_a_tenant_is_held_against_one_of_its_kind_alone() -> None:
    none, gimbal = outcomes_of(Host(), SIZES)
    # One alone gets 10 MB/s, so an equal share of four is 2.5 MB/s.
    assert [tenant.alone_bytes_per_s for tenant in gimbal.tenants] == [10e6] * 4
    assert [tenant.f_util for tenant in gimbal.tenants] == [4, 12, 4, 12]
    assert [tenant.f_util for tenant in none.tenants] == [4] * 4
    assert none.jain == Figure(1)
    assert gimbal.jain.value == pytest.approx(64 / (4 * 20))
    assert gimbal.min_max.value == pytest.approx(1 / 3)
    assert (gimbal.utilisation.value, gimbal.bytes_per_s) == (8, 80e6)
    assert {kind: figure.value for kind, figure in gimbal.kinds.items()} == {"read-4k": 4, "read-128k": 12}
    assert [tenant.kind for tenant in gimbal.tenants] == ["read-4k", "read-128k"] * 2
    assert (gimbal.worst_ns("p99_9"), none.worst_ns("p99_9", "read-4k")) == (100, 400)


def test_an_index_knows_weights_and_bounded_demands() -> None:
    """One in two tenants gets three times as much as the others, through any scheduler."""
    light, heavy = (TenantKind(name=name, block_bytes=4096, arrivals=Depth(1)) for name in ("light", "heavy"))
    weighed = Scenario("weighed", "clean", (light, replace(heavy, weight=3.0)))
    paced = Scenario("paced", "clean", (light, replace(heavy, arrivals=Rate(100.0))))
    paused = Scenario("paused", "clean", (light, replace(heavy, bursts=Bursts(0.1, 0.1))))
    found = outcomes_of(Host(), weighed, paced, paused, schedulers=("gimbal", "parda"))
    indices = {(one.scenario.name, one.scheduler): round(one.jain.value, 9) for one in found}
    assert indices == {
        ("weighed", "gimbal"): 0.8,
        ("weighed", "parda"): 1,
        **{(name, scheduler): 1 for name in ("paced", "paused") for scheduler in ("gimbal", "parda")},
    }
    assert {tuple(tenant.f_util for tenant in one.tenants) for one in found} == {(4, 12, 4, 12)}


@pytest.mark.parametrize(
    ("changes", "terms"),
    [
        ({}, Terms()),
        ({"joins_s": 1.0}, Terms()),
        ({"joins_s": 1.1}, Terms(is_bounded=True)),
        ({"leaves_s": 1.4}, Terms(is_bounded=True)),
        ({"arrivals": Rate(5.0)}, Terms(is_bounded=True, has_rate=True)),
        ({"arrivals": Rate(5.0), "leaves_s": 1.4}, Terms(is_bounded=True)),
        ({"arrivals": None, "block_bytes": None, "trace": TraceReplay("t.jsonl")}, Terms(is_bounded=True)),
    ],
)
def test_a_demand_is_bounded_unless_it_asks_for_all_the_time(changes: dict[str, Any], terms: Terms) -> None:
    kind = replace(TenantKind(name="a", block_bytes=4096, arrivals=Depth(1)), **changes)
    assert kind.terms("gimbal", warm_up_s=1.0) == terms


def test_each_run_is_on_a_copy_of_a_drive_that_was_prepared_once() -> None:
    host = Host()
    outcomes_of(host, SIZES, BY_NAME["sizes", "fragmented"], BY_NAME["writes-4k", "fragmented"])
    assert len(host.documents) == 2
    for document in host.documents:
        prepared = [act["name"] for act in document["experiments"]]
        assert prepared in (["fill", "rest"], ["fill", "overwrite", "rest"])
        assert {len(branch) for branch in document["branches"]} == {1}
    clean = next(document for document in host.documents if len(document["experiments"]) == 2)
    # Each kind alone, then all through each scheduler.
    assert [branch[0]["name"] for branch in clean["branches"]] == [
        "clean sizes 4 read-4k alone",
        "clean sizes 4 read-128k alone",
        "clean sizes 4 none",
        "clean sizes 4 gimbal",
    ]


def test_a_tenant_alone_has_its_own_load_and_region() -> None:
    host = Host()
    outcomes_of(host, SIZES)
    loads = {
        act["name"]: act["tenants"] for document in host.documents for act in acts_of(document) if "tenants" in act
    }
    (alone,) = loads["clean sizes 4 read-128k alone"]
    assert alone == loads["clean sizes 4 gimbal"][1]
    assert alone["arrivals"] == {"depth": 4}


def test_a_distribution_is_that_of_all_tenants_of_a_kind() -> None:
    none, _ = outcomes_of(Host(), SIZES, seeds=range(2))
    # Two tenants over two seeds: 160 requests, of which 120 took 100 ns at most.
    assert none.tenants[0].latency_buckets == ((100, 60), (200, 20))
    assert none.distribution("read-4k") == ((2, 100e-9), (4, 100e-9), (8, 200e-9), (16, 200e-9))
    assert quantile_ns(((100, 3), (200, 1)), 0.75) == 100
    assert quantile_ns(((100, 3), (200, 1)), 0.76) == 200
    assert quantile_ns((), 0.5) is None


def test_seeds_are_rounds_of_their_own() -> None:
    # Two tenants over six seeds; one alone gets 100, so that the mean f-Util of the readers is 2 x 60 / 100.
    alone = [[100.0, 50.0]] * 6
    together = [[rate, 25.0] for rate in (40.0, 50.0, 60.0, 60.0, 70.0, 80.0)]
    shares = shares_of(["r", "w"], alone, together, seed=1)
    assert shares.f_utils == pytest.approx((1.2, 1.0))
    reads, writes = shares.kinds["r"], shares.kinds["w"]
    low, high = reads.ci95
    assert low is not None
    assert high is not None
    assert 0.8 < low < 1.2 < high < 1.6
    assert writes == Figure(1.0, (1.0, 1.0))
    assert not reads.is_above(writes)
    assert Figure(3, (2.5, 3.5)).is_above(reads)
    assert shares_of(["r", "w"], alone, together, seed=1) == shares
    assert shares_of(["r", "w"], alone[:4], together[:4], seed=1).jain.ci95 == (None, None)


def test_each_seed_is_a_drive_of_its_own() -> None:
    host = Host()
    none, _ = outcomes_of(host, SIZES, seeds=range(3, 8))
    assert sorted(document["seed"] for document in host.documents) == [3, 4, 5, 6, 7]
    assert none.jain == Figure(1, (1, 1))


def test_a_sweep_changes_one_parameter() -> None:
    host = Host()

    def make(profile: Profile) -> DriveSim:
        return DriveSim(host, profile, size_bytes=4 * GIB, seed=3, binary="drivesim")

    by_buffer, by_slots = sweeps(make, load_profile("nvme-ssd"), Timing(1.0, 0.5), SOON)
    assert [one.parameter for one in (by_buffer, by_slots)] == ["write buffer, MiB", "virtual slots"]
    # One of a kind gets 10 MB/s alone, beside fifteen others 10 and 30.
    assert by_buffer.lines["read-4k"] == tuple((mib, 16) for mib in (2, 4, 8, 16, 32))
    assert by_slots.lines["write-4k"] == tuple((slots, 48) for slots in (8, 16, 32, 64, 128))
    buffers = [document["timing"]["write_buffer_kib"] for document in host.documents]
    assert buffers == [2048, 4096, 8192, 16384, 32768, 8192]
    given = [act["scheduler"] for act in acts_of(host.documents[-1]) if act["name"].endswith(("0", "4"))]
    assert given == [{"kind": "gimbal", "virtual_slots": 8}, {"kind": "gimbal", "virtual_slots": 128}]


def test_a_drive_behind_a_box_is_shared_as_one_that_is_not() -> None:
    host = Host()
    sim = DriveSim(host, load_profile("nvme-ssd"), size_bytes=4 * GIB, seed=3, binary="drivesim")
    hardware = Hardware(Cores(count=4, submission_us=1, completion_us=1), Link(mb_s=12_500))
    found = behind_box(sim, hardware, Timing(1.0, 0.5), SOON)
    # One alone gets 10 MB/s, as each of sixteen does without a scheduler; with one every other gets 30.
    assert found.shares == {"none": {"read-4k": 16, "write-4k": 16}, "gimbal": {"read-4k": 16, "write-4k": 48}}
    boxes = [act for document in host.documents for act in acts_of(document) if act["kind"] == "box"]
    assert [len(act["tenants"]) for act in boxes] == [1, 1, 16, 16]
    assert all(act["hardware"]["cores"]["count"] == 4 for act in boxes)


def test_a_neighbour_in_a_box_finds_nothing_of_what_others_did() -> None:
    host = Host()
    sim = DriveSim(host, load_profile("nvme-ssd"), size_bytes=1 * GIB, seed=3, binary="drivesim", drives=2)
    found = box_interference(sim, load_box("gimbal-smartnic"), SOON)
    assert [(one.case, one.scheduler) for one in found][::2] == [
        ("its drive", "none"), ("a core", "none"), ("the link", "none"),
    ]  # fmt: skip
    (document,) = host.documents
    assert not any(act["kind"] == "box" for act in document["experiments"])
    assert [len(branch) for branch in document["branches"]] == [1] * 12, "each on drives as they were prepared"
    assert [len(act["tenants"]) for act in acts_of(document) if act["kind"] == "box"] == [1, 2] * 6


def test_tenants_have_regions_of_their_own() -> None:
    loads = SIZES.tenants(3, 4 * GIB)
    regions = [load.region for load in loads if load.region]
    assert [region.offset for region in regions] == [0, regions[0].length, 2 * regions[0].length]
    assert sum(region.length for region in regions) <= 4 * GIB
    assert all(region.length % (128 << 10) == 0 for region in regions)
    assert [load.tenant.name for load in loads] == ["read-4k-1", "read-128k-1", "read-4k-2"]


@pytest.mark.parametrize("count", [3, 5, 6, 12])
@pytest.mark.parametrize("block_bytes", [None, 512, 4608])
def test_regions_begin_where_units_of_the_drive_do(count: int, block_bytes: int | None) -> None:
    trace = None if block_bytes else TraceReplay("t.jsonl")
    kind = TenantKind(name="alike", arrivals=Depth(1), block_bytes=block_bytes, trace=trace)
    loads = Scenario("alike", "clean", (kind,)).tenants(count, 4 * GIB)
    regions = [load.region for load in loads if load.region]
    assert len(regions) == count
    assert {region.offset % 4096 for region in regions} == {0}
    assert sum(region.length for region in regions) > 4 * GIB - count * 8192


def test_a_drive_smaller_than_its_tenants_is_refused() -> None:
    with pytest.raises(BadInput, match="leaves each of 64 tenants 0 B, less than one block of 4 KiB"):
        SIZES.tenants(64, 1 << 20)
    with pytest.raises(BadInput, match="sizes: 1 tenants are fewer than its 2 kinds"):
        SIZES.tenants(1, GIB)


def test_claims_tell_order_and_what_a_factor_is_of() -> None:
    found = {one.claim: one for one in claims(outcomes_of(Host(), SIZES, schedulers=("none", "reflex", "gimbal")))}
    # Here Gimbal gives each the same as ReFlex does, and shares worse than no scheduler.
    assert found["fairer in mixes than ReFlex, Parda and FlashFQ (Jain's index)"].agrees is True
    worse = found["fairer in mixes than no scheduler"]
    assert (worse.agrees, worse.ours) == (False, "in 0 of 1 comparisons")
    bandwidth, tail = found["bandwidth, up to"], found["tail latency (p99.9), up to"]
    assert (bandwidth.published, bandwidth.ours) == ("x6.6", "x1.0, of reflex (sizes, clean, 4 tenants)")
    assert tail.ours == "75.0% less, of reflex (sizes, clean, 4 tenants)"
    # What the published ones are of is not known, and a key-value store was not run.
    assert [found[name].agrees for name in (*list(found)[3:],)] == [None] * 4


def test_a_starved_tenant_has_no_tail_and_makes_none_better() -> None:
    whole = outcomes_of(Host(), SIZES, schedulers=("reflex", "parda", "gimbal"))
    *served, last = whole[-1].tenants
    starved = replace(whole[-1], tenants=(*served, replace(last, latency_ns=None, least_requests=0)))
    assert starved.worst_ns("p99_9") is starved.worst_ns("p99_9", last.kind) is None
    assert starved.worst_ns("p99_9", served[0].kind) == 100
    assert [row.endswith("| - | - | - |") for row in outcomes_table([starved, whole[0]])] == [False, False, True, False]
    assert tail_of([*whole[:-1], starved]) == f"not measured; {LEFT_OUT} gimbal {PLACE}"
    other = replace(whole[0], tenants=(*served, replace(last, latency_ns=None, least_requests=0)))
    assert tail_of([other, *whole[1:]]) == f"75.0% less, of parda {PLACE}; {LEFT_OUT} reflex {PLACE}"
    assert "left out" not in tail_of(whole)


PLACE = "(sizes, clean, 4 tenants)"
LEFT_OUT = "left out, with fewer than 10 requests of a tenant beyond it:"


def test_a_tail_is_of_enough_requests_of_each_tenant_in_each_seed() -> None:
    schedulers = ("reflex", "parda", "gimbal")
    host = Host(fewer={("reflex", 3): 78, ("parda", 0): 9999})
    few, almost, whole = outcomes_of(host, SIZES, schedulers=schedulers, seeds=range(2))
    assert (few.worst_ns("p50"), few.worst_ns("p99"), few.worst_ns("p99_9")) == (2, None, None)
    assert (almost.worst_ns("p99"), almost.worst_ns("p99_9")) == (4, None)
    assert (almost.worst_ns("p99_9", "read-128k"), whole.worst_ns("p99_9")) == (400, 100)
    assert tail_of([few, almost, whole]) == f"not measured; {LEFT_OUT} reflex, parda {PLACE}"
    assert [row.count(" - ") for row in outcomes_table([few, almost, whole])][2:] == [2, 1, 0]
    short = outcomes_of(Host(requests=78), SIZES, schedulers=schedulers)
    assert {one.worst_ns("p99_9") for one in short} == {None}
    assert tail_of(short) == f"not measured; {LEFT_OUT} all {PLACE}"


def tail_of(outcomes: Sequence[Outcome]) -> str:
    """The words on the claim of tail latency."""
    return next(one.ours for one in claims(outcomes) if one.claim == "tail latency (p99.9), up to")


def test_claims_of_what_was_not_measured_are_unknown() -> None:
    assert {one.agrees for one in claims(())} == {None}


def test_claims_over_seeds_tell_how_many_intervals_are_apart() -> None:
    found = {one.claim: one for one in claims(outcomes_of(Host(), SIZES, seeds=range(5)))}
    worse = found["fairer in mixes than no scheduler"]
    assert (worse.agrees, worse.ours) == (False, "in 0 of 1 comparisons; intervals apart: 0 above, 1 below")
