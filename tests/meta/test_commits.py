"""Messages of the commits that upstream does not have yet."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from commit_message import lines_changed, problems
from tests.meta.tree import ROOT, check, project

START: str = project()["tool"]["rackloop"]["commit-messages"]["after"]


def git(root: Path, *arguments: str) -> str | None:
    """The output of git, None where it fails."""
    done = subprocess.run(("git", *arguments), cwd=root, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def bases(root: Path, start: str) -> list[str]:
    """The commits up to which messages are not checked: upstream's, and ``start``, those of them that are here."""
    named = ("@{upstream}", "origin/main", start)
    return [name for name in named if git(root, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}") is not None]


def wrong_messages(root: Path, known: list[str]) -> Iterator[str]:
    """Problems with the messages of the commits that none of ``known`` contains."""
    for commit in (git(root, "rev-list", "--no-merges", "HEAD", "--not", *known) or "").split():
        message = git(root, "show", "--no-patch", "--format=%B", commit) or ""
        lines = lines_changed("show", "--format=", commit, root=root)
        yield from (f"{commit[:9]}: {problem}" for problem in problems(message, lines))


def test_messages_have_their_form() -> None:
    if not (ROOT / ".git").exists() or git(ROOT, "rev-parse", "HEAD") is None:
        pytest.skip("no git here: an exported tree has no commits")
    if not (known := bases(ROOT, START)):
        pytest.skip(f"neither upstream nor {START[:9]} is here: a shallow clone does not say which commits are new")
    check(wrong_messages(ROOT, known))


def test_wrong_messages_after_the_base_are_found(tmp_path: Path) -> None:
    def commit(message: str, lines: int) -> str:
        (tmp_path / message).write_text("line\n" * lines)
        assert git(tmp_path, "add", message) is not None
        author = ("-c", "user.name=A", "-c", "user.email=a@example.org")
        assert git(tmp_path, *author, "commit", "--quiet", "--message", message) is not None
        return git(tmp_path, "rev-parse", "HEAD") or ""

    assert git(tmp_path, "init", "--quiet") is not None
    start = commit("Old.", 40)
    commit("leases: parts replace slices", 10)
    ended = commit("leases: parts replace slices.", 10)
    silent = commit("leases: slices are deleted", 40)
    assert bases(tmp_path, start) == [start]
    assert [found.split(":")[0] for found in wrong_messages(tmp_path, [start])] == [silent[:9], ended[:9]]
    assert list(wrong_messages(tmp_path, [silent])) == []
    assert bases(tmp_path, "0" * 40) == []
