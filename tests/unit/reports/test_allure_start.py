"""A start of Allure that waits for its task: what is made meanwhile is in its report, and none is left behind."""

import os
import sys
from pathlib import Path

import pytest

from rackloop.errors import ToolError
from rackloop_reports.allure_process import AllureStart

# Tells that it runs, then waits for its configuration as Allure does.
_STAND_IN = """#!{python}
import json, os, pathlib, sys
pathlib.Path({begun!r}).write_text(str(os.getpid()))
config = json.load(sys.stdin)
pathlib.Path(config["output"]).mkdir()
pathlib.Path(config["output"], "index.html").write_text(str(sorted(os.listdir(sys.argv[5]))))
"""


@pytest.fixture
def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pipe that a program in the place of Node.js, ``node`` beside it, writes its process to."""
    pipe, node = tmp_path / "begun", tmp_path / "node"
    os.mkfifo(pipe)
    node.write_text(_STAND_IN.format(python=sys.executable, begun=str(pipe)))
    node.chmod(0o755)
    monkeypatch.setenv("RACKLOOP_ALLURE", __file__)
    return pipe


def test_results_made_after_the_start_are_in_the_report(tmp_path: Path, begun: Path) -> None:
    results = tmp_path / "results"
    with AllureStart(results, tmp_path / "node") as start:
        assert int(begun.read_text()) > 0
        results.mkdir()
        (results / "late.json").touch()
        assert start.generate({"output": str(tmp_path / "made")}, 120.0)
    assert (tmp_path / "made/index.html").read_text() == "['late.json']"


def test_a_start_that_is_given_no_task_ends_with_its_context(tmp_path: Path, begun: Path) -> None:
    with AllureStart(tmp_path / "results", tmp_path / "node"):
        process = int(begun.read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_what_is_missing_is_said_when_it_is_needed(tmp_path: Path) -> None:
    with (
        AllureStart(tmp_path / "results", tmp_path / "nowhere") as start,
        pytest.raises(ToolError, match=r"cannot start .*nowhere"),
    ):
        start.generate({"output": str(tmp_path / "made")}, 120.0)
