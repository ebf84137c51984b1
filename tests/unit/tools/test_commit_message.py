"""The form of commit messages, and the hook that checks it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import commit_message
from commit_message import problems

BODY = "\n\nA slice was converted into parts in ten places.\n"


@pytest.mark.parametrize(
    ("message", "lines"),
    [
        ("leases: parts replace slices", 30),
        ("leases: parts replace slices" + BODY, 31),
        ("x " + "x" * 70, 1),
        ("Merge branch 'leases'", 1000),
    ],
)
def test_a_good_message(message: str, lines: int) -> None:
    assert list(problems(message, lines)) == []


@pytest.mark.parametrize(
    ("message", "lines", "problem"),
    [
        ("x " + "x" * 71, 1, "73 characters of at most 72"),
        ("leases", 1, "names what changed"),
        ("WIP leases of parts", 1, "names what changed"),
        ("fixup! leases: parts replace slices", 1, "names what changed"),
        ("", 1, "names what changed"),
        ("leases: parts replace slices.", 1, "without a full stop"),
        ("leases: parts replace\nslices", 1, "a blank line"),
        ("leases: parts replace slices", 31, "31 lines change, more than 30"),
        ("leases: parts replace slices\n\n  \n", 31, "31 lines change"),
    ],
)
def test_a_wrong_message(message: str, lines: int, problem: str) -> None:
    (found,) = problems(message, lines)
    assert problem in found


def test_the_hook_counts_staged_lines_and_reads_what_the_editor_kept(tmp_path: Path) -> None:
    subprocess.run(("git", "init", "--quiet"), cwd=tmp_path, check=True)
    (tmp_path / "staged.txt").write_text("line\n" * 31)
    subprocess.run(("git", "add", "staged.txt"), cwd=tmp_path, check=True)
    message = tmp_path / "COMMIT_EDITMSG"

    def hook(text: str) -> tuple[int, str]:
        message.write_text(text)
        command = (sys.executable, commit_message.__file__, message)
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.returncode, done.stderr

    comments = "# On branch main\n# ------------------------ >8 ------------------------\nnot a body\n"
    status, said = hook(f"leases: parts replace slices\n\n{comments}")
    assert (status, said.count("\n")) == (1, 1)
    assert "31 lines change" in said
    assert hook(f"leases: parts replace slices{BODY}{comments}") == (0, "")
