"""``summary.json``: a run's verdicts and measurements in one small file that other programs read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from rackloop.events import Measured
from rackloop_reports.record import RunRecord, TestRecord

SCHEMA = 1


class MeasurementSummary(TypedDict):
    """One judged statistic of one measurement, in SI units; ``verdict`` and ``limits`` are None without a limit."""

    name: str
    labels: Mapping[str, str]
    unit: str
    n: int
    quantile: str
    value: float
    ci95: list[float | None]
    p50: float | None
    p99: float | None
    limits: Mapping[str, Any] | None
    verdict: str | None


class TestSummary(TypedDict):
    """One test: ``cause`` and ``reason`` are None when it passed."""

    id: str
    verdict: str
    cause: str | None
    reason: str | None
    labels: Mapping[str, str]
    measurements: list[MeasurementSummary]


class Summary(TypedDict):
    """A run, as ``summary.json`` holds it (schema 1, ``summary.schema.json``)."""

    schema: int
    plan: str
    lab: str
    lab_kind: str
    seed: int
    started: str
    wall_s: float
    verdict: str
    versions: Mapping[str, str]
    duts: Sequence[Mapping[str, Any]]
    tests: list[TestSummary]


def summarize(run: RunRecord) -> Summary:
    """The summary of ``run``."""
    return {
        "schema": SCHEMA,
        "plan": run.started.plan,
        "lab": run.started.lab,
        "lab_kind": run.started.lab_kind,
        "seed": run.started.seed,
        "started": run.started.wall,
        "wall_s": round((run.ended_ns - run.started_ns) / 1e9, 3),
        "verdict": str(run.verdict),
        "versions": run.started.versions,
        "duts": run.started.duts,
        "tests": [_test(test) for test in run.tests],
    }


def to_json(summary: Summary) -> str:
    """The text of ``summary.json``."""
    return json.dumps(summary, indent=2, ensure_ascii=False) + "\n"


def _test(test: TestRecord) -> TestSummary:
    return {
        "id": test.id,
        "verdict": str(test.verdict),
        "cause": str(test.cause) if test.cause else None,
        "reason": test.reason,
        "labels": test.labels,
        "measurements": [_measurement(measured) for measured in test.measurements],
    }


def _measurement(measured: Measured) -> MeasurementSummary:
    return {
        "name": measured.name,
        "labels": measured.labels,
        "unit": measured.unit,
        "n": measured.n,
        "quantile": measured.quantile,
        "value": measured.value,
        "ci95": list(measured.ci95),
        "p50": measured.p50,
        "p99": measured.p99,
        "limits": measured.limits,
        "verdict": measured.verdict,
    }
