"""A command line of one's own for each test."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.command_line import CommandLine, forked_commands


@pytest.fixture(scope="session", autouse=True)
def _forks() -> Iterator[None]:
    with forked_commands():
        yield


@pytest.fixture
def rackloop(tmp_path: Path) -> Iterator[CommandLine]:
    """The command line; the test fails if it leaves a process behind. Unix sockets need a short state directory."""
    with tempfile.TemporaryDirectory(prefix="rl-", dir="/tmp") as state_home:
        command_line = CommandLine(Path(state_home), tmp_path)
        yield command_line
        command_line.close()
