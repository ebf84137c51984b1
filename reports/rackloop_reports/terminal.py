"""The table at the end of a run: every test with its verdict, measurements and reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from rackloop.measurement import Verdict
from rackloop.units import counted
from rackloop_reports.formatting import cause_text, interval_text, limit_text, measure_text, value_text
from rackloop_reports.summary import MeasurementSummary, Summary, TestSummary

_STYLES = {
    Verdict.PASS: "green",
    Verdict.FAIL: "bold red",
    Verdict.UNKNOWN: "magenta",
    Verdict.BLOCKED: "yellow",
    Verdict.SKIPPED: "dim",
}
_WORST_FIRST = (Verdict.FAIL, Verdict.UNKNOWN, Verdict.PASS)
_MEASURES_FOR_A_TEST = 4
_INDENT = 9


def render(summary: Summary) -> RenderableType:
    """The list, to be printed by a rich console: what does not fit in a line goes on below its beginning."""
    simulated = " (simulated)" if summary.lab_kind == "mock" else ""
    lines: list[RenderableType] = [Text(f"Plan {summary.plan} on lab {summary.lab}{simulated}\n")]
    blocked: dict[str, str] = {}
    for test in summary.tests:
        verdict = test.verdict
        lines.append(Text.assemble((f"{verdict:<{_INDENT}}", _STYLES[verdict]), test.id))
        first = blocked.setdefault(str(test.reason), test.id) if test.verdict is Verdict.BLOCKED else test.id
        told = test if first == test.id else replace(test, reason=f"as {first}")
        findings = _findings(told, is_simulated=bool(simulated))
        lines.extend(Padding(Text(finding), (0, 0, 0, _INDENT + 2)) for finding in findings)
    if summary.out_of_service:
        lines.append(Text("\nnot used"))
        lines.extend(Padding(Text(out.reason), (0, 0, 0, 2)) for out in summary.out_of_service)
    took = f", {counted(len(summary.tests), 'test')}, {summary.wall_s:.1f} s, seed {summary.seed}{simulated}"
    lines.append(Text.assemble("\nverdict ", (summary.verdict, _STYLES[summary.verdict]), took))
    return Group(*lines)


def _findings(test: TestSummary, *, is_simulated: bool) -> Iterator[str]:
    """The reason for the verdict; then measurements with limits, worst first, or else the first few."""
    if test.reason:
        yield f"{cause_text(test.cause, is_simulated=is_simulated)}: {test.reason}" if test.cause else test.reason
    judged = [measurement for measurement in test.measurements if measurement.verdict]
    judged.sort(key=lambda measurement: _WORST_FIRST.index(measurement.verdict or Verdict.PASS))
    chosen = judged or test.measurements
    yield from map(_measured, chosen[:_MEASURES_FOR_A_TEST])
    left_out = len(test.measurements) - len(chosen[:_MEASURES_FOR_A_TEST])
    if left_out:
        yield f"and {left_out} more"


def _measured(measurement: MeasurementSummary) -> str:
    unit = measurement.unit
    value = value_text(measurement.value, unit)
    interval = interval_text(measurement.ci95, unit)
    limit = limit_text(measurement.limits, unit)
    return (
        f"{measure_text(measurement.name, measurement.labels)} {measurement.quantile} {value}"
        + (f" [{interval}]" if interval not in {"", f"{value} to {value}"} else "")
        + (f", limit {limit}: {measurement.verdict}" if limit else "")
    )
