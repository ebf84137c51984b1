"""A lab description and a plan that an earlier version shipped: both are still read, and mean the same."""

from __future__ import annotations

from pathlib import Path

from rackloop.data import data_path
from rackloop.lab import load_lab
from rackloop.plan import load_plan

BEFORE = Path(__file__).parent / "data" / "before"


def test_a_lab_description_is_still_read() -> None:
    lab = load_lab(str(BEFORE / "lab.yaml"))
    assert (lab.name, len(lab.servers), len(lab.drives)) == ("example-rack", 2, 4)


def test_a_plan_is_still_read() -> None:
    plan = load_plan(str(BEFORE / "plan.yaml"), data_path("testplans"))
    assert plan.plan == "smoke"
    assert [entry.file for entry in plan.tests][:2] == ["fabric/remap_latency", "fabric/switched_throughput"]
    assert any(limit.measure == "remap.latency" for entry in plan.tests for limit in entry.limits)
