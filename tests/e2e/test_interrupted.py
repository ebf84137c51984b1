"""Whatever ends a run, the rack gets its baseline back and the record says what happened."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from rackloop.lab import LabState, load_lab
from rackloop.safety.store import open_store
from rackloop.safety.undo import Journal
from rackloop.seed import stream
from tests.deadlines import CLOCK
from tests.e2e.command_line import CommandLine, Results, Running, wait_until
from tests.e2e.entries import ENDLESS, REMAP, UNDISTURBED

LAB = load_lab("mock")


def standing(rackloop: CommandLine) -> int:
    """How many acts the journal says may be left to undo."""
    with closing(Journal(open_store(LabState.of("mock", root=rackloop.state_home).store, CLOCK))) as journal:
        return len(journal.standing("mock"))


def drives_behind_ports(rackloop: CommandLine) -> dict[str, dict[str, str]]:
    """What every server port sees now, as rackd has it."""
    servers = rackloop.endpoints()["servers"]
    return {
        name: {port: seen["drive"] for port, seen in server["ports"].items() if seen["drive"]}
        for name, server in servers.items()
    }


STOPS = [
    pytest.param(Running.interrupt, id="INT"),
    pytest.param(lambda running: running.process.terminate(), id="TERM", marks=pytest.mark.nightly),
]
MOMENTS = [
    pytest.param(stream(11, "moment", str(time)).randrange(20, 80), marks=[pytest.mark.nightly] * (time > 0))
    for time in range(4)
]


def started(
    rackloop: CommandLine, *arguments: str, after: int = 20, prefix: Sequence[str] = ()
) -> tuple[Running, Results]:
    """An endless run, under the program ``prefix`` where one is given, that has done ``after`` acts to its rack."""
    plan = rackloop.plan(ENDLESS, REMAP)
    running = rackloop.start("run", plan, "--lab", "mock", "--out", "out", "--seed", "5", *arguments, prefix=prefix)
    results = Results(rackloop.directory / "out")
    results.wait_for("act.announced", after)
    return running, results


@pytest.mark.parametrize("stop", STOPS)
def test_an_interrupted_run_heals_and_reports(rackloop: CommandLine, stop: Callable[[Running], None]) -> None:
    rackloop.renders_reports = True
    assert rackloop("lab", "up", "mock").status == 0
    running, results = started(rackloop)
    stop(running)
    ended = running.end()
    assert ended.status == 130, ended
    assert "Traceback" not in ended.err, ended
    assert standing(rackloop) == 0
    assert drives_behind_ports(rackloop) == LAB.baseline
    (identity,) = results.summary["tests"]
    assert (results.summary["verdict"], identity["verdict"], identity["cause"]) == ("unknown", "unknown", "harness")
    assert "the run was interrupted" in identity["reason"]
    assert results.of_kind("run.finished")[0].interrupted
    assert (results.directory / "report" / "index.html").exists()


@pytest.mark.parametrize("stop", STOPS)
def test_interrupted_workers_leave_nothing(rackloop: CommandLine, stop: Callable[[Running], None]) -> None:
    running, results = started(rackloop, "-n", "2")
    stop(running)
    ended = running.end()
    assert ended.status == 130, ended
    rackloop.wait_until_deserted()
    assert results.of_kind("run.finished")[0].interrupted
    assert results.tests()["fabric/identity::identity"]["verdict"] == "unknown"
    said = ended.out + ended.err + (results.directory / "events.jsonl").read_text()
    assert "did not end in time" not in said


@pytest.mark.parametrize("moment", ["pytest_configure", "pytest_sessionstart"])
def test_a_run_that_is_interrupted_before_it_does_anything_leaves_nothing(rackloop: CommandLine, moment: str) -> None:
    (rackloop.directory / "stop_at.py").write_text(
        "import signal\n\nimport pytest\n\n\n@pytest.hookimpl(trylast=True)\n"
        f"def {moment}():\n    signal.raise_signal(signal.SIGINT)\n"
    )
    path = {"PYTHONPATH": str(rackloop.directory), "PYTEST_ADDOPTS": "-p stop_at"}
    ended = rackloop("run", rackloop.plan(REMAP), "--lab", "mock", "--out", "below/out", **path)
    assert ended.status == 130, ended
    assert "interrupted before anything was done" in ended.out + ended.err
    assert not (rackloop.directory / "below").exists()


def test_another_interrupt_while_python_ends_changes_nothing(rackloop: CommandLine, tmp_path: Path) -> None:
    late = """
import atexit, os, signal, sys

def interrupt():
    os.kill(os.getpid(), signal.SIGINT)
    return len(sys.orig_argv)

if sys.orig_argv[1:3] == ["-m", "rackloop_cli.main"] and "run" in sys.orig_argv:
    atexit.register(interrupt)
"""
    (tmp_path / "sitecustomize.py").write_text(late)
    running, _ = started(rackloop, after=1, prefix=("env", f"PYTHONPATH={tmp_path}"))
    running.interrupt()
    ended = running.end()
    assert ended.status == 130, ended
    assert "Traceback" not in ended.err, ended


@pytest.mark.parametrize("after", MOMENTS)
def test_a_killed_run_is_healed_from_outside(rackloop: CommandLine, after: int) -> None:
    assert rackloop("lab", "up", "mock").status == 0
    running, results = started(rackloop, after=after)
    running.kill()
    assert standing(rackloop) > 0

    reported = rackloop("report", "out")
    assert reported.status == 0, reported
    assert "unknown" in reported.out
    assert results.summary["verdict"] == "unknown"
    assert not results.of_kind("run.finished")

    healed = rackloop("heal", "mock")
    assert healed.status == 0, healed
    assert "the baseline stands and was read back" in healed.out
    assert standing(rackloop) == 0
    assert drives_behind_ports(rackloop) == LAB.baseline
    assert "0 acts undone, 0 other ports" in rackloop("heal", "mock").out


def test_the_next_run_heals_first(rackloop: CommandLine) -> None:
    assert rackloop("lab", "up", "mock").status == 0
    started(rackloop)[0].kill()
    ended = rackloop("run", rackloop.plan(REMAP), "--lab", "mock", "--out", "next")
    assert ended.status == 0, ended
    assert standing(rackloop) == 0


def test_a_run_says_what_it_healed_before_its_first_test(rackloop: CommandLine) -> None:
    assert rackloop("lab", "up", "mock").status == 0
    assert rackloop("power", "mock", "off", "srv1").status == 0
    assert rackloop("fabric", "mock", "unmap", "srv2.p0").status == 0
    ended = rackloop("run", rackloop.plan(REMAP), "--lab", "mock", "--out", "next")
    assert ended.status == 0, ended
    results = Results(rackloop.directory / "next")
    (event,) = results.of_kind("rack.healed")
    assert sorted(event.done) == [
        "undone: fabric apply switch (by hand)",
        "undone: power turn_off server:srv1 (by hand)",
    ]
    assert results.summary["healed"] == event.done
    assert f"\nhealed before the first test: {'; '.join(event.done)}\n" in ended.out
    again = rackloop("run", rackloop.plan(REMAP), "--lab", "mock", "--out", "again")
    assert (again.status, "\nhealed" in again.out) == (0, False), again


def test_a_killed_lab_takes_its_rack_with_it(rackloop: CommandLine) -> None:
    assert rackloop("lab", "up", "mock").status == 0
    pid = rackloop.endpoints()["pid"]
    assert any("rackd " in command for command in rackloop.processes().values())
    os.kill(pid, signal.SIGKILL)
    rackloop.wait_until_deserted()
    assert rackloop("lab", "status", "mock").status == 3
    again = rackloop("lab", "up", "mock")
    assert again.status == 0, again
    assert rackloop.endpoints()["pid"] != pid


def test_a_killed_run_takes_the_lab_it_brought_up(rackloop: CommandLine) -> None:
    running, _ = started(rackloop)
    assert len(rackloop.processes()) > 1
    running.kill()
    rackloop.wait_until_deserted()


@pytest.mark.nightly
def test_a_lab_that_dies_under_a_run_is_the_labs_fault(rackloop: CommandLine) -> None:
    assert rackloop("lab", "up", "mock").status == 0
    pid = rackloop.endpoints()["pid"]
    running, results = started(rackloop)
    os.kill(pid, signal.SIGKILL)
    ended = running.end()
    assert ended.status == 3, ended
    assert "Traceback" not in ended.err, ended
    found = results.tests()
    assert found["fabric/identity::identity"]["verdict"] == "unknown"
    assert found["fabric/identity::identity"]["cause"] == "lab"
    assert found["fabric/remap_latency::remap_latency"]["verdict"] == "blocked"
    # What went first is what is found first: the switch, or every server.
    reason = found["fabric/remap_latency::remap_latency"]["reason"]
    assert "no switch there" in reason or "nothing of lab mock is left: server srv1 is lost" in reason


def test_a_rack_whose_drives_go_away_in_the_middle(rackloop: CommandLine) -> None:
    """rackd alone dies, and with it every NBD connection of fio and rackprobe."""
    running = rackloop.start(
        "run",
        rackloop.plan(UNDISTURBED | {"with": {"remaps": 1_000_000, "size": "4 MiB"}}),
        "--lab",
        "mock",
        "--out",
        "out",
    )
    results = Results(rackloop.directory / "out")
    results.wait_for("act.announced", 3)
    (rackd,) = [pid for pid, command in rackloop.processes().items() if "rackd --config" in command]
    os.kill(rackd, signal.SIGKILL)
    ended = running.end()
    assert ended.status == 3, ended
    assert "Traceback" not in ended.err, ended
    (test,) = results.summary["tests"]
    assert test["verdict"] == "unknown"
    assert test["cause"] in {"lab", "harness"}
    rackloop.wait_until_deserted()


WAITING = """
import os, pytest
from pathlib import Path
PARAMETERS = {"gate": ""}
MEASURES = {}
pytestmark = pytest.mark.rackloop(purpose="wait", requires=[], destructive=False, time_class="seconds")
def test_wait(parameters):
    gate = Path(parameters["gate"])
    with gate.with_name("pids").open("a") as pids:
        print(os.getpid(), file=pids)
    with gate.open("rb", buffering=0) as waiting:
        waiting.read(1)
"""


def test_a_worker_that_dies_is_said(rackloop: CommandLine) -> None:
    gate, pids = rackloop.directory / "gate", rackloop.directory / "pids"
    os.mkfifo(gate)
    own = rackloop.directory / "mine" / "a"
    own.mkdir(parents=True)
    (own / "test_wait.py").write_text(WAITING)
    plan = rackloop.plan({"test": "a/wait", "with": {"gate": str(gate)}, "repeats": 2})
    running = rackloop.start("run", plan, "--testplans", "mine", "--lab", "mock", "--out", "out", "-n", "2")
    wait_until(lambda: pids.exists() and len(pids.read_text().split()) == 2, lambda: "the tests did not begin")
    os.kill(int(pids.read_text().split()[0]), signal.SIGKILL)
    # Kept open until the other, which may not have come to it yet, has read its byte and the run is over.
    with gate.open("r+b", buffering=0) as held:
        held.write(b"x")
        ended = running.end()
    assert ended.status == 3, ended
    found = {test["verdict"]: test for test in Results(rackloop.directory / "out").summary["tests"]}
    assert set(found) == {"pass", "unknown"}
    assert found["unknown"]["cause"] == "harness"
    assert "ended before the test did" in found["unknown"]["reason"]
