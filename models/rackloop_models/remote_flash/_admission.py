"""ReFlex's admission by objectives: the curve of a drive up to classes of 5 and 10 ms, and tenants admitted by it.

The curve is calibrated as the published code says (sample.devmodel): reads, and mixes of reads and writes, are offered
to the drive until the 95th percentile of reads exceeds a bound. A write costs ten tokens, with which the curves of all
mixes should overlap; where they do not, the lowest counts. Latency-critical tenants that only read are then admitted
beside a best-effort writer until one is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
from rackloop_models.tenancy import merged, quantile_ns
from rackloop_oracles.fairness import USED_SHARE

BOUNDS_US = (500.0, 1000.0, 2000.0, 3000.0, 5000.0, 10_000.0)
WRITE_COST = 10.0
# Four steps for each doubling, to twice the reads that the drive gives.
OFFERED_TOKENS_PER_S = tuple(25e3 * 2 ** (step / 4) for step in range(21))
# From reads alone to as many writes as reads: what admitted tenants meet may be any of these.
WRITE_PERCENTS = (0, 1, 2, 5, 10, 20, 50)
_READER_IOPS = 20e3
# Calibration and use are in the same state: it takes some seconds of few writes until every die collects garbage, and
# before that the tail is too short.
_WARM_UP_S = 3.0
# Enough for the 95th percentile of one reader of many.
_SECONDS = 1.0
_KIB_4 = 4096


@dataclass(frozen=True)
class CurvePoint:
    """Tokens a second that a drive gives while the 95th percentile of reads keeps a bound; 0 where it never does.

    ``tokens_per_s`` holds for loads of any mix; ``by_write_percent`` has what each mix by itself would allow.
    """

    p95_us: float
    tokens_per_s: float
    read_only_tokens_per_s: float
    by_write_percent: Mapping[int, float] = field(default_factory=dict)

    @property
    def fitting_write_cost(self) -> int | None:
        """The tokens of a write, up to 100, with which the mixes differ least; reads alone have a curve of their own.

        None where fewer than two mixes ever keep the bound.
        """
        kept = [
            (percent / 100, tokens / _tokens_per_request(percent / 100, WRITE_COST))
            for percent, tokens in self.by_write_percent.items()
            if percent and tokens
        ]
        if len(kept) < 2:
            return None

        def spread(cost: int) -> float:
            tokens = [requests * _tokens_per_request(share, cost) for share, requests in kept]
            return max(tokens) / min(tokens)

        return min(range(1, 101), key=spread)


@dataclass(frozen=True)
class Admission:
    """Tenants of a class of objectives: how many were admitted, and the refusal of one more.

    ``readers_p95_us`` is the 95th percentile of all their reads together, and ``worst_p95_us`` the worst tenant's, None
    where one of them was served no read.
    """

    p95_us: float
    admitted: int
    refusal: str
    readers_p95_us: float | None
    worst_p95_us: float | None
    writer_iops: float

    @property
    def is_kept(self) -> bool | None:
        """Whether every admitted tenant had its objective; None where no read of any was measured."""
        if self.readers_p95_us is None:
            return None
        return self.worst_p95_us is not None and self.worst_p95_us <= self.p95_us


def p95_by_mix(
    sim: DriveSim, offered: Sequence[float], write_percents: Sequence[int], deadline: Deadline
) -> dict[int, list[float]]:
    """The 95th percentile of reads in us at each of ``offered`` tokens a second, for each percentage of writes.

    Each load has a fragmented drive of its own, without a scheduler. Raises as DriveSim.run.
    """
    return {
        percent: _swept(sim, [_mix(tokens, percent / 100) for tokens in offered], deadline)
        for percent in write_percents
    }


def slo_curve(offered: Sequence[float], p95_us: Mapping[int, Sequence[float]]) -> tuple[CurvePoint, ...]:
    """The curve at ``BOUNDS_US``, from the result of ``p95_by_mix`` for reads alone and for mixes."""
    found = []
    for bound in BOUNDS_US:
        tokens = {percent: tokens_within(offered, measured, bound) for percent, measured in p95_us.items()}
        found.append(CurvePoint(bound, min(tokens.values()), tokens[0], tokens))
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
            sim.run([_tenants(sim, scheduler, point.p95_us, count + 1, warm_up_s=0.0, seconds=0.001)], deadline)
        except BadInput as refused:
            return count, str(refused)
    raise BadInput(
        f"{expected + 3} readers were let in at p95 {point.p95_us:g} us, with {point.tokens_per_s:.0f} tokens/s"
    )


def _judged(result: TenantsResult | None) -> tuple[float | None, float | None, float]:
    """The 95th percentile of all reads and that of the worst reader, in us, and the IOPS of the writer."""
    if result is None:
        return None, None, 0.0
    writer, *readers = result.tenants
    together = quantile_ns(merged(reader.latency_buckets for reader in readers), 0.95)
    found = [quantile_ns(reader.latency_buckets or (), 0.95) for reader in readers]
    known = [one for one in found if one is not None]
    return (
        None if together is None else together / 1e3,
        max(known) / 1e3 if len(known) == len(found) else None,
        writer.total.iops or 0.0,
    )


def _tenants(
    sim: DriveSim,
    scheduler: dict[str, Any],
    p95_us: float,
    count: int,
    *,
    warm_up_s: float = _WARM_UP_S,
    seconds: float = _SECONDS,
) -> Tenants:
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
        warm_up_s=warm_up_s,
        seconds=seconds,
        histograms=True,
    )


def _mix(tokens_per_s: float, write_share: float) -> Tenants:
    """Open loops of reads and of writes, which cost so many tokens a second together."""
    requests = tokens_per_s / _tokens_per_request(write_share, WRITE_COST)
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
        warm_up_s=_WARM_UP_S,
        seconds=_SECONDS,
        histograms=True,
    )


def _tokens_per_request(write_share: float, write_cost: float) -> float:
    return 1 - write_share + write_share * write_cost


def _swept(sim: DriveSim, acts: Sequence[Tenants], deadline: Deadline) -> list[float]:
    """The 95th percentile of the reads of each, in us."""
    results = _results(sim, acts, deadline)
    found = [quantile_ns(result.of("reads").latency_buckets or (), 0.95) for result in results]
    return [float("inf") if one is None else one / 1e3 for one in found]


def _results(sim: DriveSim, acts: Sequence[Tenants], deadline: Deadline) -> list[TenantsResult]:
    """The result of each, on a fragmented drive that no other has changed."""
    found = on_prepared(sim, State.FRAGMENTED, acts, deadline) if acts else ()
    return [result for result in found if isinstance(result, TenantsResult)]
