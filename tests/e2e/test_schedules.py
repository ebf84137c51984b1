"""Schedules by the command line: drawn, shown, played by a run, and shrunk to what still fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from rackloop.faults.schedules import Schedule, read_schedule
from rackloop.plan import load_plan
from rackloop.record import FaultPhase
from tests.e2e.command_line import CommandLine, Results, wait_until

STORM = """\
schedule: storm
duration: 20 s
every: 1 s
most: 2
random:
  - {fault: hang, targets: drives, lasts: [500 ms, 3 s], weight: 3}
  - {fault: phy_drop, targets: ports, lasts: 500 ms}
"""
SCRIPT = """\
most: 2
steps:
  - {at: 0 s, lasts: 3 s, fault: hang, target: d02}
  - {at: 2 s, lasts: 2 s, fault: hang, target: d03}
  - {at: 5 s, lasts: 1 s, fault: hang, target: d01}
  - {at: 7 s, lasts: 1 s, fault: phy_drop, target: srv1.p0}
"""
# It needs no rack: what fails is told by the schedule alone.
FRAGILE = '''
"""A system that loses data when two drives hang at once."""

import pytest

PARAMETERS = {"drives": 2}
MEASURES = {"fragile.lost": "1", "fragile.idle": "1"}
pytestmark = pytest.mark.rackloop(
    purpose="see whether data is lost", requires=[], destructive=False, time_class="seconds"
)


def test_fragile(schedule, parameters, measure):
    hangs = [step for step in schedule.unrolled().steps if step.fault.kind == "hang"]
    most = max((sum(o.at_s <= s.at_s < o.ends_s for o in hangs) for s in hangs), default=0)
    measure("fragile.lost", int(most >= parameters["drives"]))
    measure("fragile.idle", int(not hangs))
'''
PLAN = """\
plan: fragile
purpose: No data is lost.
tests:
  - test: faults/fragile
    limits: [{measure: fragile.lost, max: 0}]
    schedule: storm.yaml
"""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    """A plan with a test that fails in a storm, and its schedule beside it."""
    (tmp_path / "faults").mkdir()
    (tmp_path / "faults" / "test_fragile.py").write_text(FRAGILE)
    (tmp_path / "storm.yaml").write_text(STORM)
    (tmp_path / "fragile.yaml").write_text(PLAN)
    return tmp_path / "fragile.yaml"


def test_the_same_seed_draws_the_same_and_it_is_read_back(rackloop: CommandLine, plan: Path) -> None:
    arguments = ("schedule", "make", plan.parent / "storm.yaml", "--lab", "mock", "--seed", "7")
    first, again = rackloop(*arguments), rackloop(*arguments)
    assert first.out == again.out
    drawn = read_schedule(first.out)
    assert isinstance(drawn, Schedule)
    assert drawn.seed == 7
    assert len(drawn.steps) > 5
    shown = rackloop("schedule", "show", plan.parent / "storm.yaml", "--lab", "mock", "--seed", "7", "--out", "drawn")
    assert all(f"{step.at_s:.3f} s" in shown.out for step in drawn.steps)
    assert "█" in shown.out
    assert (plan.parent / "drawn" / "schedule.png").read_bytes().startswith(b"\x89PNG")
    dry = rackloop("run", plan, "--testplans", plan.parent, "--lab", "mock", "--seed", "7", "--dry-run")
    shown = rackloop("schedule", "show", plan, "--testplans", plan.parent, "--lab", "mock", "--seed", "7")
    foreseen = [line.split() for line in dry.out.splitlines() if " of " in line and " at " in line]
    rows = [line.split() for line in shown.out.splitlines() if line[:4].strip().isdigit()]
    assert [(row[5], row[6], float(row[1])) for row in rows] == [(w[0], w[2], float(w[4])) for w in foreseen]
    assert len(rows) > 5


def test_what_the_lab_cannot_have_is_refused_before_anything_is_touched(rackloop: CommandLine, plan: Path) -> None:
    storm = plan.parent / "storm.yaml"
    storm.write_text("steps: [{at: 0 s, lasts: 1 s, fault: server_crash, target: srv3}]\n")
    told = ("storm.yaml:1:9: step 1", "4 drives (d05, d06, d11, d15) would be broken at once", "raise most:")
    for arguments in (("schedule", "show", storm), ("run", plan, "--testplans", plan.parent)):
        rackloop(*arguments, "--lab", "mock").refused(2, *told)
    storm.write_text("steps: [{at: 0 s, lasts: 1 s, fault: hangs, target: srv1}]\n")
    rackloop("run", plan, "--testplans", plan.parent, "--lab", "mock").refused(
        2, "storm.yaml:1:38: steps[0].fault: there is no fault called 'hangs'; did you mean 'hang'?"
    )


def test_a_failing_run_is_shrunk_to_a_plan_that_fails_with_the_least(rackloop: CommandLine, plan: Path) -> None:
    at = ("--testplans", plan.parent, "--lab", "mock")
    (plan.parent / "storm.yaml").write_text(SCRIPT)
    # Seven runs, each of which would bring the rack up and down.
    assert rackloop("lab", "up", "mock").status == 0
    assert rackloop("run", plan, *at, "--seed", "7", "--out", "results").status == 1
    assert not (plan.parent / "results" / "report").exists()
    (left,) = (plan.parent / "results" / "schedules").iterdir()
    assert f"#   rackloop run THIS_FILE --lab mock --testplans {plan.parent}\n" in left.read_text()
    shrunk = rackloop("schedule", "shrink", "results", *at, "--runs", "5")
    assert shrunk.status == 0, shrunk
    assert "run 2: without any fault: 0 faults" in shrunk.out
    assert shrunk.out.splitlines()[-1].startswith("2 faults after ")
    (entry,) = load_plan(plan.parent / "least.yaml", plan.parent).tests
    assert isinstance(entry.schedule, Schedule)
    assert [step.fault.target for step in entry.schedule.steps] == ["d02", "d03"]
    assert rackloop("run", "least.yaml", *at, "--out", "again").status == 1


def test_a_search_that_is_interrupted_before_anything_failed_says_so_and_writes_nothing(
    rackloop: CommandLine, plan: Path
) -> None:
    (plan.parent / "storm.yaml").write_text(SCRIPT)
    running = rackloop.start("schedule", "shrink", plan, "--testplans", plan.parent, "--lab", "mock")
    wait_until(
        lambda: any("candidate-1.yaml" in command for command in rackloop.processes().values()),
        lambda: f"no run has begun: {rackloop.processes()}",
    )
    running.interrupt()
    ended = running.end()
    assert ended.status == 130, ended
    assert "rackloop: interrupted; the run ends first\n" in ended.err
    assert ended.out.endswith("interrupted before the test was seen to fail: least.yaml is not written\n")
    assert not (rackloop.directory / "least.yaml").exists()


@pytest.mark.nightly
def test_a_candidate_that_fails_otherwise_does_not_count(rackloop: CommandLine, plan: Path) -> None:
    """Without any hang the test fails too, by another measure: that is not what is looked for."""
    plan.write_text(PLAN.replace("max: 0}]", "max: 0}, {measure: fragile.idle, max: 0}]"))
    (plan.parent / "storm.yaml").write_text(SCRIPT)
    at = ("--testplans", plan.parent, "--lab", "mock")
    shrunk = rackloop("schedule", "shrink", plan, *at, "--runs", "6")
    assert shrunk.status == 0, shrunk
    first, second = (line for line in shrunk.out.splitlines() if line.startswith(("run 1:", "run 2:")))
    assert first.endswith("fail: fragile.lost")
    assert second.endswith("fail: fragile.idle, which is another failure")
    assert not shrunk.out.splitlines()[-1].startswith("it fails without any fault")


def test_a_schedule_that_does_not_fail_is_not_shrunk(rackloop: CommandLine, plan: Path) -> None:
    at = ("--testplans", plan.parent, "--lab", "mock")
    plan.write_text(PLAN.replace("    limits", "    with: {drives: 9}\n    limits"))
    rackloop("schedule", "shrink", plan, *at).refused(3, "did not fail 1 of 1 times")


def test_a_storm_on_the_mock_rack_harms_nothing_and_is_left_as_a_plan(rackloop: CommandLine) -> None:
    plan = rackloop.directory / "short.yaml"
    packaged = (Path(__file__).parents[2] / "testplans" / "storm.yaml").read_text()
    short = packaged.replace("    limits:", "    with: {settle_s: 0.3}\n    limits:", 1)
    plan.write_text(short.replace("duration: 20 s", "duration: 3 s"))
    assert plan.read_text().count("duration: 3 s") == 1
    ended = rackloop("run", plan, "--lab", "mock", "--seed", "1", "--out", "results")
    assert ended.status == 0, ended
    phases: list[FaultPhase] = Results(rackloop.directory / "results").of_kind("fault.phase")
    left = load_plan(rackloop.directory / "results" / "schedules" / "faults-storm-storm.yaml")
    played = left.tests[0].schedule
    assert isinstance(played, Schedule)
    for phase in ("commanded", "acknowledged", "healed"):
        assert sum(each.phase == phase for each in phases) == len(played.steps)


@pytest.mark.parametrize(
    ("target", "job", "where"),
    [
        pytest.param("d01", "reads", {"sectors": "2048"}, id="reads", marks=pytest.mark.nightly),
        pytest.param("d02", "writes", {"lba": str((1 << 30) // 512), "sectors": "8192"}, id="writes"),
    ],
)
def test_a_storm_that_leaves_a_wrong_byte_fails(
    rackloop: CommandLine, target: str, job: str, where: dict[str, str]
) -> None:
    """A fault that may reach the drive is no excuse for other bytes than were written."""
    corrupt = {"at": "0 s", "lasts": "2 s", "fault": "corrupt", "target": target, "with": where}
    plan = rackloop.plan(
        {
            "test": "faults/storm",
            "with": {"settle_s": "0.2", "size": "4 MiB", "iodepth": "1"},
            "limits": [{"measure": "storm.wrong", "quantile": "max", "max": "0"}],
            "schedule": {"steps": [corrupt]},
        }
    )
    ended = rackloop("run", plan, "--lab", "mock", "--seed", "1", "--out", "results")
    assert ended.status == 1, ended
    assert (
        f"storm.wrong{{server=srv1, job={job}}}"
        in Results(rackloop.directory / "results").tests()["faults/storm::storm"]["reason"]
    )
