"""A measurement: named samples with a unit, judged against the limits of a plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from rackloop.distribution import Distribution, Interval
from rackloop.limits import Limit
from rackloop.units import format_quantity
from rackloop.verdict import Verdict

Statistic = float | Literal["max", "min", "mean"]


@dataclass(frozen=True)
class Measurement:
    """Samples of one quantity in SI units. ``name`` is dotted (``remap.latency``); what varies is in ``labels``."""

    name: str
    unit: str
    samples: Distribution
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Finding:
    """What is said of a measurement: one statistic with its 95 % interval, and what the limit makes of it.

    ``verdict`` and ``limit`` are None where the plan sets no limit. ``p50`` and ``p99`` are None where the number
    of samples does not carry them. ``reason`` says in words why a verdict is not a pass.
    """

    measurement: Measurement
    statistic: Statistic
    value: float
    ci95: Interval
    p50: float | None
    p99: float | None
    limit: Limit | None
    verdict: Verdict | None
    reason: str | None


def judge(measurement: Measurement, limits: Iterable[Limit], facts: Mapping[str, str]) -> list[Finding]:
    """One finding for every limit that applies to ``measurement``, or a single one without a verdict.

    ``facts`` are what a limit's ``on`` is held against, such as ``{"lab_kind": "mock"}``. Judged from the interval:
    pass when all of it is inside the limit, fail when all of it is outside, unknown otherwise.
    """
    applying = [limit for limit in limits if _applies(limit, measurement, facts)]
    return [_find(measurement, limit) for limit in applying] or [_find(measurement, None)]


def _applies(limit: Limit, measurement: Measurement, facts: Mapping[str, str]) -> bool:
    return (
        limit.measure == measurement.name
        and all(measurement.labels.get(key) == value for key, value in limit.where.items())
        and all(facts.get(key) == value for key, value in limit.on.items())
    )


def _find(measurement: Measurement, limit: Limit | None) -> Finding:
    samples = measurement.samples
    statistic: Statistic = limit.quantile if limit and limit.quantile is not None else _natural_statistic(samples)
    value, ci95 = _estimate(samples, statistic)
    verdict, reason = _verdict(limit, statistic, measurement, value, ci95) if limit else (None, None)
    return Finding(
        measurement=measurement,
        statistic=statistic,
        value=value,
        ci95=ci95,
        p50=_claimed(samples, 0.5),
        p99=_claimed(samples, 0.99),
        limit=limit,
        verdict=verdict,
        reason=reason,
    )


def _natural_statistic(samples: Distribution) -> Statistic:
    return "max" if samples.n == 1 else 0.5


def _estimate(samples: Distribution, statistic: Statistic) -> tuple[float, Interval]:
    match statistic:
        # The extremes are facts about this run, not estimates of a law: they are judged as seen.
        case "max":
            return samples.maximum, (samples.maximum, samples.maximum)
        case "min":
            return samples.minimum, (samples.minimum, samples.minimum)
        case "mean":
            return samples.mean, samples.mean_ci95()
        case _:
            return samples.quantile(statistic), samples.quantile_ci95(statistic)


def _claimed(samples: Distribution, q: float) -> float | None:
    low, high = samples.quantile_ci95(q)
    return samples.quantile(q) if low is not None and high is not None else None


def _verdict(
    limit: Limit, statistic: Statistic, measurement: Measurement, value: float, ci95: Interval
) -> tuple[Verdict, str | None]:
    low, high = ci95
    too_high = limit.maximum is not None and low is not None and low > limit.maximum
    too_low = limit.minimum is not None and high is not None and high < limit.minimum
    if too_high or too_low:
        shown = format_quantity(value, measurement.unit)
        return Verdict.FAIL, f"{_name(statistic)} is {shown}, outside the limit {limit.text}"
    surely_low_enough = limit.maximum is None or (high is not None and high <= limit.maximum)
    surely_high_enough = limit.minimum is None or (low is not None and low >= limit.minimum)
    if surely_low_enough and surely_high_enough:
        return Verdict.PASS, None
    if None in ci95:
        return Verdict.UNKNOWN, f"{measurement.samples.n} samples do not carry {_name(statistic)}: take more"
    return (
        Verdict.UNKNOWN,
        f"the 95 % interval of {_name(statistic)} straddles the limit {limit.text}: take more samples",
    )


def _name(statistic: Statistic) -> str:
    return f"p{statistic * 100:g}" if isinstance(statistic, float) else f"the {statistic}"
