"""`rackloop report`: render the reports of a run again from its events."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from rackloop.lab import LabState


def run(directory: Path) -> int:
    """Render every report of the run in ``directory``, print its table and where the report is; returns 0.

    Raises BadInput where the directory holds no run, ToolError where Node.js or Allure is missing or fails.
    """
    from rackloop_reports import render
    from rackloop_reports.record import read_run
    from rackloop_reports.terminal import render as render_table

    directory = directory.resolve()
    history = LabState.of(read_run(directory).started.lab).history
    rendered = render(directory, history=history)
    console = Console()
    console.print(render_table(rendered.summary))
    console.print(f"Report: {rendered.index}", soft_wrap=True, highlight=False)
    return 0
