"""What a run leaves of a schedule: a plan that runs the same test with the same faults."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rackloop.errors import DescriptionError
from rackloop.faults.schedules import RandomSchedule, Schedule
from rackloop.plan import Plan, load_plan
from rackloop.plan._plan_text import plan_yaml
from tests.unit.harness.schedule_cases import schedule, step

TEST_FILE = """
PARAMETERS: dict[str, object] = {"reads": 4, "blocks": [4096], "note": "x", "wait": True, "down_ms": 20.0}
MEASURES = {"storm.wrong": "1", "storm.stall": "s"}


def test_storm(rack, schedule):
    raise AssertionError


def test_calm(rack):
    raise AssertionError
"""
PLAN = """\
plan: nightly
purpose: 'All heals: always.'
provision: {roles: [base_tools], vars: {network_tuning_mtu: 1500}, timeout: 5 min}
tests:
  - test: faults/storm::storm
    requires: [phy.drop]
    with: {reads: 2, blocks: [4 KiB, 8 KiB], note: 'on', wait: false, down_ms: 2.5}
    limits:
      - {measure: storm.wrong, max: 0}
      - {measure: storm.stall, where: {job: reads}, quantile: p99.9, min: 1 us, max: 2 ms, on: {lab_kind: mock}}
    timeout: 90 s
    health: {expect: [media_errors]}
    disturbs: [d20]
    labels: {severity: critical}
    schedule: {duration: 3 s, every: 1 s, random: [{fault: hang, targets: drives, lasts: 1 s}]}
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A testplans folder with one file of tests."""
    (tmp_path / "faults").mkdir()
    (tmp_path / "faults" / "test_storm.py").write_text(TEST_FILE)
    return tmp_path


def load(text: str, root: Path) -> Plan:
    (root / "nightly.yaml").write_text(text, encoding="utf-8")
    return load_plan(root / "nightly.yaml", root)


def refused(text: str, root: Path) -> str:
    with pytest.raises(DescriptionError) as caught:
        load(text, root)
    return str(caught.value)


def test_the_plan_that_is_left_runs_the_same_test_with_the_faults_that_were_played(root: Path) -> None:
    plan = load(PLAN.replace("tests:\n", "servers: [srv1, 'tag:nvme8']\ntests:\n"), root)
    played = schedule(step(0, 1), step(2, 0.5, "d02", "phy_drop", down_s=0.25), seed=3)
    left = load(plan_yaml(plan, plan.tests[0], played, 42, remark="What was played.\nTwice."), root)
    assert (root / "nightly.yaml").read_text().startswith("# What was played.\n# Twice.\nplan: nightly\n")
    assert left == replace(plan, seed=42, tests=(replace(plan.tests[0], schedule=played),))


def test_the_plan_that_is_left_has_its_limits_for_drives_of_a_profile_of_ones_own(root: Path) -> None:
    """A limit names the profile's file; the name alone is of none that is shipped, and the plan could not be read."""
    own = Path("labs/profiles/nvme-ssd.yaml").read_text(encoding="utf-8").replace("profile: nvme-ssd", "profile: mine")
    (root / "mine.yaml").write_text(own, encoding="utf-8")
    plan = load(PLAN.replace("{lab_kind: mock}", "{lab_kind: mock, profile: mine.yaml}"), root)
    (entry,) = plan.tests
    assert entry.limits[1].on == {"lab_kind": "mock", "profile": "mine"}
    (left,) = load(plan_yaml(plan, entry, schedule(step(0, 1)), 42), root).tests
    assert left.limits == entry.limits


def test_an_entry_may_name_the_file_of_its_schedule(root: Path) -> None:
    (root / "storm.yaml").write_text("schedule: breeze\nsteps: [{at: 0 s, lasts: 1 s, fault: hang, target: d01}]\n")
    text = PLAN[: PLAN.index("schedule:")] + "schedule: storm.yaml\n"
    assert load(text, root).tests[0].schedule == replace(schedule(step(0, 1)), name="breeze")
    (root / "storm.yaml").write_text("steps: [{at: 0 s, lasts: 1 s, fault: hong, target: d01}]\n")
    assert f"{root}/storm.yaml:1:38: steps[0].fault: there is no fault called 'hong'" in refused(text, root)


def test_a_schedule_without_a_name_has_its_tests(root: Path) -> None:
    found = load(PLAN, root).tests[0].schedule
    assert isinstance(found, RandomSchedule)
    assert found.name == "storm"


def test_a_test_that_plays_a_schedule_needs_one_and_no_other_takes_one(root: Path) -> None:
    text = PLAN[: PLAN.index("    schedule:")]
    assert "nightly.yaml:5:5: tests[0]: faults/storm::storm plays a schedule of faults; add" in refused(text, root)
    assert "faults/storm::calm plays no schedule; delete this" in refused(
        PLAN.replace("storm::storm", "storm::calm"), root
    )


def test_a_schedule_that_exceeds_its_bound_is_refused_at_its_step(root: Path) -> None:
    steps = "[{at: 0 s, lasts: 1 s, fault: hang, target: d01}, {at: 0.5 s, lasts: 1 s, fault: hang, target: d02}]"
    text = PLAN[: PLAN.index("schedule:")] + f"schedule:\n      steps: {steps}\n"
    assert "16:64: tests[0].schedule.steps[1]: 2 faults would be broken at once" in refused(text, root)


def test_a_plan_whose_test_is_all_of_a_file_plays_it_where_one_function_does(root: Path) -> None:
    found = load(PLAN.replace("storm::storm", "storm"), root).tests[0]
    assert found.function is None
    assert not isinstance(found.schedule, Schedule)
