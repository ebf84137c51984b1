"""What happens to a rack's health during a test: explained by the test, or a failure with its cause and evidence."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rackloop.record import Judgement
from tests.e2e.command_line import CommandLine, Results

TESTS = '''
"""What a test does, and what somebody else does meanwhile."""

import subprocess

import pytest

from rackloop.errors import NotSupported

pytestmark = pytest.mark.rackloop(purpose="see what moves", requires=[], destructive=False, time_class="seconds")


def read_badly(rack, drive, server, port):
    """Have the drive fail a read that nobody journalled."""
    fault = {"kind": "media_error", "lba": 0, "sectors": 8, "mode": "until_rewritten", "on": "read"}
    given = rack.bench.rackd.request("fault", rack.deadline(), drive=drive, fault=fault)
    uri = rack.device(server, port).probe_target()
    read = subprocess.run(["qemu-io", "-r", "-f", "raw", "-c", "read 0 4k", uri], capture_output=True, text=True)
    assert "Input/output error" in read.stdout + read.stderr
    rack.bench.rackd.request("clear_fault", rack.deadline(), fault_id=given["fault_id"])


def test_nothing(rack):
    pass


def test_own_acts(rack):
    rack.phy.drop([1], 0.02, rack.deadline(), request_id=rack.new_request_id())
    rack.attach("srv2", {"p0": "d04", "p1": "d03"})


def test_own_power(rack):
    rack.power("server:srv3").turn_off(rack.deadline(60.0))
    with pytest.raises(NotSupported, match="nothing in the rack mock switches the power of server:srv9"):
        rack.power("server:srv9")


def test_media_error(rack):
    read_badly(rack, "d09", "srv1", "p2")


def test_declared_media_error(rack):
    read_badly(rack, "d10", "srv2", "p2")


def test_dropped_by_another(rack):
    rack.bench.rackd.request("phy_drop", rack.deadline(), ports=[1], down_ms=20.0)


def test_fails(rack):
    rack.phy.drop([5], 0.02, rack.deadline(), request_id=rack.new_request_id())
    power = rack.bench.equipment.power["server:srv1"]
    power.turn_off(rack.deadline())
    power.turn_on(rack.deadline())
    rack.bench.host("srv1").reconnect(rack.deadline(60.0))
    assert not "healthy"
'''
CRASH = '''
"""A server that is gone when a test has ended."""

import pytest

from rackloop.lab import LabState
from rackloop_labs.labd_control import LabdControl

pytestmark = pytest.mark.rackloop(purpose="see who is left", requires=[], destructive=False, time_class="seconds")


PARAMETERS = {"server": ""}


def test_crashes(rack):
    assert rack.bench.host("srv4").name == "srv4"
    LabdControl(LabState.of("mock")).crash("srv4", rack.deadline())


def test_after(rack):
    pass


def test_needy(rack):
    pass


def needs(lab, parameters):
    return [parameters["server"]] if parameters["server"] else []
'''
ENTRIES: dict[str, dict[str, Any]] = {
    "nothing": {},
    "own_acts": {},
    "own_power": {},
    "media_error": {},
    "declared_media_error": {"health": {"expect": ["media_errors", "kernel.medium_error"]}},
    "dropped_by_another": {},
    "fails": {},
}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Results]:
    """What one run of all of them leaves."""
    with tempfile.TemporaryDirectory(prefix="rl-", dir="/tmp") as state_home:
        command_line = CommandLine(Path(state_home), tmp_path_factory.mktemp("health"))
        command_line.renders_reports = True
        mine = command_line.directory / "mine" / "acts"
        mine.mkdir(parents=True)
        (mine / "test_behind.py").write_text(TESTS)
        plan = command_line.plan(*({"test": f"acts/behind::{name}", **more} for name, more in ENTRIES.items()))
        ended = command_line("run", plan, "--testplans", "mine", "--lab", "mock", "--out", "out", "--seed", "7")
        command_line.close()
        assert ended.status == 1, ended
        yield Results(command_line.directory / "out")


def verdict(results: Results, test: str) -> tuple[str, str | None]:
    """The verdict of a test, and its cause."""
    found = results.tests()[f"acts/behind::{test}"]
    return found["verdict"], found["cause"]


def reason(results: Results, test: str) -> str:
    """Why a test did not pass."""
    return str(results.tests()[f"acts/behind::{test}"]["reason"])


def changes(results: Results, test: str, judgement: Judgement) -> set[tuple[str, str]]:
    """What changed around a test, and of whom."""
    (found,) = [event for event in results.of_kind("health.compared") if event.test == f"acts/behind::{test}"]
    assert not found.unread
    for path in (found.before, found.after):
        assert {"drives", "servers"} <= json.loads((results.directory / path).read_text()).keys()
    return {(change.subject, change.what) for change in found.changes if change.judgement is judgement}


def test_a_test_that_does_nothing_finds_nothing_changed(results: Results) -> None:
    assert verdict(results, "nothing") == ("pass", None)
    assert not changes(results, "nothing", Judgement.UNEXPECTED) | changes(results, "nothing", Judgement.EXPECTED)


def test_what_a_test_does_itself_is_expected(results: Results) -> None:
    assert verdict(results, "own_acts") == ("pass", None)
    expected = changes(results, "own_acts", Judgement.EXPECTED)
    assert {("d01", "phy_resets"), ("d03", "phy_resets"), ("srv1 p0", "kernel.link_lost")} <= expected
    assert {subject.split()[0] for subject, _ in expected} == {"d01", "d03", "d04", "srv1", "srv2"}


def test_a_server_whose_power_the_test_cuts_comes_back_before_it_is_looked_at(results: Results) -> None:
    assert verdict(results, "own_power") == ("pass", None)
    expected = changes(results, "own_power", Judgement.EXPECTED)
    assert ("srv3", "boot_id") in expected
    assert {subject.split()[0] for subject, _ in expected} <= {"srv3", "d05", "d06", "d11", "d15"}


def test_a_media_error_that_nobody_ordered_is_the_products_failure(results: Results) -> None:
    assert verdict(results, "media_error") == ("fail", "product")
    assert "d09: media_errors went from 0 to 1: data could not be read back" in reason(results, "media_error")
    assert {("d09", "media_errors"), ("srv1 p2", "kernel.medium_error")} == changes(
        results, "media_error", Judgement.UNEXPECTED
    )


def test_what_the_plan_declares_is_expected(results: Results) -> None:
    assert verdict(results, "declared_media_error") == ("pass", None)
    assert ("d10", "media_errors") in changes(results, "declared_media_error", Judgement.EXPECTED)


def test_a_link_that_somebody_else_drops_is_the_labs_failure(results: Results) -> None:
    assert verdict(results, "dropped_by_another") == ("fail", "lab")
    unexpected = changes(results, "dropped_by_another", Judgement.UNEXPECTED)
    assert {("d01", "phy_resets"), ("srv1 p0", "kernel.link_lost")} <= unexpected
    assert {subject.split()[0] for subject, _ in unexpected} == {"d01", "srv1"}


def test_a_test_that_fails_on_a_server_that_restarted_says_nothing_of_the_product(results: Results) -> None:
    assert verdict(results, "fails") == ("unknown", "lab")
    assert ("srv1", "boot_id") in changes(results, "fails", Judgement.UNEXPECTED)
    assert ("d03", "phy_resets") in changes(results, "fails", Judgement.EXPECTED)


def test_evidence_is_put_on_one_time_base(results: Results) -> None:
    """The drop is in the switch's exchanges and srv2's kernel log, the power cycle in srv1's event log."""
    gathered = {event.test.rpartition("::")[2]: event for event in results.of_kind("evidence.gathered")}
    assert gathered.keys() == {"media_error", "dropped_by_another", "fails"}
    evidence = gathered["fails"]
    assert not evidence.unread
    assert {"switch", "harness", "srv1 SEL", "srv1 kernel", "srv2 kernel"} <= evidence.lanes.keys()

    attached = [event for event in results.of_kind("attached") if event.test == evidence.test]
    (path,) = [event.path for event in attached if event.name == "Timeline of evidence"]
    lines = (results.directory / path).read_text().splitlines()
    assert "simulated" in lines[0]
    told = [line for line in lines if not line.startswith("#")]
    stamps = [float(line.split()[0]) for line in told]
    assert stamps == sorted(stamps)
    # The link came up again after the drop was commanded, as far as the clocks can tell.
    dropped, up = (next(line.split() for line in told if what in line) for what in (":PHY:DROP", "SATA link up"))
    assert float(dropped[0]) - float(dropped[1][1:]) <= float(up[0]) + float(up[1][1:])
    assert any("srv1 SEL" in line and "ower" in line for line in told)


def test_reports_show_the_health_of_each_test(results: Results) -> None:
    pages = [json.loads(path.read_text()) for path in (results.directory / "allure-results").glob("*-result.json")]
    shown = {page["name"]: page for page in pages}
    assert len(shown) == len(ENTRIES)
    assert all("Health of the rack, before and after" in page["descriptionHtml"] for page in shown.values())
    failed = shown["Behind: fails"]
    assert {"Timeline of evidence", "Evidence: acts/behind::fails (simulated)"} <= {
        attachment["name"] for attachment in failed["attachments"]
    }


def test_a_server_that_is_gone_blocks_what_needs_it_and_nothing_else(rackloop: CommandLine) -> None:
    mine = rackloop.directory / "mine" / "acts"
    mine.mkdir(parents=True)
    (mine / "test_gone.py").write_text(CRASH)
    plan = rackloop.plan(
        {"test": "acts/gone::crashes"},
        {"test": "acts/gone::after"},
        {"test": "acts/gone::needy", "with": {"server": "srv4"}},
    )
    ended = rackloop("run", plan, "--testplans", "mine", "--lab", "mock", "--out", "out")
    ended.refused(3)
    tests = Results(rackloop.directory / "out").tests()
    assert tests["acts/gone::crashes"]["cause"] == "lab"
    assert tests["acts/gone::after"]["verdict"] == "pass"
    needy = tests["acts/gone::needy"]
    assert (needy["verdict"], needy["cause"]) == ("blocked", "lab")
    assert "server srv4 is lost since the test acts/gone::crashes" in needy["reason"]
    assert "rackloop power mock cycle srv4" in needy["reason"]
