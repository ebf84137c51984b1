"""The one virtual rack that the tests use, in a state directory of its own, with guests that outlive the tests."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from rackloop.lab import load_lab
from tests.e2e.command_line import CommandLine
from tests.meta.tree import ROOT

GUESTS = Path(os.environ.get("RACKLOOP_GUESTS", ROOT / ".rackloop" / "guests"))
"""Where images and saved guests are kept from one run of the tests to the next."""


@pytest.fixture(scope="module")
def rackloop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    """The command line, for all tests of a file; they fail if it leaves a process behind."""
    GUESTS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="rl-", dir="/tmp") as state_home:
        (Path(state_home) / "guests").symlink_to(GUESTS)
        command_line = CommandLine(Path(state_home), tmp_path_factory.mktemp("here"))
        yield command_line
        command_line.close()


@pytest.fixture(scope="module")
def up(rackloop: CommandLine) -> Iterator[CommandLine]:
    """The rack, up until the last test of the file."""
    ended = rackloop("lab", "up", "virtual")
    assert ended.status == 0, ended
    yield rackloop
    rackloop("lab", "down", "virtual")


@pytest.fixture
def rehearsal(up: CommandLine) -> Iterator[str]:
    """The description of the rack as a physical one; its store is known on this machine while the test runs."""
    path: str = up.endpoints("virtual")["rehearsal"]
    name = load_lab(path).name
    yield path
    for left in Path("/var/tmp").glob(f"rackloop-store-of-{name}*"):
        left.unlink()
