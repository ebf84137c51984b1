"""The virtual racks that files of tests share, in state directories of their own, with guests that outlive the tests.

The files of a rack are one worker's, in order (``rack_scheduling.py``). Tests are skipped where this machine cannot
have guests: where it lacks a program, memory, room, the name space that an image is made in, or a way to Debian's
packages; under `.ci/run` that is a failure. A guest that does not boot always is, and so is any other refusal.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from rackloop.lab import load_lab
from tests.e2e.command_line import CommandLine, forked_commands
from tests.meta.tree import ROOT
from tests.virtual.missing_guests import went_well
from tests.virtual.one_guest import one_guest
from tests.virtual.rack_scheduling import RackScheduling

GUESTS = Path(os.environ.get("RACKLOOP_GUESTS", ROOT / ".rackloop" / "guests"))
"""Where images and saved guests are kept from one run of the tests to the next."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> RackScheduling | None:
    """Have a worker take all tests of a rack, where each is to take a scope."""
    return RackScheduling(config, log) if config.getoption("dist") == "loadscope" else None


class GuestCommandLine(CommandLine):
    """The command line, with the patience that guests in software take on a busy machine."""

    within_s = 1800.0


@contextmanager
def command_line_in(directory: Path) -> Iterator[CommandLine]:
    """The command line with a state directory of its own; AssertionError where it leaves a process behind."""
    GUESTS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="rl-", dir="/tmp") as state_home:
        (Path(state_home) / "guests").symlink_to(GUESTS)
        command_line = GuestCommandLine(Path(state_home), directory)
        yield command_line
        command_line.close()


@pytest.fixture(scope="session", autouse=True)
def _forks() -> Iterator[None]:
    with forked_commands():
        yield


@pytest.fixture(scope="session", autouse=True)
def _built(_forks: None, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The guests, built where they are not."""
    with command_line_in(tmp_path_factory.mktemp("built")) as command_line:
        ended = command_line("lab", "build", "virtual")
    went_well(ended)


@pytest.fixture(scope="module")
def rackloop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    """The command line of a file, with no rack that others use."""
    with command_line_in(tmp_path_factory.mktemp("here")) as command_line:
        yield command_line


@pytest.fixture(scope="session")
def _three(_built: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    with command_line_in(tmp_path_factory.mktemp("three")) as command_line:
        yield command_line
        command_line("lab", "down", "virtual")


@pytest.fixture(scope="session")
def _one(_built: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[CommandLine, Path]]:
    with command_line_in(tmp_path_factory.mktemp("one")) as command_line:
        description = one_guest(command_line, "one-guest")
        yield command_line, description
        command_line("lab", "down", description)


@pytest.fixture(scope="module")
def up(_three: CommandLine, request: pytest.FixtureRequest) -> CommandLine:
    """The rack of three guests, which is up from the first file that asks for it until the last test of all."""
    _be_up(_three, "virtual", is_as_left=not request.session.testsfailed)
    return _three


@pytest.fixture(scope="module")
def one(_one: tuple[CommandLine, Path], request: pytest.FixtureRequest) -> CommandLine:
    """The rack of one guest, which is up in the same way."""
    _be_up(*_one, is_as_left=not request.session.testsfailed)
    return _one[0]


@pytest.fixture(scope="module")
def file(_one: tuple[CommandLine, Path]) -> Path:
    """The description of the rack of one guest."""
    return _one[1]


@pytest.fixture(scope="module")
def direct(_built: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    """The rack without a switch, up while the file's tests run."""
    with command_line_in(tmp_path_factory.mktemp("direct")) as command_line:
        went_well(command_line("lab", "build", "virtual-direct"))
        went_well(command_line("lab", "up", "virtual-direct"))
        yield command_line
        assert command_line("lab", "down", "virtual-direct").status == 0


def _be_up(rackloop: CommandLine, lab: str | Path, *, is_as_left: bool) -> None:
    """Have a rack up: as the file before left it, or anew where a test has failed, which may have left anything."""
    if rackloop("lab", "status", lab).status == 0:
        if is_as_left:
            return
        rackloop("lab", "down", lab)
    went_well(rackloop("lab", "up", lab))


@pytest.fixture
def rehearsal(up: CommandLine) -> Iterator[str]:
    """The description of the rack as a physical one; its store is known on this machine while the test runs.

    It says how slow guests in software are on a busy machine.
    """
    document = yaml.safe_load(Path(up.endpoints("virtual")["rehearsal"]).read_text())
    document["times"] = {**dict.fromkeys(("act", "online", "settle", "tools"), "10 min"), "answer": "1 min"}
    path = up.write("rehearsal.yaml", document)
    name = load_lab(path).name
    yield str(path)
    for left in Path("/var/tmp").glob(f"rackloop-store-of-{name}*"):
        left.unlink()
