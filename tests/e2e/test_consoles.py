"""Serial consoles during runs: captured, searched, explained; and shown by the command line."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.command_line import CommandLine, Results

TESTS = '''
"""Servers that panic, with and without the test's doing."""

import pytest

from rackloop.faults import FaultSpec
from rackloop.lab import LabState
from rackloop_labs.labd_control import LabdControl

pytestmark = pytest.mark.rackloop(purpose="see panics", requires=[], destructive=False, time_class="seconds")


def test_injected(rack):
    with rack.faults.injected(FaultSpec("server_crash", "srv2")):
        pass


def test_by_another(rack):
    labd = LabdControl(LabState.of(rack.lab.name))
    labd.crash("srv4", rack.deadline(60.0))
    labd.boot("srv4", rack.deadline(60.0))


def test_quiet(rack):
    assert rack.power("server:srv1").is_on(rack.deadline(60.0))
'''
NAMES = ("injected", "by_another", "quiet")


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[CommandLine, Results]]:
    """A command line, and what one run of all of them leaves."""
    with tempfile.TemporaryDirectory(prefix="rl-", dir="/tmp") as state_home:
        command_line = CommandLine(Path(state_home), tmp_path_factory.mktemp("consoles"))
        mine = command_line.directory / "mine" / "consoles"
        mine.mkdir(parents=True)
        (mine / "test_panics.py").write_text(TESTS)
        plan = command_line.plan(*({"test": f"consoles/panics::{name}"} for name in NAMES))
        ended = command_line("run", plan, "--testplans", "mine", "--lab", "mock", "--out", "out", "--no-report")
        assert ended.status == 3, ended
        yield command_line, Results(command_line.directory / "out")
        command_line.close()


@pytest.fixture
def results(ran: tuple[CommandLine, Results]) -> Results:
    return ran[1]


def of_test(results: Results, name: str) -> dict[str, Any]:
    return results.tests()[f"consoles/panics::{name}"]


def of_console(results: Results, name: str) -> list[Any]:
    compared = [event for event in results.of_kind("health.compared") if event.test.endswith(f"::{name}")]
    return [change for event in compared for change in event.changes if change.subject.endswith(" console")]


def test_a_panic_that_the_test_injected_is_explained(results: Results) -> None:
    assert of_test(results, "injected")["verdict"] == "pass"
    (panic,) = of_console(results, "injected")
    assert (panic.subject, panic.what, panic.why) == ("srv2 console", "kernel.panic", "the test broke it")


def test_a_panic_that_it_did_not_inject_is_no_pass(results: Results) -> None:
    found = of_test(results, "by_another")
    assert (found["verdict"], found["cause"]) == ("fail", "lab")
    assert "srv4 console: 1 kernel message of kernel.panic" in found["reason"]
    assert not of_console(results, "quiet")


def test_every_console_has_a_file_with_stamps(results: Results) -> None:
    for server in ("srv1", "srv2", "srv3", "srv4"):
        title, _, first, *_ = (results.directory / "console" / f"{server}.log").read_text().splitlines()
        assert title.startswith(f"# Console of {server}, lab mock (simulated): ")
        assert " ±" in first
        assert "--- listening: " in first
    said = (results.directory / "console" / "srv4.log").read_text()
    assert said.index("Kernel panic") < said.index("Linux version") < said.index("srv4 login:")


def test_what_it_said_is_evidence_and_attached(results: Results) -> None:
    attached = {(event.test.rpartition("::")[2], event.name): event.path for event in results.of_kind("attached")}
    assert "Kernel panic" in (results.directory / attached["by_another", "Console of srv4"]).read_text()
    # The crash that a test made is shown with it, too.
    assert "Kernel panic" in (results.directory / attached["injected", "Console of srv2"]).read_text()
    timeline = (results.directory / attached["by_another", "Timeline of evidence"]).read_text()
    assert "# srv4 console: on the run's clock" in timeline
    (panic,) = [line for line in timeline.splitlines() if "] Kernel panic" in line]
    assert "srv4 console" in panic
    (event,) = results.of_kind("evidence.gathered")
    assert event.lanes["srv4 console"]


def test_the_command_says_who_holds_the_server_and_reads_only(ran: tuple[CommandLine, Results]) -> None:
    command_line, _ = ran
    assert command_line("lab", "up", "mock").status == 0
    try:
        ended = command_line("console", "mock", "srv2", "--for", "1s", "--log", "srv2.log")
        assert (ended.status, ended.out) == (0, ""), ended
        how = "to type, lease it (`rackloop lab lease mock --servers srv2`)"
        assert f"srv2 is not leased; reading only: {how}" in ended.err
        assert "listening: ser2net 127.0.0.1:" in (command_line.directory / "srv2.log").read_text()
        assert command_line("lab", "lease", "mock", "--servers", "srv2", "--for", "5min").status == 0
        ended = command_line("console", "mock", "srv2", "--for", "1s")
        assert "srv2 held by" in ended.err
        assert "reading only" not in ended.err
        silent = command_line("console", "mock", "srv3", "--once", "--for", "1s")
        silent.refused(3, "the console of srv3 said nothing within 1 s")
        command_line("console", "mock", "srv7").refused(2, "no server of mock is named 'srv7'")
        command_line("console", "mock", "srv1", "--for", "never").refused(2, "expected a time such as 90s or 5min")
        command_line("console", "mock-direct", "node1").refused(2, "describes no console of node1")
        command_line("console", "mock", "srv1", "--log", "/proc/no/such").refused(2, "--log /proc/no/such")
    finally:
        command_line("lab", "down", "mock")
    command_line("console", "mock", "srv1").refused(3, "lab mock is not up")
