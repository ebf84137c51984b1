"""The claims of the papers, as questions to what was measured: each agrees or differs, with the figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from rackloop_models.drives import REQUESTS_BEYOND
from rackloop_models.tenancy._measure import Outcome
from rackloop_models.tenancy._shares import Figure

_GIMBAL, _NONE = "gimbal", "none"
_OTHERS = ("reflex", "parda", "flashfq")
# As good as another: virtual time has no noise, but short runs end in the middle of something.
_ALIKE = 0.98


@dataclass(frozen=True)
class Claim:
    """A published claim, ours beside it, and whether they agree; None where nothing was measured for it."""

    claim: str
    published: str
    ours: str
    agrees: bool | None


def claims(outcomes: Sequence[Outcome]) -> tuple[Claim, ...]:
    """All claims, held against the outcomes: order and shape are judged, factors are told with what they are of."""
    return tuple(_claims(outcomes))


def _claims(outcomes: Sequence[Outcome]) -> Iterator[Claim]:
    pairs = list(_pairs(outcomes))
    yield _order(
        "fairer in mixes than ReFlex, Parda and FlashFQ (Jain's index)",
        [(gimbal.jain, other.jain) for gimbal, other in pairs if len(gimbal.scenario.kinds) > 1],
    )
    yield _order(
        "fairer in mixes than no scheduler",
        [(gimbal.jain, none.jain) for gimbal, none in _beside(outcomes, _NONE) if len(gimbal.scenario.kinds) > 1],
    )
    yield _order(
        "utilisation no less than that of ReFlex, Parda and FlashFQ",
        [(gimbal.utilisation, other.utilisation) for gimbal, other in pairs],
    )
    yield _factor(
        "bandwidth, up to",
        "x6.6",
        [(gimbal.bytes_per_s / other.bytes_per_s, gimbal, other) for gimbal, other in pairs if other.bytes_per_s],
        lambda value: f"x{value:.1f}",
    )
    tails = [
        (1 - ours / theirs, gimbal, other)
        for gimbal, other in pairs
        if (ours := gimbal.worst_ns("p99_9")) is not None and (theirs := other.worst_ns("p99_9"))
    ]
    tail = _factor("tail latency (p99.9), up to", "62.6 % less", tails, lambda value: f"{value:.1%} less")
    if left_out := _left_out(outcomes):
        beyond = f"with fewer than {REQUESTS_BEYOND} requests of a tenant beyond it"
        tail = replace(tail, ours=f"{tail.ours}; left out, {beyond}: {left_out}")
    yield tail
    unasked = "not measured: it is of a key-value store over several drives"
    yield Claim("RocksDB throughput", "x1.7", unasked, None)
    yield Claim("RocksDB tail latency", "35.0 % less", unasked, None)


def _left_out(outcomes: Sequence[Outcome]) -> str:
    """The schedulers that have no p99.9, with where that is."""
    asked: dict[str, list[str]] = {}
    found: dict[str, list[str]] = {}
    for one in outcomes:
        if one.scheduler in {_GIMBAL, *_OTHERS}:
            asked.setdefault(_place(one), []).append(one.scheduler)
            if one.worst_ns("p99_9") is None:
                found.setdefault(_place(one), []).append(one.scheduler)
    return ", ".join(
        f"{'all' if schedulers == asked[place] else ', '.join(schedulers)} ({place})"
        for place, schedulers in found.items()
    )


def _pairs(outcomes: Sequence[Outcome]) -> Iterable[tuple[Outcome, Outcome]]:
    return [pair for other in _OTHERS for pair in _beside(outcomes, other)]


def _beside(outcomes: Sequence[Outcome], other: str) -> list[tuple[Outcome, Outcome]]:
    """Gimbal and another in the same scenario with as many tenants."""
    by_key = {(one.scenario, one.count, one.scheduler): one for one in outcomes}
    return [
        (one, by_key[key])
        for one in outcomes
        if one.scheduler == _GIMBAL and (key := (one.scenario, one.count, other)) in by_key
    ]


def _order(claim: str, pairs: Sequence[tuple[Figure, Figure]]) -> Claim:
    if not pairs:
        return Claim(claim, "yes", "not measured", None)
    better = sum(ours.value >= _ALIKE * theirs.value for ours, theirs in pairs)
    told = f"in {better} of {len(pairs)} comparisons"
    if all(None not in (*ours.ci95, *theirs.ci95) for ours, theirs in pairs):
        above = sum(ours.is_above(theirs) for ours, theirs in pairs)
        below = sum(theirs.is_above(ours) for ours, theirs in pairs)
        told += f"; intervals apart: {above} above, {below} below"
    return Claim(claim, "yes", told, better == len(pairs))


def _factor(
    claim: str,
    published: str,
    found: Sequence[tuple[float, Outcome, Outcome]],
    said: Callable[[float], str],
) -> Claim:
    """The largest factor, with what it is of. No verdict: what the published one is of is not known here."""
    if not found:
        return Claim(claim, published, "not measured", None)
    value, gimbal, other = max(found, key=lambda one: one[0])
    return Claim(claim, published, f"{said(value)}, of {other.scheduler} ({_place(gimbal)})", None)


def _place(one: Outcome) -> str:
    return f"{one.scenario.name}, {one.scenario.condition}, {one.count} tenants"
