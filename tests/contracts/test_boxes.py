"""Boxes in virtual time: what was published of them comes out, or its profile says that it does not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import box_reference
from generated import between
from rackloop.lab import load_profile
from rackloop_drivers.host import LocalExecutor
from rackloop_models.drives import (
    Box,
    BoxCheck,
    BoxResult,
    Cores,
    Depth,
    DriveSim,
    Hardware,
    Link,
    Recorded,
    Region,
    Tenant,
    TenantLoad,
    Tenants,
    TenantsResult,
    TraceReplay,
    WeightedOperation,
    WeightedSize,
    box_checks,
    box_curves,
    box_names,
    load_box,
    tenant_tables,
    write_replay,
)
from rackloop_traces import open_trace
from tests.deadlines import soon


@pytest.fixture(scope="module")
def found() -> dict[str, tuple[BoxCheck, ...]]:
    return box_reference.checks()


def test_published_figures_of_boxes_are_met_or_said_to_differ(found: dict[str, tuple[BoxCheck, ...]]) -> None:
    assert sorted(found) == box_names()
    for name, checks in found.items():
        assert len(checks) == len(load_box(name).published) >= 5
        wrong = {
            check.published.figure: f"{check.model:.4g}"
            for check in checks
            if check.is_met is (check.published.differs is not None)
        }
        assert wrong == {}, f"{name}: missed without a word, or met although it is said to differ"


def test_the_page_has_what_comes_out_of_boxes(found: dict[str, tuple[BoxCheck, ...]]) -> None:
    written = between(box_reference.PAGE, box_reference.BEGIN)
    assert written == box_reference.table(found), "run: python tools/box_reference.py"


@pytest.mark.parametrize(
    ("part", "value", "figure"),
    [
        ("cores", {"submission_us": 2.4}, "randread.iops.cores3.4KiB"),
        ("cores", {"notice_us": 6.0}, "randread.latency.average.4KiB"),
        ("link", {"mb_s": 4000.0}, "randread.iops.cores3.4KiB"),
    ],
)
def test_a_wrong_parameter_of_a_box_is_told(
    executor: LocalExecutor, part: str, value: dict[str, float], figure: str
) -> None:
    box, beside = load_box("gimbal-smartnic"), load_box("x86-server")
    published = tuple(entry for entry in box.published if entry.figure == figure)
    changed = box.model_copy(update={part: getattr(box, part).model_copy(update=value), "published": published})
    checks = box_checks(executor, [changed, beside], soon(300), size_bytes=1 << 28, seed=1)
    (check,) = checks[box.name]
    assert not check.is_met, check


def test_the_curves_of_a_box_are_bound_by_its_cores_and_then_by_its_drives(
    executor: LocalExecutor, found: dict[str, tuple[BoxCheck, ...]]
) -> None:
    box = load_box("gimbal-smartnic")
    (curves,) = box_curves(executor, [box], soon(300), size_bytes=box_reference.SIZE_BYTES, seed=box_reference.SEED)
    small = dict(curves.iops["random reads of 4 KiB"])
    assert list(small) == [1, 2, 3, 4, 6, 8]
    # 1.8 us of a core's work are 556 thousand requests a second of each.
    assert small[1] == pytest.approx(556e3, rel=0.01)
    assert small[2] == pytest.approx(2 * small[1], rel=0.01)
    assert small[8] == pytest.approx(small[4], rel=0.01)
    assert small[8] < 3 * small[1]
    reads, writes = (dict(curves.latency[what]) for what in ("random reads", "sequential writes"))
    assert list(reads) == list(writes) == [4, 8, 16, 32, 64, 128, 256]
    assert list(reads.values()) == sorted(reads.values())
    assert all(writes[kib] < reads[kib] for kib in reads)
    # They are the points of the table, and what was published beside them.
    model = {check.published.figure: check.model for check in found[box.name]}
    assert small[3] == pytest.approx(model["randread.iops.cores3.4KiB"], rel=0.02)
    assert reads[4] == pytest.approx(model["randread.latency.average.4KiB"], rel=0.02)
    assert curves.published_iops == {
        "random reads of 4 KiB": ((3.0, 1513e3),),
        "sequential writes of 4 KiB": ((3.0, 1316e3),),
    }
    assert curves.published_latency == {"random reads": ((4.0, 75.3e-6),)}


FREE = Hardware(Cores(count=1, submission_us=0.0, completion_us=0.0), Link(mb_s=12500.0))


def test_every_kind_of_load_runs_on_a_drive_and_in_a_box(executor: LocalExecutor, tmp_path: Path) -> None:
    trace_file = tmp_path / "short.csv"
    lines = [f"0,R,{number * 4096},4096,{1_577_808_000_000_000 + number * 1000}" for number in range(100)]
    trace_file.write_text("\n".join(lines) + "\n")
    replay = tmp_path / "replay.jsonl"
    written = write_replay(open_trace(trace_file, format="alibaba"), replay)
    assert (written.requests, written.left_out) == (100, 0)
    first = json.loads(replay.read_text().splitlines()[1])
    assert first == {"t_ns": 1_000_000, "op": 0, "offset_bytes": 4096, "size_bytes": 4096}
    loads = (
        TenantLoad(
            tenant=Tenant(name="sizes"),
            sizes=(WeightedSize(4096, 3), WeightedSize(65536, 1)),
            pattern="random",
            arrivals=Depth(8),
            region=Region(0, 1 << 26),
        ),
        TenantLoad(
            tenant=Tenant(name="store"),
            operations=(
                WeightedOperation(operation="read", block_bytes=4096, weight=9, priority="urgent"),
                WeightedOperation(operation="write", block_bytes=131072, weight=1, pattern="sequential"),
            ),
            priority="low",
            follows_credit=True,
            arrivals=Depth(32),
        ),
        TenantLoad(tenant=Tenant(name="trace"), trace=TraceReplay(str(replay), speed=2.0)),
    )
    recorded: list[Recorded] = []

    def record(seed: int, result: TenantsResult | BoxResult) -> None:
        recorded.append(Recorded(seed, result))

    sim = DriveSim(executor, load_profile("nvme-ssd"), size_bytes=1 << 28, seed=3, drives=2, record=record)
    experiments = (
        Tenants(name="one", tenants=loads, seconds=0.1, scheduler={"kind": "gimbal"}, interval_s=0.04, histograms=True),
        Box(name="box", hardware=FREE, tenants=loads, seconds=0.1, scheduler={"kind": "gimbal"}, histograms=True),
    )
    one, box = sim.run(experiments, soon(300))
    assert isinstance(one, TenantsResult)
    assert isinstance(box, BoxResult)
    for result in (one, box):
        # 100 requests 0.5 ms apart, all within the measured time.
        trace = next(tenant for tenant in result.tenants if tenant.name == "trace")
        assert (trace.total.requests, trace.writes.requests) == (100, 0)
        for tenant in result.tenants:
            assert sum(count for _, count in tenant.latency_buckets or ()) == tenant.total.requests > 0
    tables = tenant_tables(recorded)
    assert tables.write(tmp_path) == ("tenants.parquet", "histograms.parquet", "series.parquet")
    assert tables.tenants.filter(tables.tenants["operation"] == "all")["requests"].to_list() == [
        tenant.total.requests for result in (box, one) for tenant in result.tenants
    ]
    assert tables.series["at_s"].unique().sort().to_list() == [0.04, 0.08, 0.1]
    assert sim.run(experiments, soon(300)) == (one, box), "the same seed, the same results"
