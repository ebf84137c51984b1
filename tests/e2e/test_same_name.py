"""A lab that is up, and another description with its name: nothing of the one is asked or done by the other."""

from __future__ import annotations

import pytest

from rackloop.lab import load_lab
from tests.e2e.command_line import CommandLine

OTHER = "other.yaml"
# Its name is no markup of a terminal's.
MINE = "racks [new]/mine.yaml"
VERBS = (
    ("heal", OTHER),
    ("heal", OTHER, "--steal", "--yes"),
    ("lab", "status", OTHER),
    ("lab", "status", OTHER, "--json"),
    ("lab", "down", OTHER),
    ("lab", "down", OTHER, "--steal", "--yes"),
    ("lab", "cabling", OTHER),
    ("lab", "up", OTHER),
    ("lab", "provision", OTHER),
    ("lab", "lease", OTHER, "--for", "1h"),
    ("lab", "maintain", OTHER, "srv1", "--reason", "new memory"),
    ("fabric", OTHER, "show"),
    ("fabric", OTHER, "unmap", "srv1.p1"),
    ("run", "smoke", "--lab", OTHER),
)


@pytest.fixture
def described(rackloop: CommandLine) -> str:
    """A mock lab that is up, from a file of the user's; another file describes one of the same name."""
    text = load_lab("mock").source.read_text()
    (rackloop.directory / "racks [new]").mkdir()
    (rackloop.directory / MINE).write_text(text)
    (rackloop.directory / OTHER).write_text(f"{text}# another rack\n")
    assert f"`rackloop lab status '{MINE}'`" in rackloop("lab", "up", MINE).out
    return MINE


def test_another_description_of_the_name_is_refused_and_nothing_is_done(rackloop: CommandLine, described: str) -> None:
    to_end_it = f"`rackloop lab down '{rackloop.directory / described}'`"
    # A circuit that heal would give back, were it to act on the lab that is up.
    assert rackloop("fabric", described, "unmap", "srv1.p0").status == 0
    before = rackloop("fabric", described, "show").out
    for verb in VERBS:
        rackloop(*verb).refused(2, "is up from another description", to_end_it)
    assert rackloop("fabric", described, "show").out == before
    assert rackloop("lab", "down", described).status == 0
    assert "was not up" in rackloop("lab", "down", OTHER).out


def test_a_description_that_changed_meanwhile_takes_its_lab_down(rackloop: CommandLine, described: str) -> None:
    (rackloop.directory / described).write_text((rackloop.directory / OTHER).read_text())
    rackloop("lab", "status", described).refused(2, "before that file was changed")
    assert rackloop("lab", "down", described).status == 0
