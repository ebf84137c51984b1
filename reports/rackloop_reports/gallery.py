"""Which plots a test or a run has, from what was measured in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from rackloop.distribution import Distribution
from rackloop.events import Measured
from rackloop.units import parse_size
from rackloop_reports.record import RunRecord, TestRecord

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rackloop_reports.plots import StackLatency, ThroughputPoint

# The measures that have a plot of their own; docs/reference/events.md says which labels they carry.
LATENCY = "remap.latency"
THROUGHPUTS = {"throughput.steady": False, "throughput.switched": True}
# Beyond this many remaps a timeline is smaller and quicker to look at as pixels.
_VECTOR_REMAPS = 200


@dataclass(frozen=True)
class Plot:
    """A drawn plot, ready to be attached."""

    name: str
    kind: Literal["svg", "png"]
    data: bytes

    @property
    def media_type(self) -> str:
        """The media type of ``data``."""
        return {"svg": "image/svg+xml", "png": "image/png"}[self.kind]


def plots_of(tests: Sequence[TestRecord], run: RunRecord) -> Iterator[Plot]:
    """The plots that the measurements and remaps of ``tests`` allow, most telling first."""
    if not any(test.remaps or test.series or _has_plot(test) for test in tests):
        return
    from rackloop_reports import plots

    source = plots.Source.of(run)
    latencies, throughputs = _latencies(tests), _throughputs(tests)
    remaps = [remap for test in tests for remap in test.remaps]
    series = [entry for test in tests for entry in test.series]
    acts = [act for test in tests for act in test.acts]
    mark = " (simulated)" if run.is_simulated else ""

    def drawn(name: str, draw: Callable[[], Figure], kind: Literal["svg", "png"] = "svg") -> Plot:
        return Plot(name + mark, kind, plots.encode(draw(), kind))

    if latencies:
        yield drawn("Remap latency by driver stack", lambda: plots.figure_2(latencies, source))
        yield drawn("Remap latency, whole distribution", lambda: plots.latency_ecdf(latencies, source))
    if throughputs:
        yield drawn("Throughput by block size", lambda: plots.figure_3(throughputs, source))
    if remaps:
        yield drawn("Stages of a remap", lambda: plots.stage_breakdown(remaps, source))
    if remaps or series:
        kind: Literal["svg", "png"] = "png" if len(remaps) > _VECTOR_REMAPS else "svg"
        yield drawn(
            "Timeline of remaps and I/O",
            lambda: plots.remap_timeline(remaps, acts, series, run.started_ns, source),
            kind,
        )


def _has_plot(test: TestRecord) -> bool:
    return any(measured.name in {LATENCY, *THROUGHPUTS} for measured in test.measurements)


def _distinct(tests: Iterable[TestRecord], name: str) -> Iterator[Measured]:
    """Each measurement called ``name`` once, though it stands in the stream once for every limit."""
    seen = set()
    for test in tests:
        for measured in test.measurements:
            key = (test.id, tuple(sorted(measured.labels.items())))
            if measured.name == name and key not in seen:
                seen.add(key)
                yield measured


def _latencies(tests: Sequence[TestRecord]) -> list[StackLatency]:
    from rackloop_reports.plots import StackLatency, in_paper_order

    found = [
        (measured.labels["stack"], StackLatency(measured.labels["stack"], _samples(measured)))
        for measured in _distinct(tests, LATENCY)
        if "stack" in measured.labels
    ]
    order = in_paper_order({stack for stack, _ in found})
    return [entry for stack, entry in sorted(found, key=lambda pair: order.index(pair[0]))]


def _throughputs(tests: Sequence[TestRecord]) -> list[ThroughputPoint]:
    from rackloop_reports.plots import ThroughputPoint

    points = []
    for name, is_switching in THROUGHPUTS.items():
        for measured in _distinct(tests, name):
            if "block" in measured.labels:
                samples = _samples(measured)
                median, (low, high) = samples.quantile(0.5), samples.quantile_ci95(0.5)
                points.append(ThroughputPoint(parse_size(measured.labels["block"]), is_switching, median, low, high))
    return points


def _samples(measured: Measured) -> Distribution:
    return Distribution(tuple(measured.values), tuple(measured.counts))
