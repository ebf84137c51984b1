"""The runs that a trend goes through: those of the same plan on the same lab, and of the same drive where one is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from rackloop_reports._files import write_atomically
from rackloop_reports.drives_used import the_drive_of
from rackloop_reports.record import RunRecord


def history_of(run: RunRecord, history: Path) -> Path:
    """The file of the runs that ``run`` is to be compared with, beside ``history``, the lab's own.

    The first time it takes over what the lab's file has of the plan, which was kept for all plans at once; of a drive
    nothing, since that file does not say which one a run was of.
    """
    drive = the_drive_of(run)
    names = [history.stem, run.started.plan, *([drive] if drive else [])]
    path = history.with_name("-".join(map(_slug, names)) + history.suffix)
    if not path.exists() and drive is None and history.exists():
        lines = "".join(f"{line}\n" for line in _of_plan(history, f"{run.started.plan} on {run.lab}, "))
        if lines:
            write_atomically(path, lines)
    return path


def _of_plan(history: Path, beginning: str) -> Iterator[str]:
    for line in history.read_text(encoding="utf-8", errors="replace").split("\n"):
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and str(entry.get("name", "")).startswith(beginning):
            yield line


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._]+", "_", text).strip("_") or "_"
