"""What a test found out about erasure recovery, as plots; docs/reference/events.md says which labels they need."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from rackloop.distribution import Distribution
from rackloop.events import Measured
from rackloop_reports.record import TestRecord

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rackloop_reports.plots import CodecBar, RebuildBar, RecoveryCell, Source, StateLatency, TailCurve

TRIED, RIGHT, WRONG, UNKNOWN = "recovery.tried", "recovery.right", "recovery.wrong", "recovery.unknown"
READS = "degraded.read_latency"
REBUILD, TENANTS = "rebuild.time", "rebuild.tenant_latency"
TAIL = "tail.latency"
CODEC = "codec.throughput"
_LABELS = {
    TRIED: {"damage", "when"},
    READS: {"state"},
    REBUILD: {"way"},
    TAIL: {"sectors", "drive", "reading"},
    CODEC: {"code", "act"},
}

Drawing = tuple[str, Callable[[], "Figure"]]


def recovery_drawings(test: TestRecord, source: Source) -> Iterator[Drawing]:
    """The plots of ``test``, by name, most telling first."""
    from rackloop_reports import plots

    if cells := _cells(test):
        yield "Recovery correctness", lambda: plots.recovery_matrix(cells, source)
    if states := _states(test):
        yield "Reads during degradation", lambda: plots.degraded_reads(states, source)
    if bars := _rebuilds(test):
        yield "Rebuild", lambda: plots.rebuild_times(bars, source)
    if curves := _tails(test):
        yield "Tail latency", lambda: plots.tail_curves(curves, source)
    if throughputs := _throughputs(test):
        yield "Codec throughput", lambda: plots.codec_throughput(throughputs, source)


def has_recovery(test: TestRecord) -> bool:
    """Whether ``test`` has any of these plots."""
    return any(_is_drawn(measured) for measured in test.measurements)


def _is_drawn(measured: Measured) -> bool:
    return measured.name in _LABELS and measured.labels.keys() >= _LABELS[measured.name]


def _taken(test: TestRecord, name: str) -> Iterator[tuple[Mapping[str, str], Distribution]]:
    """Each measurement called ``name`` once, though the stream has it once for every limit."""
    seen: dict[tuple[tuple[str, str], ...], Measured] = {}
    for measured in test.measurements:
        if measured.name == name and measured.labels.keys() >= _LABELS.get(name, set()):
            seen.setdefault(tuple(sorted(measured.labels.items())), measured)
    for measured in seen.values():
        yield measured.labels, Distribution(tuple(measured.values), tuple(measured.counts))


def _same(labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(labels.items()))


def _cells(test: TestRecord) -> list[RecoveryCell]:
    from rackloop_reports.plots import RecoveryCell

    counts = {
        name: {_same(labels): round(samples.maximum) for labels, samples in _taken(test, name)}
        for name in (RIGHT, WRONG, UNKNOWN)
    }
    cells = []
    for labels, samples in _taken(test, TRIED):
        row = ", ".join(filter(None, (labels.get("system"), labels["damage"])))
        column = ", ".join(filter(None, (labels["when"], labels.get("place"))))
        right, wrong, unknown = (counts[name].get(_same(labels), 0) for name in (RIGHT, WRONG, UNKNOWN))
        cells.append(RecoveryCell(row, column, round(samples.maximum), right, wrong, unknown))
    return cells


def _states(test: TestRecord) -> list[StateLatency]:
    from rackloop_reports.plots import StateLatency

    return [
        StateLatency(", ".join(filter(None, (labels.get("system"), labels["state"]))), samples)
        for labels, samples in _taken(test, READS)
    ]


def _rebuilds(test: TestRecord) -> list[RebuildBar]:
    from rackloop_reports.plots import RebuildBar

    waited = {_same(labels): samples.quantile(0.99) for labels, samples in _taken(test, TENANTS)}
    bars = []
    for labels, samples in _taken(test, REBUILD):
        others = ", ".join(value for key, value in sorted(labels.items()) if key != "way")
        name = ", ".join(filter(None, (labels["way"], others)))
        bars.append(RebuildBar(name, samples.quantile(0.5), waited.get(_same(labels))))
    return bars


def _tails(test: TestRecord) -> list[TailCurve]:
    from rackloop_reports.plots import TailCurve

    curves: dict[tuple[str, str], list[tuple[int, float | None, float, float | None]]] = {}
    for labels, samples in _taken(test, TAIL):
        low, high = samples.quantile_ci95(0.99)
        point = (int(labels["sectors"]), low, samples.quantile(0.99), high)
        curves.setdefault((labels["drive"], labels["reading"]), []).append(point)
    return [TailCurve(drive, reading, points) for (drive, reading), points in curves.items()]


def _throughputs(test: TestRecord) -> list[CodecBar]:
    from rackloop_reports.plots import CodecBar

    return [CodecBar(labels["code"], labels["act"], samples.quantile(0.5)) for labels, samples in _taken(test, CODEC)]
