"""The measurements of a test as tables: for a page, those that matter first and the others folded; and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from html import escape

from rackloop.measurement import Verdict
from rackloop.record import Measured
from rackloop.units import counted
from rackloop_reports.formatting import interval_text, labels_text, limit_text, measure_text, value_text
from rackloop_reports.record import RunRecord
from rackloop_reports.sentences import share_of_limit

#: A table is cut here; the rest stands in a fold below it.
MOST_ROWS = 30
_COLUMNS = (
    *("test", "simulated", "metric", "labels", "unit", "n", "statistic", "value", "ci95_low", "ci95_high", "p50"),
    *("p99", "limit_min", "limit_max", "verdict", "cause", "reason"),
)
_HEADS = ("Metric", "n", "Statistic", "Value", "95 % interval", "Limit")
_MISSED = "font-weight:bold;background:rgba(213,94,0,0.16)"
_DOUBTFUL = "font-weight:bold;background:rgba(230,159,0,0.14)"
_MARKS = {Verdict.FAIL: _MISSED, Verdict.UNKNOWN: _DOUBTFUL}
_ORDER = (Verdict.FAIL, Verdict.UNKNOWN, Verdict.PASS)


def measurements_html(measurements: Sequence[Measured], *, is_simulated: bool) -> str:
    """A row for every judged statistic, with its interval, its limit and what that makes of it.

    Missed limits stand first, then what is nearest to its limit; beyond 30 rows the others are folded.
    """
    ordered = sorted(measurements, key=_urgency)
    shown, folded = ordered[:MOST_ROWS], ordered[MOST_ROWS:]
    caption = "<p><em>All values are simulated.</em></p>" if is_simulated else ""
    fold = f"<details><summary>{counted(len(folded), 'row')} more</summary>{_table(folded)}</details>" if folded else ""
    return f"{_table(shown)}{fold}{caption}"


def measurements_csv(run: RunRecord) -> str:
    """Every statistic of every test, a row for each: values in SI units, empty where there is none."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for test in run.tests:
        for measured in test.measurements:
            low, high = measured.ci95 or (None, None)
            limits = measured.limits or {}
            writer.writerow(
                [
                    test.id,
                    "yes" if run.is_simulated else "no",
                    measured.name,
                    labels_text(measured.labels),
                    measured.unit,
                    measured.n,
                    measured.quantile,
                    measured.value,
                    low,
                    high,
                    measured.p50,
                    measured.p99,
                    limits.get("min"),
                    limits.get("max"),
                    measured.verdict,
                    measured.cause,
                    measured.reason,
                ]
            )
    return text.getvalue()


def _urgency(measured: Measured) -> tuple[int, float]:
    verdict = Verdict(measured.verdict) if measured.verdict else None
    place = _ORDER.index(verdict) if verdict in _ORDER else len(_ORDER)
    return place, -(share_of_limit(measured) or 0.0)


def _table(measurements: Iterable[Measured]) -> str:
    heads = "".join(f"<th>{head}</th>" for head in _HEADS)
    rows = "".join(map(_row, measurements))
    return f'<table class="m"><tr>{heads}</tr>{rows}</table>'


def _row(measured: Measured) -> str:
    texts = (
        measure_text(measured.name, measured.labels),
        f"{measured.n:,}",
        measured.quantile,
        value_text(measured.value, measured.unit),
        interval_text(measured.ci95, measured.unit),
        f"{limit_text(measured.limits, measured.unit)}: {measured.verdict}" if measured.limits else "none",
    )
    mark = _MARKS.get(Verdict(measured.verdict)) if measured.verdict else None
    style = f' style="{mark}"' if mark else ""
    cells = "".join(f"<td>{escape(text)}</td>" for text in texts)
    return f"<tr{style}>{cells}</tr>"
