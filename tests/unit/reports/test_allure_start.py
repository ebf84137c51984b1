"""A start of Allure that waits for its task: what is made meanwhile is in its report, and none is left behind."""

import os
import sys
from pathlib import Path

import pytest

from rackloop.errors import ToolError
from rackloop.lab import EnvironmentSecret
from rackloop_reports.allure_process import AllureStart, how_to_install

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


def test_it_does_not_inherit_the_variables_of_secrets(
    tmp_path: Path, begun: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PASSWORD_OF_A_REPORT", "hunter2")
    monkeypatch.setenv("OF_NO_DESCRIPTION", "kept")
    EnvironmentSecret("PASSWORD_OF_A_REPORT")
    with AllureStart(tmp_path / "results", tmp_path / "node"):
        environment = Path("/proc", begun.read_text(), "environ").read_text()
    assert "OF_NO_DESCRIPTION=kept" in environment
    assert "PASSWORD_OF_A_REPORT" not in environment


def test_what_is_missing_is_said_when_it_is_needed(tmp_path: Path) -> None:
    with (
        AllureStart(tmp_path / "results", tmp_path / "nowhere") as start,
        pytest.raises(ToolError, match=r"cannot start .*nowhere"),
    ):
        start.generate({"output": str(tmp_path / "made")}, 120.0)


_FAILING = """#!{python}
import sys
sys.stdin.read()
sys.stderr.write({said!r})
sys.exit(1)
"""
_TRACE = "    at async AwesomePlugin.done (file:///opt/plugin.js:230:13)\n"


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            f"Error: ENOSPC: no space left on device, write\n{_TRACE}\x1b[31mFailed to generate\x1b[39m\n",
            "there is no space left for the HTML report; free some, then make it with `rackloop report`",
        ),
        (
            f"TypeError: no such page\n{_TRACE}\x1b[31mFailed to generate\x1b[39m\n",
            "Allure failed with status 1: TypeError: no such page; Failed to generate; check its install",
        ),
    ],
)
def test_a_failure_is_told_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, told: str
) -> None:
    node = tmp_path / "node"
    node.write_text(_FAILING.format(python=sys.executable, said=said))
    node.chmod(0o755)
    monkeypatch.setenv("RACKLOOP_ALLURE", __file__)
    (tmp_path / "results").mkdir()
    with AllureStart(tmp_path / "results", node) as start, pytest.raises(ToolError) as failed:
        start.generate({"output": str(tmp_path / "made")}, 120.0)
    assert str(failed.value) == told


def test_only_a_checkout_installs_the_report_by_itself(tmp_path: Path) -> None:
    assert "npm install --global allure@3" in how_to_install(tmp_path)
    (tmp_path / "rackloop").touch()
    assert "start `./rackloop` again" in how_to_install(tmp_path)
