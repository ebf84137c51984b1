"""A plan run in this process, on tests of one's own and without a rack."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

# pytester drops what a session inside was the first to import, and neither PyYAML nor NumPy can be loaded twice.
import scipy.special  # noqa: F401
import yaml  # noqa: F401

import rackloop_fixtures._conductor
import rackloop_fixtures.fixtures  # noqa: F401
from rackloop.data import data_path
from rackloop.record import Event, TestFinished, TestStarted, read_events

MARKED = (
    "import pytest\n"
    "pytestmark = pytest.mark.rackloop(purpose='try it', requires=[], destructive=False, time_class='seconds')\n"
)


@dataclass(frozen=True)
class Ran:
    """What became of a session: pytest's result and the event stream."""

    result: pytest.RunResult
    directory: Path

    @property
    def events(self) -> list[Event]:
        """The event stream; empty where there was no run."""
        path = self.directory / "events.jsonl"
        return [stamped.event for stamped in read_events(path)] if path.exists() else []

    @property
    def finished(self) -> list[TestFinished]:
        """The end of every test."""
        return [event for event in self.events if isinstance(event, TestFinished)]

    @property
    def verdicts(self) -> list[tuple[str, str, str | None]]:
        """Id, verdict and cause of every test."""
        return [(event.test, event.verdict, event.cause) for event in self.finished]

    @property
    def started(self) -> list[TestStarted]:
        """The start of every test."""
        return [event for event in self.events if isinstance(event, TestStarted)]

    def only(self) -> TestFinished:
        """The end of the only test."""
        (finished,) = self.finished
        return finished


def run_plan(
    pytester: pytest.Pytester,
    files: Mapping[str, str],
    *tests: Mapping[str, Any],
    lab: str = "mock",
    arguments: tuple[str, ...] = (),
) -> Ran:
    """Run a plan of ``tests`` on test files by name (``a/b``); each is marked unless it says how it is itself."""
    root = pytester.path / "mine"
    for name, text in files.items():
        folder, _, base = name.rpartition("/")
        path = root / folder / f"test_{base}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text if "pytestmark" in text or text.startswith("# bare") else MARKED + text)
    plan = root / "own.yaml"
    plan.write_text(json.dumps({"plan": "own", "purpose": "It is tried.", "tests": list(tests)}))
    result = pytester.runpytest_inprocess(
        str(root),
        f"-c{data_path('testplans') / 'pytest.ini'}",
        f"--rootdir={root}",
        f"--rackloop-testplans={root}",
        f"--rackloop-plan={plan}",
        f"--rackloop-lab={lab}",
        f"--rackloop-out={pytester.path / 'out'}",
        "--rackloop-seed=1",
        *arguments,
    )
    return Ran(result, pytester.path / "out")
