"""Loads on a box of clean drives, and the measures of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rackloop.clock import Deadline
from rackloop_models.drives import (
    Box,
    BoxResult,
    Depth,
    DriveSim,
    Hardware,
    Pattern,
    Rate,
    Region,
    State,
    Tenant,
    TenantLoad,
    known,
    on_prepared,
)
from rackloop_models.tenancy import merged, quantile_ns


@dataclass(frozen=True, kw_only=True)
class BoxLoad:
    """As many ``clients`` as are given on ``drives`` in turns, all alike, on a box."""

    hardware: Hardware
    drives: int
    clients: int
    arrivals: Depth | Rate
    block_bytes: int = 4096
    read_percent: float = 100.0
    pattern: Pattern = "random"
    warm_up_s: float = 0.02
    seconds: float = 0.05

    def experiment(self, name: str, size_bytes: int) -> Box:
        """The load as an experiment on drives of that size, each client in a region of its own."""
        per_drive = math.ceil(self.clients / self.drives)
        length = size_bytes // per_drive // self.block_bytes * self.block_bytes
        tenants = tuple(
            TenantLoad(
                tenant=Tenant(name=f"client-{number + 1}", read_only=self.read_percent == 100.0),
                drive=number % self.drives,
                pattern=self.pattern,
                block_bytes=self.block_bytes,
                read_percent=self.read_percent,
                arrivals=self.arrivals,
                region=Region(number // self.drives * length, length),
            )
            for number in range(self.clients)
        )
        return Box(
            name=name,
            hardware=self.hardware,
            tenants=tenants,
            warm_up_s=self.warm_up_s,
            seconds=self.seconds,
            histograms=True,
        )


def run_loads(sim: DriveSim, loads: Sequence[BoxLoad], deadline: Deadline) -> list[BoxResult]:
    """The result of each load on a box of clean drives, which no other has changed. Raises as DriveSim.run."""
    acts = [load.experiment(f"load {number + 1}", sim.size_bytes) for number, load in enumerate(loads)]
    found = on_prepared(sim, State.FILLED, acts, deadline)
    return [result for result in found if isinstance(result, BoxResult)]


def quantile_s(result: BoxResult, share: float) -> float:
    """A quantile of the latencies of all clients, by their histograms; raises ProtocolError where there are none."""
    buckets = merged(tenant.latency_buckets for tenant in result.tenants)
    return known(quantile_ns(buckets, share), result.name) / 1e9
