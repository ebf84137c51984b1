"""Two experiments beside the scenarios: a neighbour that asks for more and more, and Gimbal's state over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rackloop.clock import Deadline
from rackloop_models.drives import (
    NEIGHBOUR,
    PREPARATIONS,
    REST,
    VICTIM,
    Depth,
    DriveSim,
    Points,
    Region,
    Tenant,
    TenantLoad,
    Tenants,
    TenantsResult,
    bandwidth_of,
    neighbours,
)
from rackloop_models.tenancy._measure import STATES
from rackloop_models.tenancy._scenarios import KIB, Condition

DEPTHS = (1, 2, 4, 8, 16, 32)
_PAIR = 4
_JOIN_S, _LEAVE_S, _END_S, _INTERVAL_S = 1.0, 3.0, 4.0, 0.05


@dataclass(frozen=True)
class Interference:
    """Bandwidths of a victim and its neighbour in bytes a second, by the neighbour's depth."""

    neighbour: str
    victim_points: Points
    neighbour_points: Points


def interference(sim: DriveSim, deadline: Deadline) -> tuple[Interference, ...]:
    """The victim, 4 KiB random reads at depth 32, beside neighbours of three kinds, without a scheduler, drive clean.

    Raises as DriveSim.run.
    """
    kinds = (("128 KiB reads", 128 * KIB, 100.0), ("4 KiB reads", 4 * KIB, 100.0), ("4 KiB writes", 4 * KIB, 0.0))
    found = []
    for name, block_bytes, read_percent in kinds:
        results = []
        for depth in DEPTHS:
            act = neighbours(block_bytes, depth, read_percent=read_percent)
            results.append(_tenants(sim, "clean", act, deadline))
        pairs = list(zip(DEPTHS, results, strict=True))
        found.append(
            Interference(
                name,
                tuple((float(depth), bandwidth_of(result, VICTIM)) for depth, result in pairs),
                tuple((float(depth), bandwidth_of(result, NEIGHBOUR)) for depth, result in pairs),
            )
        )
    return tuple(found)


@dataclass(frozen=True)
class TimeLine:
    """Gimbal's state over time, on a drive in a ``condition``: points in seconds and SI base units, by name."""

    condition: Condition
    bandwidths: Mapping[str, Points]
    latencies: Mapping[str, Points]
    write_cost: Points


def time_line(sim: DriveSim, condition: Condition, deadline: Deadline) -> TimeLine:
    """Four readers of 4 KiB all the time, joined by four writers after a second, who leave after the third one.

    Writers are sequential on a clean drive, random on a fragmented one. Raises as DriveSim.run.
    """
    each = sim.size_bytes // (2 * _PAIR) // (128 * KIB) * 128 * KIB
    readers = [
        TenantLoad(
            tenant=Tenant(name=f"reader-{number}"),
            pattern="random",
            block_bytes=4 * KIB,
            arrivals=Depth(32),
            region=Region(number * each, each),
        )
        for number in range(_PAIR)
    ]
    writers = [
        TenantLoad(
            tenant=Tenant(name=f"writer-{number}"),
            pattern="sequential" if condition == "clean" else "random",
            block_bytes=4 * KIB,
            arrivals=Depth(32),
            read_percent=0.0,
            region=Region((_PAIR + number) * each, each),
            joins_s=_JOIN_S,
            disconnects_s=_LEAVE_S,
        )
        for number in range(_PAIR)
    ]
    act = Tenants(
        name=f"time line {condition}",
        scheduler={"kind": "gimbal"},
        tenants=(*readers, *writers),
        seconds=_END_S,
        interval_s=_INTERVAL_S,
    )
    result = _tenants(sim, condition, act, deadline)
    states = result.states or ()

    def state(key: str, per: float = 1.0) -> Points:
        return tuple((one.at_s, one.state[key] * per) for one in states)

    return TimeLine(
        condition,
        {
            "target rate": state("target_rate"),
            "reads": _summed(result, "reader"),
            "writes": _summed(result, "writer"),
        },
        {
            "reads, average": state("read_latency_ns", 1e-9),
            "reads, threshold": state("read_threshold_ns", 1e-9),
            "writes, average": state("write_latency_ns", 1e-9),
            "writes, threshold": state("write_threshold_ns", 1e-9),
        },
        state("write_cost"),
    )


def _summed(result: TenantsResult, kind: str) -> Points:
    """The bandwidth of tenants whose names begin so, at the middle of each interval."""
    count = round(_END_S / _INTERVAL_S)
    sums = [0] * count
    for tenant in result.tenants:
        if tenant.name.startswith(kind):
            for place, interval in enumerate((tenant.intervals or ())[:count]):
                sums[place] += interval.bytes
    return tuple(((place + 0.5) * _INTERVAL_S, total / _INTERVAL_S) for place, total in enumerate(sums))


def _tenants(sim: DriveSim, condition: Condition, act: Tenants, deadline: Deadline) -> TenantsResult:
    found: Sequence[object] = sim.run([*PREPARATIONS[STATES[condition]], REST, act], deadline)
    (result,) = (one for one in found if isinstance(one, TenantsResult))
    return result
