"""Completion in a shell: verbs, and the names of labs and plans."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rackloop_cli.shared.completion import complete_lab


def completed(words: str, at: int, folder: Path) -> list[str]:
    """What bash would offer for the word ``at`` of ``words``."""
    asked = {"COMP_WORDS": words, "COMP_CWORD": str(at), "_RACKLOOP_COMPLETE": "complete_bash"}
    command = [sys.executable, "-m", "rackloop_cli.main"]
    done = subprocess.run(command, env={**os.environ, **asked}, cwd=folder, capture_output=True, text=True, check=False)
    assert not done.stderr
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "at", "offered"),
    [
        ("rackloop la", 1, "lab"),
        ("rackloop run sm", 2, "smoke"),
        ("rackloop run smoke --lab my", 4, "my-rack"),
        ("rackloop fabric my", 2, "my-rack"),
        ("rackloop heal my", 2, "my-rack"),
        ("rackloop test show fabric/remap_l", 3, "fabric/remap_latency"),
    ],
)
def test_verbs_labs_plans_and_tests_are_completed(tmp_path: Path, words: str, at: int, offered: str) -> None:
    (tmp_path / "labs").mkdir()
    (tmp_path / "labs" / "my-rack.yaml").touch()
    assert completed(words, at, tmp_path) == [offered]


def test_files_are_offered_as_they_are_written(tmp_path: Path) -> None:
    (tmp_path / "rack.yaml").touch()
    (tmp_path / "racks").mkdir()
    (tmp_path / "notes.txt").touch()
    assert complete_lab(f"{tmp_path}/ra") == [f"{tmp_path}/rack.yaml", f"{tmp_path}/racks/"]
    assert complete_lab(f"{tmp_path}/n") == []


def test_a_shell_gets_its_script(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "rackloop_cli.main"]
    environment = {**os.environ, "_RACKLOOP_COMPLETE": "source_bash"}
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "complete -o default -F _rackloop_completion rackloop" in done.stdout
