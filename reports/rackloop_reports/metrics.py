"""Measurements as Allure's metrics: one number for each statistic, comparable from run to run."""

from __future__ import annotations

from typing import Any

from rackloop.record import Measured
from rackloop_reports.formatting import measure_text
from rackloop_reports.record import RunRecord, TestRecord

# Trends need one unit from run to run, and the page shows few digits.
_SCALES = {"s": (1e3, "ms"), "B/s": (1e-6, "MB/s")}


def metrics_of(run: RunRecord) -> list[dict[str, Any]]:
    """The content of a ``*-perf.json`` file: an entry for every distinct statistic of every test."""
    found = {}
    for test in run.tests:
        for measured in test.measurements:
            metric = _metric(run, test, measured)
            found[metric["key"]] = metric
    return list(found.values())


def _metric(run: RunRecord, test: TestRecord, measured: Measured) -> dict[str, Any]:
    scale, unit = _SCALES.get(measured.unit, (1.0, measured.unit))
    title = f"{measure_text(measured.name, measured.labels)} {measured.quantile}"
    key = f"{test.id} {title}"
    metric = {
        "id": key,
        "key": key,
        "value": measured.value * scale,
        "start": run.wall_ms(test.started_ns),
        "stop": run.wall_ms(test.ended_ns),
        "title": title,
        "unit": "" if unit == "1" else unit,
        "group": test.id,
        "groupTitle": f"{test.id} (simulated)" if run.is_simulated else test.id,
    }
    better = _better(measured)
    return metric | ({"better": better} if better else {})


def _better(measured: Measured) -> str | None:
    """The better direction: the limit's, else less time and more throughput."""
    limits = measured.limits or {}
    bounded = (limits.get("min") is not None, limits.get("max") is not None)
    if bounded != (False, False):
        return {(True, False): "higher", (False, True): "lower"}.get(bounded)
    return {"s": "lower", "B/s": "higher"}.get(measured.unit)
