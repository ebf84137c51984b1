"""The folders in which sessions of pytest keep their memory: those of killed ones are removed by the next."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SESSION = """
import sys
from rackloop_cli.shared.pytest_memory import pytest_memory

with pytest_memory("mock") as memory:
    print(memory.option, flush=True)
    sys.stdin.read()
"""


def started(tmp_path: Path) -> tuple[subprocess.Popen[str], Path]:
    """A session that goes on until its input ends, and its folder."""
    environment = {**os.environ, "TMPDIR": str(tmp_path / "tmp"), "RACKLOOP_STATE_HOME": str(tmp_path / "state")}
    session = subprocess.Popen(
        [sys.executable, "-c", SESSION],
        env=environment,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert session.stdout is not None
    return session, Path(session.stdout.readline().strip().partition("=")[2]).parent


def test_a_session_removes_the_folders_of_those_that_were_killed_and_no_others(tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    killed, left = started(tmp_path)
    going_on, its_own = started(tmp_path)
    killed.kill()
    killed.communicate()
    of_another_kind = temporary / "rackloop-pytest-no-lock"
    of_another_kind.mkdir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "owner.lock").touch()
    (temporary / "rackloop-pytest-link").symlink_to(elsewhere)
    assert left.is_dir()
    assert its_own.is_dir()

    following, _ = started(tmp_path)
    following.communicate()
    assert following.returncode == 0
    assert {path.name for path in temporary.iterdir()} == {
        its_own.name,
        of_another_kind.name,
        "rackloop-pytest-link",
    }
    assert (elsewhere / "owner.lock").exists()

    going_on.communicate()
    assert going_on.returncode == 0
    assert not its_own.exists()
