"""The plots of a drive's characterization that a test's measurements allow."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from matplotlib.figure import Figure

from rackloop.measurement import Distribution
from rackloop.record import RoundsMeasured
from rackloop.units import parse_size
from rackloop_reports.plots._limits import LimitLine, limits_of
from rackloop_reports.plots._style import Source
from rackloop_reports.plots.characterize import (
    Cell,
    DemandPoint,
    bandwidth_bars,
    demand_curve,
    iops_matrix,
    latency_matrix,
    measurement_window,
    steady_state_convergence,
)
from rackloop_reports.plots.saturation import write_saturation
from rackloop_reports.record import TestRecord, samples_of

IOPS, LATENCY, LONGEST, BANDWIDTH = "steady.iops", "steady.latency", "steady.longest", "steady.bandwidth"
DEMAND_IOPS, DEMAND_LATENCY = "demand.iops", "demand.latency"
# The same of the last rounds of a drive that never was steady.
UNSTEADY_IOPS, UNSTEADY_LATENCY, UNSTEADY_LONGEST = "unsteady.iops", "unsteady.latency", "unsteady.longest"
UNSTEADY_BANDWIDTH = "unsteady.bandwidth"
_SATURATION, _SATURATION_LONGEST = "saturation.iops", "saturation.longest"
_SATURATED = (_SATURATION, "saturation.fresh", "saturation.last", "saturation.steady")
_NO_LABELS: Mapping[str, str] = {}

Drawing = tuple[str, Callable[[], Figure]]


def characterize_drawings(test: TestRecord, source: Source) -> Iterator[Drawing]:
    """The plots of ``test``, by name, most telling first."""
    by_depth = any("outstanding" in measured.labels for measured in test.measured(UNSTEADY_IOPS, ("block", "mix")))
    iops, is_steady = _figures(test, IOPS, UNSTEADY_IOPS)
    if iops and not by_depth:
        matrix = _cells(test, iops, _mean, "mean")
        yield "IOPS by block size and mix", lambda: iops_matrix(matrix, source, is_steady=is_steady)
    latency, is_calm = _figures(test, LATENCY, UNSTEADY_LATENCY)
    if latency and not by_depth:
        stalls = LONGEST if is_calm else UNSTEADY_LONGEST
        panels = [
            ("Average", _cells(test, latency, _mean, "mean", ("mean", "p50"))),
            ("99 %", _cells(test, latency, _p99, "p99", ("p99", "p99.9", "p95", "max"))),
            ("Longest", _cells(test, stalls, lambda samples: samples.maximum, "max")),
        ]
        drawn = [panel for panel in panels if panel[1]]
        yield "Latency by block size and mix", lambda: latency_matrix(drawn, source, is_steady=is_calm)
    bandwidth, is_even = _figures(test, BANDWIDTH, UNSTEADY_BANDWIDTH)
    if bandwidth:
        cells = [cell for name in (BANDWIDTH, UNSTEADY_BANDWIDTH) for cell in _cells(test, name, _mean, "mean")]
        is_even = is_even and not list(_taken(test, UNSTEADY_BANDWIDTH))
        yield "Sequential throughput", lambda: bandwidth_bars(cells, source, is_steady=is_even)
    if points := _demand(test):
        labels = next(labels for name in (DEMAND_IOPS, UNSTEADY_IOPS) for labels, _ in _taken(test, name))
        workload = f"{labels['block']}, reads/writes {labels['mix']}"
        yield "Demand curve", lambda: demand_curve(points, workload, source, is_steady=not by_depth)
    if saturation := _rounds(test, _SATURATION):
        longest = next(iter(_rounds(test, _SATURATION_LONGEST)), None)
        yield (
            "Write saturation",
            lambda: write_saturation(
                saturation[0], longest, source, _limits(test, _SATURATED), _limits(test, [_SATURATION_LONGEST])
            ),
        )
    series = [rounds for rounds in test.rounds if rounds.name.startswith("rounds.") and rounds.values]
    tracked = [rounds for rounds in series if rounds.criteria is not None]
    if tracked:
        mixes = {rounds.labels["mix"] for rounds in tracked}
        alike = [rounds for rounds in series if rounds.labels["mix"] in mixes]
        limits = [_limits(test, _of_rounds(rounds), rounds.labels) for rounds in tracked]
        decided = [limit for found in limits for limit in found]
        yield "Steady state measurement window", lambda: measurement_window(tracked, source, limits)
        yield "Steady state convergence", lambda: steady_state_convergence(alike, source, decided)


def _figures(test: TestRecord, steady: str, unsteady: str) -> tuple[str, bool]:
    """The name of the figures that a test has, and whether they are of a steady drive; empty where it has neither."""
    for name, is_steady in ((steady, True), (unsteady, False)):
        if any(True for _ in _taken(test, name)):
            return name, is_steady
    return "", True


def _rounds(test: TestRecord, name: str) -> list[RoundsMeasured]:
    return [rounds for rounds in test.rounds if rounds.name == name and rounds.values]


def _taken(test: TestRecord, name: str) -> Iterator[tuple[Mapping[str, str], Distribution]]:
    return ((measured.labels, samples_of(measured)) for measured in test.measured(name, ("block", "mix")))


def _of_rounds(rounds: RoundsMeasured) -> list[str]:
    """The measures of what was measured in rounds, such as ``steady.iops`` of ``rounds.iops``."""
    quantity = rounds.name.partition(".")[2]
    return [f"{state}.{quantity}" for state in ("steady", "unsteady", "demand")]


def _limits(test: TestRecord, names: Iterable[str], labels: Mapping[str, str] = _NO_LABELS) -> list[LimitLine]:
    """The limits of the measures of these names whose labels are not others than ``labels``."""
    return [
        limit
        for name in names
        for measured in test.measured(name)
        if all(labels.get(key, value) == value for key, value in measured.labels.items())
        for limit in limits_of(test, measured, name if name in _SATURATED else "")
    ]


def _cells(
    test: TestRecord,
    name: str,
    statistic: Callable[[Distribution], float],
    named: str,
    limited: Collection[str] = (),
) -> list[Cell]:
    """The figures of a matrix, the statistic ``named`` so, with its limits; with those of ``limited`` ones alone."""
    return [
        Cell(
            parse_size(measured.labels["block"]),
            int(measured.labels["mix"].partition("/")[0]),
            statistic(samples_of(measured)),
            [limit for limit in limits_of(test, measured) if not limited or limit.statistic in limited],
            named,
        )
        for measured in test.measured(name, ("block", "mix"))
    ]


def _demand(test: TestRecord) -> list[DemandPoint]:
    names = (DEMAND_LATENCY, DEMAND_IOPS) if any(_taken(test, DEMAND_IOPS)) else (UNSTEADY_LATENCY, UNSTEADY_IOPS)
    latency = {labels.get("outstanding"): samples for labels, samples in _taken(test, names[0])}
    return [
        DemandPoint(
            int(depth),
            samples.mean,
            latency[depth].mean,
            latency[depth].quantile(0.99),
            _limits(test, names[:1], labels),
            _limits(test, names[1:], labels),
        )
        for labels, samples in _taken(test, names[1])
        if (depth := labels.get("outstanding")) is not None and depth in latency
    ]


def _mean(samples: Distribution) -> float:
    return samples.mean


def _p99(samples: Distribution) -> float:
    return samples.quantile(0.99)
