"""A command that is forked from a loaded one is no other than a command that is started."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.e2e.command_line import CommandLine, Ended

PROGRAM = ("env",)
"""What a command is run under, in order to be started."""


@pytest.mark.parametrize(
    "arguments",
    [("--help",), ("lab", "status", "mock"), ("plan", "list"), ("run", "smoek", "--lab", "mock"), ("lab", "lease", "")],
    ids=lambda arguments: arguments[0] + arguments[-1],
)
def test_it_says_the_same_and_ends_the_same(rackloop: CommandLine, arguments: tuple[str, ...]) -> None:
    forked = rackloop.start(*arguments)
    assert not isinstance(forked.process, subprocess.Popen)
    said = forked.end()
    started = rackloop.start(*arguments, prefix=PROGRAM)
    assert isinstance(started.process, subprocess.Popen)
    assert said == started.end()


def test_it_has_the_variables_the_folder_and_the_streams_that_it_is_given(
    rackloop: CommandLine, tmp_path: Path
) -> None:
    (tmp_path / "plan.yaml").write_text("nonsense")
    rackloop("run", "plan.yaml", "--lab", "mock").refused(2, "plan.yaml")
    rackloop("lab", "up", "mock", RACKLOOP_STATE_HOME="plan.yaml").refused(2, "plan.yaml")
    with (tmp_path / "out").open("w") as out:
        assert rackloop.start("--version", stdout=out).end() == Ended(0, "", "")
    assert (tmp_path / "out").read_text() == rackloop("--version").out


def test_it_leads_its_session_and_is_ended_by_a_signal(rackloop: CommandLine) -> None:
    running = rackloop.start("run", "smoke", "--lab", "mock")
    assert os.getsid(running.process.pid) == running.process.pid
    assert running.process.pid in rackloop.processes()
    running.kill()
    assert running.end().status == -signal.SIGKILL
    rackloop.wait_until_deserted()
