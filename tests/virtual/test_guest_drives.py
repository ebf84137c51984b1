"""The drives of a virtual rack without a switch, of each kind: what a kernel makes of them, and what has drifted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rackloop.lab import LabState, load_lab
from tests.e2e.command_line import CommandLine
from tests.transcripts.record_guest import LAB, SERVER, drifted, kept_recordings, record

# A rack of its own, saved and resumed for three tests.
pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def up(rackloop: CommandLine) -> Iterator[CommandLine]:
    """The rack, up until the last test of the file."""
    assert rackloop("lab", "build", LAB).status == 0
    ended = rackloop("lab", "up", LAB)
    assert ended.status == 0, ended
    yield rackloop
    assert rackloop("lab", "down", LAB).status == 0


def test_drives_of_each_kind_are_where_they_are_described(up: CommandLine) -> None:
    ended = up("lab", "cabling", LAB)
    assert (ended.status, "4 ports, 0 disagreements" in ended.out) == (0, True), ended


def test_a_guest_prints_what_it_was_recorded_to(up: CommandLine) -> None:
    state = LabState(up.state_home / "labs" / LAB)
    assert drifted(record(state), kept_recordings()) == {}


def test_as_a_rack_that_is_simply_there_it_is_checked_and_discovered(up: CommandLine) -> None:
    path: str = up.endpoints(LAB)["rehearsal"]
    assert up("lab", "check", path).status == 0
    found = up("lab", "discover", path, "--name", "found", "--force")
    assert (found.status, "1 server, 4 drives" in found.out) == (0, True), found
    again = load_lab(up.directory / "found.yaml")
    described = load_lab(LAB)
    assert {drive.serial: drive.wwn for drive in again.drives.values()} == {
        drive.serial: drive.wwn for drive in described.drives.values()
    }
    assert again.servers[SERVER].paths == load_lab(path).servers[SERVER].paths
