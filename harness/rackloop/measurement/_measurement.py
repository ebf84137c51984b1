"""Measurements, which are named samples with a unit, and the limits of a plan that they are judged against.

What the measuring machine may have added to a sample is no product's doing. So each sample is an interval, and the
interval of a statistic begins where that of its lower ends does and ends where that of its upper ones does: only what
lies outside a limit with all of it fails, and only what lies inside with all of it passes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from rackloop.measurement._distribution import Distribution, Interval
from rackloop.measurement._machine_load import MachineLoad
from rackloop.measurement._verdict import Cause, Verdict
from rackloop.units import format_quantity

_RATES = frozenset({"B/s", "1/s", "IOPS"})
# Of a rate that was taken in no time at all nothing is known, not even that it is finite.
_MOST_STARVED = 0.99
# No run takes more samples of one thing: it is decided by something else.
_MOST_ADVISED = 1_000_000

Statistic = float | Literal["max", "min", "mean"]


@dataclass(frozen=True)
class Limit:
    """One demand on one measure, in SI base units.

    It holds for measurements whose labels have every pair in ``where``, in runs whose facts (``lab``, ``lab_kind``)
    have every pair in ``on``; a ``profile`` there is held against the label of that name. ``quantile`` is the statistic
    the bounds are held against, 0.99 for p99; None leaves it to the measurement: its only sample, or the median.
    ``text`` is the demand as the plan has it, such as ``max 2 ms``, ``profile_file`` the file where ``on`` names one.
    """

    measure: str
    where: Mapping[str, str] = field(default_factory=dict)
    quantile: Statistic | None = None
    minimum: float | None = None
    maximum: float | None = None
    unit: str = "1"
    text: str = ""
    on: Mapping[str, str] = field(default_factory=dict)
    profile_file: str = ""

    def __str__(self) -> str:
        labels = ", ".join(f"{key}={value}" for key, value in self.where.items())
        measure = f"{self.measure}{{{labels}}}" if labels else self.measure
        statistic = f"p{self.quantile * 100:g}" if isinstance(self.quantile, float) else self.quantile
        return " ".join(filter(None, (measure, statistic, self.text)))

    def __hash__(self) -> int:
        return hash((self.measure, self.quantile, self.text, *sorted(self.where.items()), *sorted(self.on.items())))

    def is_for(self, name: str, labels: Mapping[str, str], facts: Mapping[str, str]) -> bool:
        """Whether a measurement of this name with these labels is held against it, in a run with these facts."""
        return (
            self.measure == name
            and all(labels.get(key) == value for key, value in self.where.items())
            and self.holds_in(facts, labels)
        )

    def holds_in(self, facts: Mapping[str, str], labels: Mapping[str, str]) -> bool:
        """Whether it is for a run with these facts, and for what was measured with these labels."""
        known = {**facts, "profile": labels.get("profile")}
        return all(known.get(key) == value for key, value in self.on.items())


@dataclass(frozen=True)
class Reading:
    """One sample, or ``count`` alike: the most that it may be, ``value``, and the least, ``corrected``.

    ``cluster`` is the independent unit of sampling that it belongs to, None where it is one itself.
    """

    value: float
    corrected: float
    cluster: Hashable = None
    count: int = 1


@dataclass(frozen=True)
class Measurement:
    """Samples of one quantity in SI units. ``name`` is dotted (``remap.latency``); what varies is in ``labels``.

    ``corrected`` are the samples without what the measuring machine may have added, ``raised`` with what it may have
    taken, None where it did neither. ``readings`` tell which samples it was late with; ``starved`` is the share of the
    time that it kept others waiting for a core, where that is what corrects them. ``over_s`` are the seconds that each
    sample, a rate, is the mean of; where it is None that may have been the worst half second.
    """

    name: str
    unit: str
    samples: Distribution
    labels: Mapping[str, str] = field(default_factory=dict)
    corrected: Distribution | None = None
    raised: Distribution | None = None
    readings: Sequence[Reading] = ()
    starved: float | None = None
    over_s: float | None = None

    @classmethod
    def of(
        cls,
        name: str,
        unit: str,
        samples: Distribution | Iterable[float],
        labels: Mapping[str, str],
        *,
        errors: float | Iterable[float] | None = None,
        shortfalls: float | Iterable[float] | None = None,
        clusters: Iterable[Hashable] | None = None,
        over_s: float | None = None,
    ) -> Measurement:
        """The measurement of these samples, the true value of each in [value - error, value + shortfall].

        ``errors`` and ``shortfalls`` are in ``unit`` and not negative, one for each sample, for each distinct value of
        a distribution, or one for all; None and 0 say that the machine added or took nothing. ``clusters`` is a key for
        each sample: those with one key were taken together. Raises ``ValueError`` where their numbers differ, an error
        is negative, ``over_s`` is not above 0, or a number is not finite.
        """
        values = tuple(samples) if not isinstance(samples, Distribution) else samples.values
        counts = (1,) * len(values) if not isinstance(samples, Distribution) else samples.counts
        keys: Sequence[Hashable] = [None] * len(values) if clusters is None else list(clusters)
        late, short = (
            [float(of or 0.0)] * len(values) if isinstance(of, int | float | None) else list(of)
            for of in (errors, shortfalls)
        )
        if not len(values) == len(late) == len(short) == len(keys):
            found = f"{len(values)} samples, {len(late)} errors and {len(keys)} clusters"
            raise ValueError(f"{name}: {found}: give as many")
        if wrong := [error for error in (*late, *short) if not error >= 0]:
            raise ValueError(f"{name}: the error of a sample is 0 or more; found {wrong[0]}")
        if over_s is not None and not over_s > 0:
            raise ValueError(f"{name}: over_s is {over_s:g}, and has to be above 0")
        readings = [
            # A time is not made negative by subtracting too much. What a ratio is short of 1 may well be so.
            Reading(value + less, value - (min(error, max(value, 0.0)) if unit == "s" else error), key, count)
            for value, error, less, key, count in zip(values, late, short, keys, counts, strict=True)
        ]
        taken = samples if isinstance(samples, Distribution) else Distribution.of(values)
        if clusters is not None:
            taken = replace(taken, clusters=_independent(keys, counts))
        return _corrected(cls(name, unit, taken, labels, over_s=over_s), readings if any((*late, *short)) else ())

    def slowed_by(self, share: float) -> Measurement:
        """The same, a rate, where the machine may have been kept from working for this share of the time (below 1)."""
        pairs = zip(self.samples.values, self.samples.counts, strict=True)
        readings = [Reading(value, value / (1 - share), None, count) for value, count in pairs]
        return replace(_corrected(self, readings), starved=share)

    def doubted(self, load: MachineLoad) -> Measurement:
        """The same with what a machine under this ``load`` may have done to it: added to times, taken from rates.

        Counts, sizes and ratios are what they are on any machine.
        """
        if self.unit == "s":
            errors = [load.late_with(value) for value in self.samples.values]
            return Measurement.of(self.name, self.unit, self.samples, self.labels, errors=errors)
        if self.unit not in _RATES:
            return self
        return self.slowed_by(min(load.starved_within(self.over_s), _MOST_STARVED))

    @property
    def error(self) -> float:
        """The most that the machine may have added to, or taken from, a sample."""
        return max((abs(one.value - one.corrected) for one in self.readings), default=0.0)


def _corrected(measurement: Measurement, readings: Sequence[Reading]) -> Measurement:
    if not readings:
        return measurement
    least, most = Counter[float](), Counter[float]()
    for one in readings:
        least[one.corrected] += one.count
        most[one.value] += one.count
    corrected, raised = (Distribution.from_bins(bins, measurement.samples.clusters) for bins in (least, most))
    return replace(measurement, corrected=corrected, raised=raised, readings=readings)


def _independent(keys: Sequence[Hashable], counts: Sequence[int]) -> int:
    """The number of draws that clusters are worth: less than there are where some weigh more.

    It is Kish's effective size (Survey Sampling, 1965) of clusters whose samples are all alike.
    """
    sizes: Counter[Hashable] = Counter()
    for key, count in zip(keys, counts, strict=True):
        sizes[key] += count
    return sizes.total() ** 2 // sum(size * size for size in sizes.values())


@dataclass(frozen=True)
class Finding:
    """The finding on a measurement: one statistic with its 95 % interval, and what the limit makes of it.

    ``ci95`` begins at the lower end of the corrected samples' interval and ends at the upper of the raised ones'; it is
    None for a maximum and a minimum, which are facts and no estimates. ``verdict`` and ``limit`` are None where the
    plan sets no limit. ``p50`` and ``p99`` are None where the number of samples does not carry them. ``reason`` says in
    words why a verdict is not a pass, ``cause`` whose fault that is.
    """

    measurement: Measurement
    statistic: Statistic
    value: float
    ci95: Interval | None
    p50: float | None
    p99: float | None
    limit: Limit | None
    verdict: Verdict | None
    reason: str | None
    cause: Cause | None = None


def judge(
    measurement: Measurement,
    limits: Iterable[Limit],
    facts: Mapping[str, str],
    load: Callable[[], MachineLoad] | None = None,
    statistics: Sequence[Statistic] = (),
) -> list[Finding]:
    """One finding for every limit that applies to ``measurement``, or a single one without a verdict.

    ``statistics`` are told besides, where no limit asks for them.

    ``facts`` are what a limit's ``on`` is held against, such as ``{"lab_kind": "mock"}``. Judged from the interval:
    pass when all of it is inside the limit, fail when all of it is outside, unknown otherwise. What cannot be decided
    for the machine's lateness is the harness's, what too few samples do not show the test's.

    ``load`` says how busy the machine was that took the measurement, where its samples do not say it themselves.
    """
    applying = [limit for limit in limits if limit.is_for(measurement.name, measurement.labels, facts)]
    if applying and load is not None:
        measurement = measurement.doubted(load())
    judged = [_find(measurement, limit) for limit in applying]
    asked = {finding.statistic for finding in judged}
    told = [_find(measurement, None, statistic) for statistic in statistics if statistic not in asked]
    return [*judged, *told] or [_find(measurement, None)]


def _find(measurement: Measurement, limit: Limit | None, statistic: Statistic | None = None) -> Finding:
    samples = measurement.samples
    if statistic is None:
        statistic = "max" if samples.n == 1 else 0.5
    if limit is not None and limit.quantile is not None:
        statistic = limit.quantile
    raw = _bounds(measurement.raised or samples, statistic)
    corrected = _bounds(measurement.corrected or samples, statistic)
    both = _from_to(raw, corrected)
    value = _value(samples, statistic)
    verdict, cause, reason = None, None, None
    if limit is not None:
        verdict, cause, reason = _Judgement(measurement, limit, statistic, value).of(raw, corrected, both)
    return Finding(
        measurement=measurement,
        statistic=statistic,
        value=value,
        ci95=None if statistic in {"max", "min"} else both,
        p50=_claimed(samples, 0.5),
        p99=_claimed(samples, 0.99),
        limit=limit,
        verdict=verdict,
        reason=reason,
        cause=cause,
    )


def _value(samples: Distribution, statistic: Statistic) -> float:
    match statistic:
        case "max":
            return samples.maximum
        case "min":
            return samples.minimum
        case "mean":
            return samples.mean
        case _:
            return samples.quantile(statistic)


def _bounds(samples: Distribution, statistic: Statistic) -> Interval:
    match statistic:
        # The extremes are facts about this run, not estimates of a law: they are judged as seen.
        case "max" | "min":
            return (_value(samples, statistic), _value(samples, statistic))
        case "mean":
            return samples.mean_ci95()
        case _:
            return samples.quantile_ci95(statistic)


def _from_to(one: Interval, other: Interval) -> Interval:
    """The interval that has both in it; it is open where one of them is."""
    lows = [low for low, _ in (one, other) if low is not None]
    highs = [high for _, high in (one, other) if high is not None]
    return (min(lows) if len(lows) == 2 else None, max(highs) if len(highs) == 2 else None)


def _claimed(samples: Distribution, q: float) -> float | None:
    low, high = samples.quantile_ci95(q)
    return samples.quantile(q) if low is not None and high is not None else None


@dataclass(frozen=True)
class _Judgement:
    """The judgement of one statistic of a measurement by a limit."""

    measurement: Measurement
    limit: Limit
    statistic: Statistic
    value: float

    def of(self, raw: Interval, corrected: Interval, both: Interval) -> tuple[Verdict, Cause | None, str | None]:
        """The verdict, whose fault it is if it is no pass, and why."""
        if self._is_outside(both):
            return Verdict.FAIL, Cause.PRODUCT, self._missed()
        if self._is_inside(both):
            return Verdict.PASS, None, None
        if any(self._is_outside(one) or self._is_inside(one) for one in (raw, corrected)):
            return Verdict.UNKNOWN, Cause.HARNESS, f"{self._missed()}, but {self._lateness()}"
        statistic = _name(self.statistic)
        if None in raw:
            return Verdict.UNKNOWN, Cause.TEST, f"{self._samples()} do not carry {statistic}: take more{self._fewest()}"
        more = f"take more samples{self._enough()}"
        why = f"the 95 % interval of {statistic} straddles the limit {self.limit.text}: {more}"
        return Verdict.UNKNOWN, Cause.TEST, why

    def _is_outside(self, ci95: Interval) -> bool:
        low, high = ci95
        return (self.limit.maximum is not None and low is not None and low > self.limit.maximum) or (
            self.limit.minimum is not None and high is not None and high < self.limit.minimum
        )

    def _is_inside(self, ci95: Interval) -> bool:
        low, high = ci95
        return (self.limit.maximum is None or (high is not None and high <= self.limit.maximum)) and (
            self.limit.minimum is None or (low is not None and low >= self.limit.minimum)
        )

    def _missed(self) -> str:
        shown = format_quantity(self.value, self.measurement.unit)
        where = "outside" if self._is_outside((self.value, self.value)) else "not surely inside"
        return f"{_name(self.statistic)} is {shown}, {where} the limit {self.limit.text}"

    def _samples(self) -> str:
        samples = self.measurement.samples
        return f"{samples.n} samples" + (f" of {samples.draws} changes" if samples.draws < samples.n else "")

    def _draws(self, number: int) -> str:
        samples = self.measurement.samples
        return f"{number:,} {'changes' if samples.draws < samples.n else 'samples'}"

    def _fewest(self) -> str:
        """The number of draws with which the statistic has an interval."""
        fewest = Distribution.fewest_draws(self.statistic) if isinstance(self.statistic, float) else 2
        return f", {self._draws(fewest)} at least"

    def _enough(self) -> str:
        """The number of draws that would decide if the share of them outside the limit stays what it is."""
        if not isinstance(self.statistic, float) or None not in {self.limit.maximum, self.limit.minimum}:
            return ""
        q, samples = self.statistic, self.measurement.samples
        values = zip(samples.values, samples.counts, strict=True)
        outside = sum(count for value, count in values if self._is_outside_at(value)) / samples.n
        apart = abs(outside - (q if self.limit.maximum is None else 1 - q))
        # The normal approximation of the binomial distribution of those outside.
        enough = q * (1 - q) * (1.96 / apart) ** 2 if apart > 1e-6 else 0.0
        if enough <= samples.draws or enough > _MOST_ADVISED:
            return ""
        return f", some {self._draws(int(float(f'{enough:.2g}')))} in all if the rest are like these"

    def _lateness(self) -> str:
        """Says how late the machine was, and with how many of the samples that is what makes the difference."""
        if self.measurement.starved is not None:
            share = f"for up to {self.measurement.starved:.1%} of the time"
            return f"the measuring machine was short of cores {share}: run it on a quieter machine"
        readings = self.measurement.readings
        late = [one for one in readings if self._is_outside_at(one.value) != self._is_outside_at(one.corrected)]
        up_to = max((abs(one.value - one.corrected) for one in late), default=self.measurement.error)
        did = "added" if self.measurement.raised in {None, self.measurement.samples} else "changed it by"
        by = f"the measuring machine may have {did} up to {format_quantity(up_to, self.measurement.unit)}"
        keys = {one.cluster for one in readings}
        if len(keys) > 1:
            in_how_many = f" in {len({one.cluster for one in late})} of {len(keys)} changes"
        else:
            in_how_many = f" in {sum(one.count for one in late)} of {self.measurement.samples.n} samples"
        return f"{by}{in_how_many if late else ''}: run it on a quieter machine"

    def _is_outside_at(self, value: float) -> bool:
        return self._is_outside((value, value))


def _name(statistic: Statistic) -> str:
    return f"p{statistic * 100:g}" if isinstance(statistic, float) else f"the {statistic}"
