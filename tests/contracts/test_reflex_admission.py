"""Tenants as the plan declares them to ReFlex: the rates that they reserve, and whether they are let in."""

from __future__ import annotations

from rackloop.clock import Deadline, RealClock
from rackloop.lab import load_profile
from rackloop_drivers.host import LocalExecutor
from rackloop_fixtures import Tenant, Workload
from rackloop_models import drives

RATE_IOPS, OBJECTIVE_S, SECONDS = 4000, 1e-3, 10.0


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
