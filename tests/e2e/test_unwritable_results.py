"""A disk that is full in the middle of a run: the rack is given back, nothing more is done, one sentence says why."""

from __future__ import annotations

import pytest

from tests.e2e.command_line import CommandLine, Results
from tests.e2e.test_interrupted import LAB, drives_behind_ports, standing

TESTS = """
import os, shutil
from pathlib import Path
import pytest
PARAMETERS = {"out": ""}
MEASURES = {}
pytestmark = pytest.mark.rackloop(purpose="try it", requires=["fabric.remap"], destructive=True, time_class="seconds")

def full_stream(out):
    for entry in Path("/proc/self/fd").iterdir():
        if entry.is_symlink() and os.readlink(entry) == str(out / "events.jsonl"):
            os.dup2(os.open("/dev/full", os.O_WRONLY | os.O_CLOEXEC), int(entry.name), inheritable=False)
            return
    raise AssertionError("nobody writes the event stream")

def lost_results(out):
    shutil.rmtree(out / "allure-results")
    (out / "allure-results").write_text("no folder")

def remap(rack, out, lose):
    with rack.remapping(rack.lab.servers) as remapping:
        remapping.deal(rack.chance)
        lose(out)
        remapping.deal(rack.chance)
        (out.parent / "dealt").touch()

def test_stream(rack, parameters):
    remap(rack, Path(parameters["out"]), full_stream)

def test_results(rack, parameters):
    remap(rack, Path(parameters["out"]), lost_results)

def test_never():
    pass
"""


FULL, NO_FOLDER = "No space left on device", "Not a directory"


def run_without_room(rackloop: CommandLine, test: str, why: str, *arguments: str) -> list[str]:
    """A run of a test that loses the place of what it writes; the tests that were begun."""
    own, out = rackloop.directory / "mine" / "a", rackloop.directory / "out"
    own.mkdir(parents=True)
    (own / "test_room.py").write_text(TESTS)
    told = {"out": str(out)}
    plan = rackloop.plan({"test": f"a/room::{test}", "with": told}, {"test": "a/room::never"})
    ended = rackloop("run", plan, "--testplans", "mine", "--lab", "mock", "--out", "out", *arguments)
    assert ended.status == 3, ended
    # Progress stands before it.
    said = f"rackloop: {out} cannot be written: {why}; free some space, or choose another --out"
    assert ended.err.splitlines()[-1] == said, ended
    assert ended.err.count("cannot be written") == 1, ended
    assert "Traceback" not in ended.out + ended.err, ended
    assert "OSError" not in ended.out + ended.err, ended
    return [event.test for event in Results(out).of_kind("test.started")]


@pytest.mark.parametrize(
    ("test", "why", "goes_on"), [("stream", FULL, False), ("results", NO_FOLDER, True)], ids=["stream", "results"]
)
def test_every_act_is_undone_and_no_test_begun(rackloop: CommandLine, test: str, why: str, *, goes_on: bool) -> None:
    assert rackloop("lab", "up", "mock").status == 0
    assert run_without_room(rackloop, test, why) == [f"a/room::{test}"]
    # An act that could not be announced was not made.
    assert (rackloop.directory / "dealt").exists() == goes_on
    assert standing(rackloop) == 0
    assert drives_behind_ports(rackloop) == LAB.baseline
    assert rackloop("lab", "down", "mock").status == 0


def test_a_worker_tells_the_process_that_started_it(rackloop: CommandLine) -> None:
    run_without_room(rackloop, "results", NO_FOLDER, "-n", "2")
    rackloop.wait_until_deserted()
