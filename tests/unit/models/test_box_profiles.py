"""Box profiles, their figures, and the tables of tenants' results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest

from rackloop.abilities import Completed
from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import BadInput, NotSupported
from rackloop_models.drives import (
    Figures,
    Interval,
    Latency,
    Recorded,
    TenantResult,
    TenantsResult,
    box_checks,
    box_names,
    load_box,
    tenant_tables,
)
from tests.unit.models.run_only_executor import RunOnlyExecutor

SOON = Deadline.after(VirtualClock(), 60)
LATENCY = Latency(mean=2.5, min=1, p50=2, p90=3, p99=4, p99_9=5, max=6)
SOME = Figures(requests=2, bytes=8192, iops=2.0, bytes_per_s=8192.0, latency_ns=LATENCY)
NONE = Figures(requests=0, bytes=0, iops=0.0, bytes_per_s=0.0, latency_ns=None)


class Host(RunOnlyExecutor):
    """A host that runs nothing."""

    def run(self, argv: Sequence[str], deadline: Deadline, *, stdin: str = "") -> Completed:
        raise NotSupported(f"{argv} is not run within {deadline}, given {stdin}")


def result(name: str, *, buckets: tuple[tuple[int, int], ...] | None = None) -> TenantsResult:
    tenant = TenantResult(
        name="a",
        errors=1,
        total=SOME,
        reads=SOME,
        writes=NONE,
        interval_s=0.4,
        intervals=tuple(Interval(n, 4096 * n, 10, 20) for n in range(3)),
        device_latency_ns=None,
        dropped=0,
        latency_buckets=buckets,
    )
    return TenantsResult("tenants", name, "gimbal", 1.0, 1.0, (tenant,), None, {})


def test_tables_have_rows_by_experiment_and_seed_whatever_came_first() -> None:
    recorded = [
        Recorded(2, result("x", buckets=((63, 1), (127, 1)))),
        Recorded(1, result("x")),
        Recorded(9, result("a")),
    ]
    tables = tenant_tables(recorded)
    assert tables.tenants.select("experiment", "seed").unique(maintain_order=True).rows() == [
        ("a", 9),
        ("x", 1),
        ("x", 2),
    ]
    row = tables.tenants.row(0, named=True)
    assert (row["operation"], row["latency_mean_ns"], row["latency_p99_9_ns"]) == ("all", 2.5, 5)
    writes = tables.tenants.filter(pl.col("operation") == "write")
    assert writes["latency_mean_ns"].to_list() == [None] * 3
    assert tables.histograms.select("seed", "upper_ns", "count").rows() == [(2, 63, 1), (2, 127, 1)]
    assert tables.series.filter(pl.col("seed") == 9)["at_s"].to_list() == [0.4, 0.8, 1.0]


def test_tables_without_results_still_have_their_columns(tmp_path: Path) -> None:
    for name in tenant_tables([]).write(tmp_path):
        assert pl.read_parquet(tmp_path / name).columns[:4] == ["experiment", "seed", "scheduler", "tenant"]


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"tenants\.parquet"):
        tenant_tables([]).write(tmp_path / "nowhere")


def test_boxes_have_their_hardware() -> None:
    assert box_names() == ["gimbal-smartnic", "x86-server"]
    arm = load_box("gimbal-smartnic")
    assert (arm.cores.kind, arm.drives, arm.drive) == ("a72", 4, "nvme-ssd")
    three = arm.hardware(cores=3, serve="drives")
    assert (three.cores.count, three.cores.serve) == (3, "drives")
    assert arm.hardware().cores.count == 8


def test_an_unknown_box_is_named_with_what_was_meant() -> None:
    with pytest.raises(BadInput, match=r"no box profile is named 'gimbal-smartnik'.*gimbal-smartnic"):
        load_box("gimbal-smartnik")


def test_a_box_file_with_a_wrong_value_is_told_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("box: mine\nlike: it\ndrive: nvme-ssd\ndrives: 0\nsources: []\n")
    with pytest.raises(BadInput, match=r"mine\.yaml:4"):
        load_box(path)


def test_boxes_of_different_drives_are_not_held_against_each_other() -> None:
    one = load_box("gimbal-smartnic")
    other = load_box("x86-server").model_copy(update={"drives": 2})
    with pytest.raises(BadInput, match="the same drives"):
        box_checks(Host(), [one, other], SOON, size_bytes=1 << 28, seed=1, binary="drivesim")
