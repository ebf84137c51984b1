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
_SATURATION, _SATURATION_LONGEST = "saturation.iops", "saturation.longest"

Drawing = tuple[str, Callable[[], Figure]]


def characterize_drawings(test: TestRecord, source: Source) -> Iterator[Drawing]:
    """The plots of ``test``, by name, most telling first."""
    found = {name: list(_taken(test, name)) for name in (IOPS, LATENCY, BANDWIDTH, DEMAND_IOPS)}
    if found[IOPS]:
        yield "IOPS by block size and mix", lambda: iops_matrix(_cells(test, IOPS, _mean), source)
    if found[LATENCY]:
        panels = [
            ("Average", _cells(test, LATENCY, _mean)),
            ("99 %", _cells(test, LATENCY, lambda samples: samples.quantile(0.99))),
            ("Longest", _cells(test, LONGEST, lambda samples: samples.maximum)),
        ]
        yield "Latency by block size and mix", lambda: latency_matrix([p for p in panels if p[1]], source)
    if found[BANDWIDTH]:
        yield "Sequential throughput", lambda: bandwidth_bars(_cells(test, BANDWIDTH, _mean), source)
    if points := _demand(test):
        labels = found[DEMAND_IOPS][0][0]
        workload = f"{labels['block']}, reads/writes {labels['mix']}"
        yield "Demand curve", lambda: demand_curve(points, workload, source)
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
    latency = {labels.get("outstanding"): samples for labels, samples in _taken(test, DEMAND_LATENCY)}
    return [
        DemandPoint(int(depth), samples.mean, latency[depth].mean, latency[depth].quantile(0.99))
        for labels, samples in _taken(test, DEMAND_IOPS)
        if (depth := labels.get("outstanding")) is not None and depth in latency
    ]


def _mean(samples: Distribution) -> float:
    return samples.mean
