"""`rackloop report`: render the reports of a run again from its events."""

from __future__ import annotations

import os
from pathlib import Path

from rich.console import Console

from rackloop.lab import LabState


def run(directory: Path, *, verbose: bool = False, as_json: bool = False) -> int:
    """Render every report of the run in ``directory``, print its summary and where the report is; returns 0.

    ``verbose`` shows all measurements, ``as_json`` the summary as ``summary.json`` has it.

    Raises BadInput where the directory holds no run, ToolError where Node.js or Allure is missing or fails.
    """
    from rackloop_reports import render
    from rackloop_reports.summary import to_json
    from rackloop_reports.terminal import print_summary

    # Unlike Path.resolve(), it says nothing of links that lead in a circle: the refusal does.
    directory = Path(os.path.realpath(directory))
    rendered = render(directory, history=lambda lab: LabState.of(lab).history)
    if as_json:
        print(to_json(rendered.summary), end="")
        return 0
    console = Console(highlight=False)
    print_summary(rendered.summary, console, everything=verbose)
    console.print(f"Report: {rendered.index}", soft_wrap=True, markup=False)
    return 0
