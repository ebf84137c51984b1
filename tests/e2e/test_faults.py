"""A plan whose tests break their rack: the record says when, what noticed, and that health explains it."""

from __future__ import annotations

import pytest

from rackloop.record import FaultPhase, HealthCompared
from tests.e2e.command_line import CommandLine, Results

BREAKING = """
import pytest
from rackloop.faults import FaultSpec

PARAMETERS = {"kind": "", "target": ""}
MEASURES = {}
pytestmark = pytest.mark.rackloop(
    purpose="break a part of the rack under reads", requires=[], destructive=True, time_class="seconds"
)

def test_broken(rack, parameters):
    spec = FaultSpec(parameters["kind"], parameters["target"])
    with rack.watching({"srv1": "p0"}) as reads:
        wait(rack, 0.25)
        with rack.faults.injected(spec) as injection:
            assert injection.radius.may_touch(server="srv1", port="p0")
            # Far longer than a read that this machine held up beside it.
            wait(rack, 4.0 if spec.kind == "hang" else 0.4)
        wait(rack, 0.4)
    assert reads.results["srv1"].wrong == 0

def test_left_standing(rack, parameters):
    rack.faults.begin(FaultSpec(parameters["kind"], parameters["target"]))

def test_not_offered(rack, parameters):
    rack.faults.begin(FaultSpec("device_off", "d01"))

def test_refused(rack, parameters):
    rack.faults.begin(FaultSpec("hang", "d20"))

def wait(rack, seconds):
    rack.clock.sleep_until_ns(rack.clock.now_ns() + round(seconds * 1e9))
"""
SEEN_BY = {("phy_drop", "srv1.p0"): "rackd", ("media_error", "d01"): "rackd", ("hang", "d01"): "rackprobe"}


def entry(function: str, kind: str = "fail_slow", target: str = "d01") -> dict[str, object]:
    return {"test": f"a/break::test_{function}", "with": {"kind": kind, "target": target}}


@pytest.fixture
def results(rackloop: CommandLine) -> Results:
    rackloop.renders_reports = True
    tests = rackloop.directory / "mine" / "a"
    tests.mkdir(parents=True)
    (tests / "test_break.py").write_text(BREAKING)
    broken = [entry("broken", *fault) for fault in SEEN_BY]
    plan = rackloop.plan(*broken, entry("left_standing"), entry("not_offered"), entry("refused"))
    ended = rackloop("run", plan, "--testplans", "mine", "--lab", "mock", "--out", "out", "--seed", "3")
    assert ended.status in {0, 1, 3}, ended
    return Results(rackloop.directory / "out")


def test_a_plan_breaks_its_rack_and_the_record_says_how_that_went(results: Results) -> None:
    verdicts = {name.partition("::")[2]: test["verdict"] for name, test in results.tests().items()}
    assert [verdict for name, verdict in verdicts.items() if name.startswith("broken")] == ["pass"] * 3
    assert verdicts["left_standing"] == "pass"
    assert verdicts["not_offered"] == "blocked"
    assert verdicts["refused"] != "pass"

    phases: list[FaultPhase] = results.of_kind("fault.phase")
    for (kind, target), seen_by in SEEN_BY.items():
        moments = {phase.phase: phase for phase in phases if (phase.fault_kind, phase.target) == (kind, target)}
        assert moments["commanded"].at_ns <= moments["acknowledged"].at_ns < moments["healed"].at_ns, kind
        effect = moments["effect"]
        assert effect.clock == seen_by
        assert moments["commanded"].at_ns <= effect.at_ns + effect.error_ns
        assert effect.at_ns <= moments["healed"].at_ns
    left = [phase.phase for phase in phases if phase.fault_kind == "fail_slow"]
    assert left == ["commanded", "acknowledged", "healed"]
    assert not any(phase.target == "d20" for phase in phases)

    compared: list[HealthCompared] = results.of_kind("health.compared")
    changes = [change for each in compared for change in each.changes]
    assert any(change.why == "the test broke it" for change in changes)
    shown = [path.read_text() for path in (results.directory / "allure-results").glob("*-result.json")]
    said = ("What was broken on purpose (1 fault)", "Timeline of faults and I/O")
    assert any(all(text in result for text in said) for result in shown)
