"""The plots of a drive's characterization that a test's measurements allow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from matplotlib.figure import Figure

from rackloop.measurement import Distribution
from rackloop.record import RoundsMeasured
from rackloop.units import parse_size
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
    write_saturation,
)
from rackloop_reports.record import TestRecord, samples_of

IOPS, LATENCY, LONGEST, BANDWIDTH = "steady.iops", "steady.latency", "steady.longest", "steady.bandwidth"
DEMAND_IOPS, DEMAND_LATENCY = "demand.iops", "demand.latency"
# The same of the last rounds of a drive that never was steady.
UNSTEADY_IOPS, UNSTEADY_LATENCY, UNSTEADY_LONGEST = "unsteady.iops", "unsteady.latency", "unsteady.longest"
UNSTEADY_BANDWIDTH = "unsteady.bandwidth"
_SATURATION, _SATURATION_LONGEST = "saturation.iops", "saturation.longest"

Drawing = tuple[str, Callable[[], Figure]]


def characterize_drawings(test: TestRecord, source: Source) -> Iterator[Drawing]:
    """The plots of ``test``, by name, most telling first."""
    by_depth = any("outstanding" in measured.labels for measured in test.measured(UNSTEADY_IOPS, ("block", "mix")))
    iops, is_steady = _figures(test, IOPS, UNSTEADY_IOPS)
    if iops and not by_depth:
        yield "IOPS by block size and mix", lambda: iops_matrix(_cells(test, iops, _mean), source, is_steady=is_steady)
    latency, is_calm = _figures(test, LATENCY, UNSTEADY_LATENCY)
    if latency and not by_depth:
        stalls = LONGEST if is_calm else UNSTEADY_LONGEST
        panels = [
            ("Average", _cells(test, latency, _mean)),
            ("99 %", _cells(test, latency, lambda samples: samples.quantile(0.99))),
            ("Longest", _cells(test, stalls, lambda samples: samples.maximum)),
        ]
        drawn = [panel for panel in panels if panel[1]]
        yield "Latency by block size and mix", lambda: latency_matrix(drawn, source, is_steady=is_calm)
    bandwidth, is_even = _figures(test, BANDWIDTH, UNSTEADY_BANDWIDTH)
    if bandwidth:
        cells = [cell for name in (BANDWIDTH, UNSTEADY_BANDWIDTH) for cell in _cells(test, name, _mean)]
        is_even = is_even and not list(_taken(test, UNSTEADY_BANDWIDTH))
        yield "Sequential throughput", lambda: bandwidth_bars(cells, source, is_steady=is_even)
    if points := _demand(test):
        labels = next(labels for name in (DEMAND_IOPS, UNSTEADY_IOPS) for labels, _ in _taken(test, name))
        workload = f"{labels['block']}, reads/writes {labels['mix']}"
        yield "Demand curve", lambda: demand_curve(points, workload, source, is_steady=not by_depth)
    if saturation := _rounds(test, _SATURATION):
        longest = next(iter(_rounds(test, _SATURATION_LONGEST)), None)
        yield "Write saturation", lambda: write_saturation(saturation[0], longest, source)
    series = [rounds for rounds in test.rounds if rounds.name.startswith("rounds.") and rounds.values]
    tracked = [rounds for rounds in series if rounds.criteria is not None]
    if tracked:
        mixes = {rounds.labels["mix"] for rounds in tracked}
        alike = [rounds for rounds in series if rounds.labels["mix"] in mixes]
        yield "Steady state measurement window", lambda: measurement_window(tracked, source)
        yield "Steady state convergence", lambda: steady_state_convergence(alike, source)


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


def _cells(test: TestRecord, name: str, statistic: Callable[[Distribution], float]) -> list[Cell]:
    return [
        Cell(parse_size(labels["block"]), int(labels["mix"].partition("/")[0]), statistic(samples))
        for labels, samples in _taken(test, name)
    ]


def _demand(test: TestRecord) -> list[DemandPoint]:
    names = (DEMAND_LATENCY, DEMAND_IOPS) if any(_taken(test, DEMAND_IOPS)) else (UNSTEADY_LATENCY, UNSTEADY_IOPS)
    latency = {labels.get("outstanding"): samples for labels, samples in _taken(test, names[0])}
    return [
        DemandPoint(int(depth), samples.mean, latency[depth].mean, latency[depth].quantile(0.99))
        for labels, samples in _taken(test, names[1])
        if (depth := labels.get("outstanding")) is not None and depth in latency
    ]


def _mean(samples: Distribution) -> float:
    return samples.mean
