"""Tenants as the plan declares them to ReFlex: the rates that they reserve, and whether they are let in."""

from __future__ import annotations

import runpy
from typing import Any

import pytest

from rackloop.clock import Deadline, RealClock
from rackloop.data import data_path
from rackloop.errors import BadInput
from rackloop.lab import load_lab, load_profile
from rackloop_drivers.host import LocalExecutor
from rackloop_fixtures import Tenant, Workload
from rackloop_fixtures.subjects.tenant_boxes import require_scheduled
from rackloop_models import drives

RATE_IOPS, OBJECTIVE_S, SECONDS = 4000, 1e-3, 10.0
REFLEX = {"through": "reflex", "scheduler_parameters": ""}
# More than the curve of a drive that is written has at this objective, and less than that of one that is not.
DEMANDING = Tenant("t1", Workload(128 << 10, 100), rate_iops=15_625, objective_s=500e-6)


def test_a_tenant_of_random_arrivals_alone_keeps_its_objective() -> None:
    workload = Workload(4096, 100)
    tenant = Tenant("t1", workload, rate_iops=RATE_IOPS, objective_s=OBJECTIVE_S)
    assert tenant.slo is not None
    load = drives.TenantLoad(
        tenant=drives.Tenant(name=tenant.name, slo=drives.Slo(**tenant.slo)),
        pattern="random",
        block_bytes=workload.block_bytes,
        read_percent=float(workload.read_percent),
        arrivals=drives.Rate(tenant.rate_iops),
    )
    act = drives.Tenants(
        name="alone", tenants=(load,), seconds=SECONDS, warm_up_s=0.1, scheduler={"kind": "reflex"}, histograms=True
    )
    with LocalExecutor(clock := RealClock()) as executor:
        sim = drives.DriveSim(executor, load_profile("nvme-ssd"), size_bytes=1 << 30, seed=1)
        (result,) = sim.run([act], Deadline.after(clock, 60))
    assert isinstance(result, drives.TenantsResult)
    (served,) = result.tenants
    buckets = served.latency_buckets or ()
    met = sum(count for upper_ns, count in buckets if upper_ns <= OBJECTIVE_S * 1e9)
    assert met >= 0.95 * sum(count for _, count in buckets) > 0


def test_tenants_that_only_read_are_let_in_by_the_curve_of_reads() -> None:
    require_scheduled(REFLEX, [DEMANDING, Tenant("t2", Workload(4096, 100))])
    with pytest.raises(BadInput, match="CANTMEETSLO"):
        require_scheduled(REFLEX, [DEMANDING, Tenant("t2", Workload(4096, 99))])


@pytest.mark.parametrize(("read_percents", "is_admitted"), [([100], True), ([100, 0], False), ([0, 100], False)])
def test_a_neighbour_that_writes_in_any_case_may_write(read_percents: list[int], *, is_admitted: bool) -> None:
    plan: dict[str, Any] = runpy.run_path(str(data_path("testplans") / "tenancy" / "test_isolation.py"))
    parameters = {name: one.default for name, one in plan["PARAMETERS"].items()} | REFLEX
    parameters |= {"rate": DEMANDING.rate_iops, "objective": DEMANDING.objective_s}
    parameters["block"] = DEMANDING.workload.block_bytes
    parameters["neighbour_read_percents"] = read_percents
    if is_admitted:
        assert plan["estimate_s"](load_lab("mock"), parameters) > 0
    else:
        with pytest.raises(BadInput, match="CANTMEETSLO"):
            plan["estimate_s"](load_lab("mock"), parameters)
