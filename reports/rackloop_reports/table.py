"""The table at the end of a run: every test with its verdict, what it measured, and why it is not a pass."""

from __future__ import annotations

from collections.abc import Iterator

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from rackloop.verdict import Verdict
from rackloop_reports.summary import MeasurementSummary, Summary, TestSummary
from rackloop_reports.wording import interval_text, limit_text, measure_text, value_text

_STYLES = {
    Verdict.PASS: "green",
    Verdict.FAIL: "bold red",
    Verdict.UNKNOWN: "magenta",
    Verdict.BLOCKED: "yellow",
    Verdict.SKIPPED: "dim",
}
_WORST_FIRST = (Verdict.FAIL, Verdict.UNKNOWN, Verdict.PASS)
_MEASURES_FOR_A_TEST = 4


def render(summary: Summary) -> RenderableType:
    """The table, to be printed by a rich console."""
    simulated = " (simulated)" if summary.lab_kind == "mock" else ""
    table = Table(
        title=f"Plan {escape(summary.plan)} on lab {escape(summary.lab)}{simulated}",
        title_justify="left",
        caption_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
    )
    table.add_column("test", overflow="fold")
    table.add_column("verdict")
    table.add_column("what was found", overflow="fold", ratio=1)
    for test in summary.tests:
        verdict = test.verdict
        table.add_row(Text(test.id), Text(verdict, _STYLES[verdict]), Text("\n".join(_findings(test))))
    table.caption = Text.assemble(
        "verdict ",
        (summary.verdict, _STYLES[summary.verdict]),
        f", {len(summary.tests)} tests, {summary.wall_s:.1f} s, seed {summary.seed}{simulated}",
    )
    return table


def _findings(test: TestSummary) -> Iterator[str]:
    """Why it is not a pass; then what has a limit, worst first, or the first few measurements where nothing has."""
    if test.reason:
        yield f"{test.cause}: {test.reason}" if test.cause else test.reason
    judged = [measurement for measurement in test.measurements if measurement.verdict]
    judged.sort(key=lambda measurement: _WORST_FIRST.index(measurement.verdict or Verdict.PASS))
    chosen = judged or test.measurements
    yield from map(_measured, chosen[:_MEASURES_FOR_A_TEST])
    left_out = len(test.measurements) - len(chosen[:_MEASURES_FOR_A_TEST])
    if left_out:
        yield f"and {left_out} more"


def _measured(measurement: MeasurementSummary) -> str:
    unit = measurement.unit
    limit = limit_text(measurement.limits, unit)
    return (
        f"{measure_text(measurement.name, measurement.labels)} {measurement.quantile} "
        f"{value_text(measurement.value, unit)} [{interval_text(measurement.ci95, unit)}]"
        + (f", {limit}: {measurement.verdict}" if limit else "")
    )
