"""The limits of the smoke plan hold the simulated drives to their models: slower ones are found, and blamed."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.demo_verdicts import ONLINE_MS, SLOWER, SPREAD, slowed
from rackloop.native import BIN_VARIABLE
from rackloop.plan import load_plan
from tests.e2e.command_line import CommandLine, Results
from tests.meta.tree import ROOT

PLANS = ROOT / "testplans"


def test_the_law_of_each_stack_is_within_its_limit_and_that_of_a_slower_model_is_not() -> None:
    remaps = load_plan(PLANS / "smoke.yaml", PLANS).tests[0]
    limits = {limit.where["stack"]: limit.maximum for limit in remaps.limits if limit.measure == "remap.law"}
    assert limits.keys() == ONLINE_MS.keys()
    for stack, online_ms in ONLINE_MS.items():
        most_ms = (limits[stack] or 0) * 1e3
        assert online_ms * (1 + SPREAD) < most_ms < online_ms * SLOWER * (1 - SPREAD), stack


@pytest.mark.nightly
def test_slower_models_are_the_products_failure(rackloop: CommandLine, tmp_path: Path) -> None:
    environment = {BIN_VARIABLE: str(slowed(tmp_path / "bin"))}
    ended = rackloop(
        "run", "smoke", "--lab", "mock", "--seed", "7", "--out", "out", "-k", "remap_latency", **environment
    )
    assert ended.status == 1, ended
    test = Results(rackloop.directory / "out").tests()["fabric/remap_latency::remap_latency"]
    assert (test["verdict"], test["cause"]) == ("fail", "product")
    laws = {one["labels"]["stack"]: one["verdict"] for one in test["measurements"] if one["name"] == "remap.law"}
    assert laws == dict.fromkeys(ONLINE_MS, "fail")
