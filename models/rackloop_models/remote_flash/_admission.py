"""ReFlex's admission by objectives: the curve of a drive up to classes of 5 and 10 ms, and tenants admitted by it.

The curve is calibrated as the paper does (section 3.2.1): loads of reads, and of reads with writes, are offered to the
drive until the 95th percentile of reads exceeds a bound; a write costs as many tokens as makes the curves overlap, ten
here. Latency-critical tenants that only read are then admitted beside a best-effort writer until one is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rackloop.clock import Deadline
from rackloop.errors import BadInput
from rackloop_models.drives import (
    Depth,
    DriveSim,
    Rate,
    Region,
    Slo,
    State,
    Tenant,
    TenantLoad,
    Tenants,
    TenantsResult,
    on_prepared,
)
from rackloop_models.tenancy import quantile_ns
from rackloop_oracles.fairness import USED_SHARE

BOUNDS_US = (500.0, 1000.0, 2000.0, 3000.0, 5000.0, 10_000.0)
WRITE_COST = 10.0
# Tokens a second that are offered, in steps of an eighth of a doubling.
_LEAST_TOKENS, _STEPS_PER_DOUBLING, _STEPS = 50e3, 4, 20
_WRITE_SHARE = 0.2
_READER_IOPS = 20e3
_KIB_4 = 4096


@dataclass(frozen=True)
class CurvePoint:
    """Tokens a second that a drive gives while the 95th percentile of reads keeps a bound; 0 where it never does."""

    p95_us: float
    tokens_per_s: float
    read_only_tokens_per_s: float


@dataclass(frozen=True)
class Admission:
    """Tenants of a class of objectives: how many were admitted, the refusal of one more, the worst p95 of theirs."""

    p95_us: float
    admitted: int
    refusal: str
    worst_p95_us: float | None
    writer_iops: float

    @property
    def is_kept(self) -> bool | None:
        """Whether every admitted tenant had its objective; None where none was admitted."""
        return None if self.worst_p95_us is None else self.worst_p95_us <= self.p95_us


def slo_curve(sim: DriveSim, deadline: Deadline) -> tuple[CurvePoint, ...]:
    """The curve of a fragmented drive at ``BOUNDS_US``, without a scheduler. Raises as DriveSim.run."""
    offered = [_LEAST_TOKENS * 2 ** (step / _STEPS_PER_DOUBLING) for step in range(_STEPS)]
    mixed = _swept(sim, [_mix(tokens, _WRITE_SHARE) for tokens in offered], deadline)
    read_only = _swept(sim, [_mix(tokens, 0.0) for tokens in offered], deadline)
    found = []
    for bound in BOUNDS_US:
        only = tokens_within(offered, read_only, bound)
        # Where a write turns out cheaper than its tokens, tokens that are all spent on reads would be too many.
        found.append(CurvePoint(bound, min(tokens_within(offered, mixed, bound), only), only))
    return tuple(found)


def tokens_within(offered: Sequence[float], p95_us: Sequence[float], bound_us: float) -> float:
    """The tokens a second up to which the 95th percentile keeps a bound, linear between what was offered."""
    most, before_us = 0.0, 0.0
    for tokens, found_us in zip(offered, p95_us, strict=True):
        if found_us > bound_us:
            share = (bound_us - before_us) / (found_us - before_us)
            return most + share * (tokens - most) if most else 0.0
        most, before_us = tokens, found_us
    return most


def reflex(curve: Sequence[CurvePoint]) -> dict[str, Any]:
    """ReFlex with a drive's curve, as drivesim takes it; bounds that are never kept are left out."""
    points = [
        {
            "p95_us": one.p95_us,
            "tokens_per_s": one.tokens_per_s,
            "read_only_tokens_per_s": one.read_only_tokens_per_s,
        }
        for one in curve
        if one.tokens_per_s > 0 and one.read_only_tokens_per_s > 0
    ]
    return {"kind": "reflex", "write_cost": WRITE_COST, "curve": points}


def admissions(sim: DriveSim, curve: Sequence[CurvePoint], deadline: Deadline) -> tuple[Admission, ...]:
    """Readers of 20,000 IOPS beside a best-effort writer, admitted by the curve, for each bound.

    Raises as DriveSim.run.
    """
    scheduler = reflex(curve)
    found, acts = [], []
    for one in curve:
        count, refusal = _admitted(sim, scheduler, one, deadline)
        found.append((one.p95_us, count, refusal))
        if count:
            acts.append(_tenants(sim, scheduler, one.p95_us, count))
    results = iter(_results(sim, acts, deadline))
    return tuple(
        Admission(bound, count, refusal, *_judged(next(results) if count else None)) for bound, count, refusal in found
    )


def _admitted(sim: DriveSim, scheduler: dict[str, Any], point: CurvePoint, deadline: Deadline) -> tuple[int, str]:
    """The number of readers let in, and the refusal of one more: drivesim says it before anything runs."""
    expected = int(point.tokens_per_s // _READER_IOPS)
    for count in range(max(expected - 1, 0), expected + 3):
        try:
            sim.run([_tenants(sim, scheduler, point.p95_us, count + 1, seconds=0.001)], deadline)
        except BadInput as refused:
            return count, str(refused)
    raise BadInput(
        f"{expected + 3} readers were let in at p95 {point.p95_us:g} us, with {point.tokens_per_s:.0f} tokens/s"
    )


def _judged(result: TenantsResult | None) -> tuple[float | None, float]:
    """The worst 95th percentile of readers in us, and the IOPS of the writer."""
    if result is None:
        return None, 0.0
    writer, *readers = result.tenants
    found = [quantile_ns(reader.latency_buckets or (), 0.95) for reader in readers]
    known = [one for one in found if one is not None]
    return (max(known) / 1e3 if len(known) == len(found) else None), writer.total.iops or 0.0


def _tenants(sim: DriveSim, scheduler: dict[str, Any], p95_us: float, count: int, *, seconds: float = 0.2) -> Tenants:
    length = sim.size_bytes // (count + 1) // _KIB_4 * _KIB_4
    readers = [
        TenantLoad(
            tenant=Tenant(name=f"reader-{number + 1}", slo=Slo(_READER_IOPS, 100.0, p95_us), read_only=True),
            pattern="random",
            block_bytes=_KIB_4,
            arrivals=Rate(USED_SHARE * _READER_IOPS),
            region=Region(number * length, length),
        )
        for number in range(count)
    ]
    writer = TenantLoad(
        tenant=Tenant(name="writer"),
        pattern="random",
        block_bytes=_KIB_4,
        read_percent=0.0,
        arrivals=Depth(32),
        region=Region(count * length, length),
    )
    return Tenants(
        name=f"{count} readers at {p95_us:g} us",
        scheduler=scheduler,
        # The writer first, so that the curve of mixed loads holds for all.
        tenants=(writer, *readers),
        warm_up_s=min(0.1, seconds),
        seconds=seconds,
        histograms=True,
    )


def _mix(tokens_per_s: float, write_share: float) -> Tenants:
    """Open loops of reads and of writes, which cost so many tokens a second together."""
    requests = tokens_per_s / (1 - write_share + write_share * WRITE_COST)
    loads = [("reads", 100.0, (1 - write_share) * requests), ("writes", 0.0, write_share * requests)]
    return Tenants(
        name=f"{tokens_per_s:.0f} tokens/s",
        tenants=tuple(
            TenantLoad(
                tenant=Tenant(name=name, read_only=percent == 100.0),
                pattern="random",
                block_bytes=_KIB_4,
                read_percent=percent,
                arrivals=Rate(rate),
            )
            for name, percent, rate in loads
            if rate > 0
        ),
        # Longer than the drive's buffer takes to fill with what writes exceed its flash by.
        warm_up_s=0.4,
        seconds=0.1,
        histograms=True,
    )


def _swept(sim: DriveSim, acts: Sequence[Tenants], deadline: Deadline) -> list[float]:
    """The 95th percentile of the reads of each, in us."""
    results = _results(sim, acts, deadline)
    found = [quantile_ns(result.of("reads").latency_buckets or (), 0.95) for result in results]
    return [float("inf") if one is None else one / 1e3 for one in found]


def _results(sim: DriveSim, acts: Sequence[Tenants], deadline: Deadline) -> list[TenantsResult]:
    """The result of each, on a fragmented drive that no other has changed."""
    found = on_prepared(sim, State.FRAGMENTED, acts, deadline) if acts else ()
    return [result for result in found if isinstance(result, TenantsResult)]
