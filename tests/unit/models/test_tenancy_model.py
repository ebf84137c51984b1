"""Tenants on a drive model: scenarios and their files, the measures of outcomes, claims beside them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rackloop.abilities import Completed
from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import BadInput
from rackloop.lab import load_profile
from rackloop_models.drives import Depth, DriveSim, Rate
from rackloop_models.tenancy import SCENARIOS, Outcome, Scenario, Timing, claims, load_scenarios, measured
from tests.unit.models.run_only_executor import RunOnlyExecutor

SOON = Deadline.after(VirtualClock(), 60)
GIB = 1 << 30
BY_NAME = {(one.name, one.condition): one for one in SCENARIOS}
SIZES = BY_NAME["sizes", "clean"]


def figures(bytes_per_s: float, p99_9: int) -> dict[str, Any]:
    latency = {"mean": 1.0, "min": 1, "p50": 2, "p90": 3, "p99": 4, "p99_9": p99_9, "max": 9}
    return {"requests": 1, "bytes": 1, "iops": 1.0, "bytes_per_s": bytes_per_s, "latency_ns": latency}


@dataclass
class Host(RunOnlyExecutor):
    """A drivesim whose tenants get 10 MB/s, one in two of them 30 under any scheduler but the first."""

    documents: list[dict[str, Any]] = field(default_factory=list)

    def run(self, argv: Sequence[str], deadline: Deadline, *, stdin: str = "") -> Completed:
        assert deadline is SOON
        document = json.loads(stdin)
        self.documents.append(document)
        lines = [json.dumps(self._answer(experiment)) for experiment in document["experiments"]]
        return Completed(tuple(argv), 0, "\n".join(lines), "")

    def _answer(self, experiment: dict[str, Any]) -> dict[str, Any]:
        named = {"name": experiment["name"], "kind": experiment["kind"]}
        match experiment["kind"]:
            case "tenants":
                kind = experiment["scheduler"]["kind"]
                tenants = []
                for number, load in enumerate(experiment["tenants"]):
                    rate = 30e6 if kind != "none" and number % 2 else 10e6
                    total = figures(rate, 100 if kind == "gimbal" else 400)
                    rest: dict[str, Any] = {
                        "errors": 0,
                        "interval_s": None,
                        "intervals": None,
                        "dropped": 0,
                        "device_latency_ns": None,
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
            case "load":
                total = figures(1.0, 1)
                rest = {"start_s": 0, "seconds": 1, "errors": 0, "total": total, "reads": total, "writes": total}
                return named | rest | {"interval_s": None, "intervals": None}
            case _:
                return named | {"end_s": 1.0}


def outcomes_of(host: Host, *scenarios: Scenario, schedulers: Sequence[str] = ("none", "gimbal")) -> list[Outcome]:
    sim = DriveSim(host, load_profile("nvme-ssd"), size_bytes=4 * GIB, seed=3, binary="drivesim")
    kinds = {name: {"kind": name} for name in schedulers}
    return list(measured(sim, scenarios, (4,), kinds, Timing(1.0, 0.5), SOON, lambda *_: None))


def test_the_share_of_a_tenant_is_held_against_its_likes_alone() -> None:
    none, gimbal = outcomes_of(Host(), SIZES)
    # Four alike get 40 MB/s alone, so an equal share is 10 MB/s.
    assert [tenant.alone_bytes_per_s for tenant in gimbal.tenants] == [40e6] * 4
    assert [tenant.f_util for tenant in gimbal.tenants] == [1, 3, 1, 3]
    assert [tenant.f_util for tenant in none.tenants] == [1] * 4
    assert none.jain == 1
    assert gimbal.jain == pytest.approx(64 / (4 * 20))
    assert gimbal.min_max == pytest.approx(1 / 3)
    assert (gimbal.utilisation, gimbal.bytes_per_s) == (2, 80e6)
    assert [tenant.kind for tenant in gimbal.tenants] == ["read-4k", "read-128k"] * 2
    assert (gimbal.worst_ns("p99_9"), none.worst_ns("p99_9", "read-4k")) == (100, 400)


def test_a_clean_drive_is_made_anew_for_each_run_and_a_fragmented_one_is_kept() -> None:
    host = Host()
    outcomes_of(host, SIZES, BY_NAME["sizes", "fragmented"], BY_NAME["writes-4k", "fragmented"])
    acts = [[act["name"] for act in document["experiments"]] for document in host.documents]
    clean = next(names for names in acts if "overwrite" not in names)
    fragmented = next(names for names in acts if "overwrite" in names)
    assert len(acts) == 2
    assert clean.count("fill") == 4
    assert fragmented.count("overwrite") == 1
    # Each kind alone, then all through each scheduler.
    assert [name for name in clean if name.startswith("clean sizes")] == [
        "clean sizes 4 none read-4k",
        "clean sizes 4 none read-128k",
        "clean sizes 4 none",
        "clean sizes 4 gimbal",
    ]


def test_tenants_have_regions_of_their_own() -> None:
    loads = SIZES.tenants(3, 4 * GIB)
    regions = [load.region for load in loads if load.region]
    assert [region.offset for region in regions] == [0, regions[0].length, 2 * regions[0].length]
    assert sum(region.length for region in regions) <= 4 * GIB
    assert all(region.length % (128 << 10) == 0 for region in regions)
    assert [load.tenant.name for load in loads] == ["read-4k-1", "read-128k-1", "read-4k-2"]


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


def test_claims_of_what_was_not_measured_are_unknown() -> None:
    assert {one.agrees for one in claims(())} == {None}


FILE = """\
scenarios:
  - name: mine
    condition: fragmented
    tenants:
      - {name: web, block: 4 KiB, depth: 8, read_percent: 90, region: 1 GiB, weight: 2}
      - {name: batch, block: 1 MiB, per_second: 100, pattern: sequential, slo: {iops: 100, p95_us: 500}}
"""


def test_a_file_has_scenarios(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(FILE)
    (scenario,) = load_scenarios(path)
    web, batch = scenario.tenants(2, 4 * GIB)
    assert (scenario.name, scenario.condition) == ("mine", "fragmented")
    assert (web.arrivals, web.read_percent, web.tenant.weight, web.tenant.read_only) == (Depth(8), 90, 2, False)
    assert web.region is not None
    assert web.region.length == GIB
    assert (batch.arrivals, batch.pattern, batch.block_bytes) == (Rate(100), "sequential", 1 << 20)
    assert batch.tenant.slo is not None
    with pytest.raises(BadInput, match="regions of its 12 tenants are 6 GiB together, and the drive has 4 GiB"):
        scenario.tenants(12, 4 * GIB)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("depth: 8, ", "", "mine, tenant web has no load; give depth"),
        ("depth: 8, ", "depth: 8, per_second: 1, ", "web has both depth and per_second"),
        ("condition", "conditon", "unknown key; did you mean 'condition'?"),
        ("fragmented", "broken", "broken"),
        ("4 KiB", "4 kilo", "expected a quantity in B"),
        ("4 KiB", "100 B", "whole sectors of 512 bytes"),
        ("depth: 8", "depth: 0", "from 1 to 65536"),
        ("weight: 2", "weight: 0", "a number above zero"),
        ("percent: 90", "percent: 101", "from 0 to 100"),
        ("batch", "web", "two kinds of tenants called web"),
    ],
)
def test_a_file_with_a_mistake_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(FILE.replace(old, new, 1))
    with pytest.raises(BadInput, match=said.replace("?", r"\?")):
        load_scenarios(path)
