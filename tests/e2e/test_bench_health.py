"""A rack of which something is out of service: what is done without it, what is not, and who is told why."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rackloop.data import data_path
from rackloop_drivers.rackd import RackdControl
from tests.deadlines import CLOCK, soon
from tests.e2e.command_line import SLOW_S, CommandLine, Results

TESTS = '''
"""What a test finds on a drive: the one it is given, or the first there is."""

import pytest

from rackloop.errors import ProductFailed
from rackloop_labs.retest import try_drive

PARAMETERS = {"drive": "", "breaks": False}
MEASURES = {}

pytestmark = pytest.mark.rackloop(purpose="read a drive", requires=[], destructive=False, time_class="seconds")


def test_read(rack, parameters):
    read(rack, parameters)


def test_again(rack, parameters):
    read(rack, parameters)


def test_given(rack, parameters):
    read(rack, parameters)


def test_written(rack):
    place = rack.lab.places["d02"]
    rack.fill(*place, size_bytes=4096)


def read(rack, parameters):
    drive = parameters["drive"] or next(iter(rack.lab.places))
    if parameters["breaks"]:
        fault = {"kind": "media_error", "lba": 8, "sectors": 8, "mode": "until_rewritten"}
        rack.bench.rackd.add_fault(drive, fault, rack.deadline())
    trial = try_drive(rack.bench, drive, rack.lab.places[drive])
    if trial.seen != "works":
        raise ProductFailed(str(trial))
    print(f"read {drive}")
'''
READ: dict[str, Any] = {"test": "one/drive::read"}
BREAKS = READ | {"with": {"breaks": True}}
AGAIN: dict[str, Any] = {"test": "one/drive::again"}
GIVEN: dict[str, Any] = {"test": "one/drive::given", "with": {"drive": "d01"}}


class Bench:
    """A mock lab that is up, where one failure is enough for a quarantine, and its simulated rack's own control."""

    def __init__(self, rackloop: CommandLine, lab: Path) -> None:
        self._rackloop = rackloop
        self.lab = lab
        mine = rackloop.directory / "mine" / "one"
        mine.mkdir(parents=True)
        (mine / "test_drive.py").write_text(TESTS)
        self._runs = 0

    def run(self, *tests: dict[str, Any], status: int) -> Results:
        """A run of these tests that ends with ``status``."""
        self._runs += 1
        out = f"out{self._runs}"
        plan = self._rackloop.plan(*tests)
        ended = self._rackloop("run", plan, "--testplans", "mine", "--lab", self.lab, "--out", out, "--seed", "7")
        assert ended.status == status, ended
        return Results(self._rackloop.directory / out)

    def foreseen(self, *tests: dict[str, Any]) -> list[dict[str, Any]]:
        """What a dry run says of these tests."""
        plan = self._rackloop.plan(*tests)
        ended = self._rackloop("run", plan, "--testplans", "mine", "--lab", self.lab, "--dry-run", "--json")
        assert ended.status == 0, ended
        found: list[dict[str, Any]] = json.loads(ended.out)["tests"]
        return found

    def __call__(self, *arguments: str, status: int = 0) -> str:
        """What ``rackloop lab VERB LAB ...`` prints; it ends with ``status``."""
        verb, *rest = arguments
        ended = self._rackloop("lab", verb, self.lab, *rest)
        assert ended.status == status, ended
        return ended.out + ended.err

    @contextmanager
    def rackd(self) -> Iterator[RackdControl]:
        """The simulated rack's own control."""
        control = RackdControl(Path(self._rackloop.endpoints(str(self.lab))["control"]), CLOCK)
        try:
            yield control
        finally:
            control.close()


@pytest.fixture
def bench(rackloop: CommandLine) -> Iterator[Bench]:
    lab = rackloop.directory / "bench.yaml"
    described = (data_path("labs") / "mock.yaml").read_text()
    lab.write_text(f"{described}\nquarantine: {{failures: 1, tests: 10}}\n")
    assert rackloop("lab", "up", lab).status == 0
    yield Bench(rackloop, lab)
    assert rackloop("lab", "down", lab).status == 0


def test_a_drive_that_fails_is_found_put_in_quarantine_done_without_and_used_again_once_it_passes(
    bench: Bench,
) -> None:
    results = bench.run(BREAKS, AGAIN, GIVEN, status=1)
    tests = results.tests()
    assert (tests["one/drive::read"]["verdict"], tests["one/drive::read"]["cause"]) == ("fail", "product")
    assert "the retest says: drive d01 (at srv1.p0 d01 could not be read" in tests["one/drive::read"]["reason"]
    assert tests["one/drive::again"]["verdict"] == "pass"
    assert (tests["one/drive::given"]["verdict"], tests["one/drive::given"]["cause"]) == ("blocked", "lab")
    assert "drive d01 is broken since the test one/drive::read" in tests["one/drive::given"]["reason"]
    (found,) = results.of_kind("retest.done")
    assert (found.finding, tuple(found.culprits)) == ("drive", ("drive:d01",))
    assert [out.state for out in results.of_kind("gear.out")] == ["broken", "quarantine"]

    assert "drive d01 is in quarantine since" in bench("status")
    assert "one/drive::read of out1: the retest says: drive d01" in bench("quarantine")
    (told,) = json.loads(bench("quarantine", "--json"))["quarantine"]
    assert (told["gear"], told["state"]) == ("drive:d01", "quarantine")
    results = bench.run(READ, GIVEN, status=3)
    assert results.tests()["one/drive::read"]["verdict"] == "pass"
    assert "drive d01 is in quarantine since" in results.tests()["one/drive::given"]["reason"]

    (given,) = bench.foreseen(GIVEN)
    assert results.tests()["one/drive::given"]["reason"] == given["blocked"][0]

    assert "stays in quarantine" in bench("quarantine", "--retest", "d01", status=3)
    with bench.rackd() as rackd:
        rackd.request("clear_fault", soon(SLOW_S), drive="d01")
    assert "drive d01 is in service again: it passed with d01" in bench("quarantine", "--retest", "d01")
    assert bench.run(GIVEN, status=0).tests()["one/drive::given"]["verdict"] == "pass"


def test_what_somebody_works_on_is_not_used_not_written_not_healed_and_whoever_needs_it_is_told(bench: Bench) -> None:
    assert "by " in bench("maintain", "d01", "--reason", "new firmware")
    bench("maintain", "srv4", "--reason", "memory", "--until", "2126-01-01")
    assert "srv4 is in maintenance since" in bench("status")
    asked: list[dict[str, Any]] = [READ, GIVEN, {"test": "one/drive::again", "with": {"drive": "d07"}}]
    foreseen = bench.foreseen(*asked)
    assert [(len(one["skipped"]), one["blocked"]) for one in foreseen] == [(0, []), (1, []), (1, [])]
    with bench.rackd() as rackd:
        rackd.request("power", soon(SLOW_S), target="server:srv4", on=False)
        rackd.request("power", soon(SLOW_S), target="drive:d01", on=False)
    results = bench.run(*asked, status=0)
    tests = results.tests()
    assert tests["one/drive::read"]["verdict"] == "pass"
    assert tests["one/drive::given"]["verdict"] == "skipped"
    assert tests["one/drive::given"]["reason"] == foreseen[1]["skipped"][0]
    assert tests["one/drive::again"]["verdict"] == "skipped"
    assert "server srv4 is in maintenance since" in tests["one/drive::again"]["reason"]
    assert [out.gear for out in results.of_kind("gear.out")] == ["drive:d01", "server:srv4"]

    bench("maintain", "d02", "--reason", "a look inside")
    (seen,) = bench.run({"test": "one/drive::written"}, status=3).tests().values()
    assert seen["verdict"] == "unknown"
    bench("maintain", "srv4", "--end")
    assert "is not in maintenance" in bench("maintain", "srv4", "--end", status=2)
