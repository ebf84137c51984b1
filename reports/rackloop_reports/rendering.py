"""All reports of a run, from its events."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rackloop.errors import ToolError
from rackloop_reports import allure, allure_results
from rackloop_reports._files import write_atomically
from rackloop_reports.allure_process import AllureStart
from rackloop_reports.junit import to_junit
from rackloop_reports.measurement_table import measurements_csv
from rackloop_reports.overview import overview_html
from rackloop_reports.record import RunRecord, read_run
from rackloop_reports.run_history import history_of
from rackloop_reports.summary import Summary, summarize, to_json

_SUMMARY = "summary.json"
_JUNIT = "junit.xml"
_MEASUREMENTS = "measurements.csv"


@dataclass(frozen=True)
class RenderedReport:
    """The rendered summary, and the page a reader starts from."""

    summary: Summary
    index: Path


def render(
    run_dir: Path,
    *,
    history: Callable[[str], Path] | None = None,
    node: Path | None = None,
    limits_s: Sequence[float] = allure.LIMITS_S,
) -> RenderedReport:
    """Render all reports of the run in ``run_dir``, ``report/index.html`` last.

    ``history`` gives a lab's history file by its name; beside it each plan, and each drive that is measured by itself,
    has its own for trends; ``node`` a Node.js other than the one found, ``limits_s``
    how long each start of Allure may take. Rendering again gives the
    same. Raises BadInput where ``run_dir`` holds no readable stream, before anything is written; ToolError where
    Node.js or Allure is missing or fails, after everything else was written.
    """
    results = run_dir / "allure-results"
    # Allure loads its modules on another core meanwhile.
    with AllureStart(results, node) as start:
        run = read_run(run_dir)
        # It is many objects, and they stay to the end: not to be searched for cycles, nor copied for that by processes
        # that draw.
        gc.freeze()
        rendered = RenderedReport(_write_summary(run, run_dir), run_dir / "report" / allure.INDEX)
        plots = allure_results.complete(run, results, run_dir)
        try:
            allure.generate(
                start,
                run_dir / "report",
                history_of(run, history(run.started.lab)) if history else None,
                title=run.title,
                started_ms=run.wall_ms(run.started_ns),
                limits_s=limits_s,
                first_screen=partial(overview_html, run, plots),
            )
        except ToolError as error:
            raise type(error)(f"{error} (the other reports are in {run_dir})") from error
    return rendered


def write_summary(run_dir: Path) -> Summary:
    """Write ``summary.json``, ``junit.xml`` and ``measurements.csv``, and nothing else.

    Raises BadInput as :func:`render`.
    """
    return _write_summary(read_run(run_dir), run_dir)


def _write_summary(run: RunRecord, run_dir: Path) -> Summary:
    summary = summarize(run)
    write_atomically(run_dir / _SUMMARY, to_json(summary))
    write_atomically(run_dir / _JUNIT, to_junit(run))
    write_atomically(run_dir / _MEASUREMENTS, measurements_csv(run))
    return summary
