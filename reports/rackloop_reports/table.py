"""The table at the end of a run: every test with its verdict, what it measured, and why it is not a pass."""

from __future__ import annotations

from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from rackloop_reports.summary import MeasurementSummary, Summary, TestSummary
from rackloop_reports.wording import interval_text, limit_text, measure_text, value_text

_STYLES = {"pass": "green", "fail": "bold red", "unknown": "magenta", "blocked": "yellow", "skipped": "dim"}
_ROWS_FOR_A_TEST = 6


def render(summary: Summary) -> RenderableType:
    """The table, to be printed by a rich console."""
    simulated = " (simulated)" if summary["lab_kind"] == "mock" else ""
    table = Table(
        title=f"Plan {escape(summary['plan'])} on lab {escape(summary['lab'])}{simulated}", title_justify="left"
    )
    table.add_column("test", no_wrap=True)
    table.add_column("verdict")
    table.add_column("measured", overflow="fold")
    table.add_column("limit")
    table.add_column("why", overflow="fold")
    for test in summary["tests"]:
        _add_test(table, test)
    verdict = summary["verdict"]
    table.caption = Text.assemble(
        "verdict ",
        (verdict, _STYLES[verdict]),
        f", {len(summary['tests'])} tests, {summary['wall_s']:.1f} s, seed {summary['seed']}{simulated}",
    )
    table.caption_justify = "left"
    return table


def _add_test(table: Table, test: TestSummary) -> None:
    chosen = _key_measurements(test["measurements"])
    reason = test["reason"] or ""
    why = f"{test['cause']}: {reason}" if test["cause"] else reason
    table.add_row(
        Text(test["id"]),
        Text(test["verdict"], _STYLES[test["verdict"]]),
        Text("\n".join(_measured(measurement) for measurement in chosen)),
        Text("\n".join(limit_text(measurement["limits"], measurement["unit"]) for measurement in chosen)),
        Text(why),
    )


def _key_measurements(measurements: list[MeasurementSummary]) -> list[MeasurementSummary]:
    """Those with a limit, worst verdict first; where a test has none with a limit, the first few."""
    order = ["fail", "unknown", "pass"]
    judged = [measurement for measurement in measurements if measurement["verdict"]]
    judged.sort(key=lambda measurement: order.index(measurement["verdict"] or "pass"))
    return (judged or measurements)[:_ROWS_FOR_A_TEST]


def _measured(measurement: MeasurementSummary) -> str:
    unit = measurement["unit"]
    name = measure_text(measurement["name"], measurement["labels"])
    return (
        f"{name} {measurement['quantile']} {value_text(measurement['value'], unit)} "
        f"[{interval_text(measurement['ci95'], unit)}]"
    )
