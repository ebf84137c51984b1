"""The four disaggregation designs on the mock rack of their shape, in their shortest form."""

from __future__ import annotations

from typing import Any

from tests.e2e.command_line import CommandLine, Results


def entry(name: str, rule_broken: str, **parameters: Any) -> dict[str, Any]:
    return {
        "test": f"disaggregation/{name}",
        "with": parameters,
        "limits": [{"measure": f"{rule_broken}.rule_broken", "quantile": "max", "max": "0"}],
    }


COMPLETE = entry("complete", "complete", ios=12, direct_ios=10, policies=["least_work"])
ELASTIC = entry("elastic", "elastic", day_s=4.0, steps=12, trace="demo")
FAILURE = entry("failure", "failover", repeats=1, policies=["spread"], half=False)
CONFIGURATION = entry("configuration", "configuration", power=["switch"])


def test_no_rule_of_the_four_designs_is_broken_and_the_rack_is_given_back(rackloop: CommandLine) -> None:
    plan = rackloop.plan(COMPLETE, ELASTIC, FAILURE, CONFIGURATION)
    ended = rackloop("run", plan, "--lab", "disaggregation", "--seed", "5", "--out", "out")
    assert ended.status == 0, ended
    results = Results(rackloop.directory / "out")
    rules = {
        measured["labels"]["rule"]: measured["value"]
        for test in results.summary["tests"]
        for measured in test["measurements"]
        if measured["name"].endswith("rule_broken")
    }
    assert set(rules.values()) == {0}
    assert len(rules) == 20
    assert not rackloop.processes()


def test_a_rack_without_expanders_cannot_do_what_needs_them_and_says_why(rackloop: CommandLine) -> None:
    ended = rackloop("run", rackloop.plan(CONFIGURATION), "--lab", "mock", "--out", "out")
    assert ended.status == 3, ended
    (test,) = Results(rackloop.directory / "out").summary["tests"]
    assert (test["verdict"], test["reason"]) == (
        "blocked",
        "lab mock has 1 expanders with scratch drives; this wants 2",
    )
