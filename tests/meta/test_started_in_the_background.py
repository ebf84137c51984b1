"""The project's tests as a script or nohup starts them in the background: signals of a terminal are ignored."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.meta.tree import ROOT

INTERRUPTED = (
    "tests/unit/tools/test_cli_interruption.py",
    "tests/unit/tools/test_schedule_commands.py::test_a_run_that_is_interrupted_as_it_begins_is_not_left_behind",
)


@pytest.mark.parametrize("ignored", ["INT", "HUP QUIT"])
def test_what_is_interrupted_there_ends(ignored: str) -> None:
    argv = ["sh", "-c", f'trap "" {ignored}; exec "$@"', "sh", sys.executable, "-m", "pytest", "-q", *INTERRUPTED]
    done = subprocess.run(
        [*argv, "-p", "no:cacheprovider"], check=False, cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout[-3000:]
