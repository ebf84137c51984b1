"""The plots of erasure recovery that a test's measurements allow; docs/reference/events.md lists their labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping

from matplotlib.figure import Figure

from rackloop.measurement import Distribution
from rackloop_reports.plots._limits import LimitLine, limits_of
from rackloop_reports.plots._style import Source
from rackloop_reports.plots.erasure import (
    GroupedBar,
    RebuildBar,
    RecoveryCell,
    StateLatency,
    TailCurve,
    codec_throughput,
    degraded_reads,
    rebuild_times,
    recovery_matrix,
    tail_curves,
    update_latency,
)
from rackloop_reports.record import TestRecord, interval_of, samples_of

TRIED, RIGHT, DEGRADED = "recovery.tried", "recovery.right", "recovery.degraded_right"
LOUD, WRONG, UNKNOWN = "recovery.loud", "recovery.wrong", "recovery.unknown"
# Where more is lost than can be recovered, what is withheld aloud is as it must be.
_ERASED, _BEYOND, _CORRUPTED = "erased", "beyond m", "corrupted"
READS = "degraded.read_latency"
REBUILD, TENANTS = "rebuild.time", "rebuild.tenant_latency"
TAIL = "tail.latency"
CODEC = "codec.throughput"
UPDATE = "update.latency"
# Of a loss of more than m units somewhere, fewer may be those of a stripe.
_DAMAGES = {_BEYOND: "erased, loss beyond m", _CORRUPTED: "silently corrupted"}
_WHEN = {"before": "before repair", "during": "during repair", "after": "after repair"}
# What tenants were doing does not tell one rebuild from another.
_ASIDE = frozenset({"when", "request"})
_LABELS: Mapping[str, set[str]] = {
    TRIED: {"damage", "erased", "units", "phase"},
    READS: {"when"},
    REBUILD: set(),
    TENANTS: {"when", "request"},
    TAIL: {"ph", "retry_ms", "read", "sectors"},
    CODEC: {"code", "act"},
    UPDATE: {"code", "updated", "method"},
}

Drawing = tuple[str, Callable[[], Figure]]


def erasure_drawings(test: TestRecord, source: Source) -> Iterator[Drawing]:
    """The plots of ``test``, by name, most telling first."""
    if cells := _cells(test):
        yield "Recovery correctness", lambda: recovery_matrix(cells, source)
    if states := _states(test):
        yield "Reads during degradation", lambda: degraded_reads(states, source)
    if bars := _rebuilds(test):
        yield "Rebuild", lambda: rebuild_times(bars, source)
    if curves := _tails(test):
        yield "Tail latency", lambda: tail_curves(curves, source)
    if updates := _updates(test):
        yield "Updates of part of a codeword", lambda: update_latency(updates, source)
    if throughputs := _throughputs(test):
        yield "Codec throughput", lambda: codec_throughput(throughputs, source)


def _taken(test: TestRecord, name: str) -> Iterator[tuple[Mapping[str, str], Distribution]]:
    found = test.measured(name, _LABELS.get(name, ()))
    return ((measured.labels, samples_of(measured)) for measured in found)


def _limits(test: TestRecord, name: str, labels: Mapping[str, str]) -> list[LimitLine]:
    """The limits of what was measured under this name with these labels."""
    return [limit for one in test.measured(name) if one.labels == labels for limit in limits_of(test, one)]


def _same(labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(labels.items()))


def _cells(test: TestRecord) -> list[RecoveryCell]:
    counts = {
        name: {_same(labels): round(samples.maximum) for labels, samples in _taken(test, name)}
        for name in (RIGHT, DEGRADED, LOUD, WRONG, UNKNOWN)
    }
    cells = []
    most = _most_erased(test)
    for labels, samples in _taken(test, TRIED):
        found = {name: of.get(_same(labels), 0) for name, of in counts.items()}
        right = found[RIGHT] + found[DEGRADED] + (found[LOUD] if _is_beyond(labels, most) else 0)
        further = _said(labels, {*_LABELS[TRIED], "system"})
        row = ", ".join(filter(None, (labels.get("system"), _damage_words(labels), further)))
        column = _WHEN.get(labels["phase"], labels["phase"])
        if labels["units"] != "none":
            column += f",\n{labels['units']}"
        cells.append(RecoveryCell(row, column, round(samples.maximum), right, found[WRONG], found[UNKNOWN]))
    return cells


def _most_erased(test: TestRecord) -> Mapping[str | None, int]:
    """The most units of a stripe that each system was to recover: its m, where it was tried."""
    most: dict[str | None, int] = {}
    for labels, _ in _taken(test, TRIED):
        if labels["damage"] == _ERASED:
            system = labels.get("system")
            most[system] = max(most.get(system, 0), _number(labels["erased"]))
    return most


def _is_beyond(labels: Mapping[str, str], most: Mapping[str | None, int]) -> bool:
    """Whether more was damaged than can be recovered, aloud or silently."""
    is_more = labels["damage"] == _CORRUPTED and _number(labels["erased"]) > most.get(labels.get("system"), math.inf)
    return labels["damage"] == _BEYOND or is_more


def _number(label: str) -> int:
    """The number that a label is; 0 where a test of one's own has words there."""
    return int(label) if label.isdecimal() else 0


def _finite(label: str) -> float | None:
    """The number that a label is; None where it is none that an axis has."""
    try:
        value = float(label)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _damage_words(labels: Mapping[str, str]) -> str:
    if labels["damage"] == "none":
        return "undamaged"
    return f"{labels['erased']} {_DAMAGES.get(labels['damage'], labels['damage'])}"


def _states(test: TestRecord) -> list[StateLatency]:
    return [
        StateLatency(_told_apart(READS, labels, "when"), samples, _limits(test, READS, labels))
        for labels, samples in _taken(test, READS)
    ]


def _rebuilds(test: TestRecord) -> list[RebuildBar]:
    waited = {
        _said(labels, _ASIDE): samples
        for labels, samples in _taken(test, TENANTS)
        if (labels["when"], labels["request"]) == ("rebuilding", "read")
    }
    return [
        RebuildBar(way or "rebuild", samples.quantile(0.5), waited.get(way), _limits(test, REBUILD, labels))
        for labels, samples in _taken(test, REBUILD)
        for way in (_said(labels, _ASIDE),)
    ]


def _told_apart(measure: str, labels: Mapping[str, str], by: str) -> str:
    """The label that tells one from another in the plot of ``measure``, and those that it does not know."""
    return ", ".join(filter(None, (labels[by], _said(labels, _LABELS[measure]))))


def _said(labels: Mapping[str, str], aside: Collection[str]) -> str:
    """The labels that tell one from another, as ``policy move``; empty where there are none."""
    return ", ".join(f"{key} {value}" for key, value in sorted(labels.items()) if key not in aside)


def _tails(test: TestRecord) -> list[TailCurve]:
    curves: dict[tuple[str, str], list[tuple[float, float | None, float, float | None]]] = {}
    limits: dict[tuple[str, str], list[LimitLine]] = {}
    for measured in test.measured(TAIL, _LABELS[TAIL]):
        labels, samples = measured.labels, samples_of(measured)
        ph = _finite(labels["ph"])
        if ph is None:
            continue
        low, high = interval_of(test, measured, 0.5)
        panel = f"{_number(labels['sectors']):,} sectors, {labels['retry_ms']} ms a retry"
        point = (ph, low, samples.quantile(0.5), high)
        # A drive has one probability, so that the points of a curve are those of several.
        curves.setdefault((panel, labels["read"]), []).append(point)
        limits.setdefault((panel, labels["read"]), []).extend(_limits(test, TAIL, labels))
    return [TailCurve(panel, read, points, limits[panel, read]) for (panel, read), points in curves.items()]


def _updates(test: TestRecord) -> list[GroupedBar]:
    return [
        GroupedBar(
            f"{labels['code']},\n{labels['updated']}",
            _told_apart(UPDATE, labels, "method"),
            samples.quantile(0.5) * 1e3,
            _limits(test, UPDATE, labels),
        )
        for labels, samples in _taken(test, UPDATE)
    ]


def _throughputs(test: TestRecord) -> list[GroupedBar]:
    return [
        GroupedBar(
            labels["code"], _told_apart(CODEC, labels, "act"), samples.quantile(0.5) / 1e9, _limits(test, CODEC, labels)
        )
        for labels, samples in _taken(test, CODEC)
    ]
