"""A rack where a drive of the baseline has to stay: the designs run, and take neither link nor power from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from rackloop.lab import load_lab
from tests.e2e.command_line import CommandLine, Ended, Results


def rack_with(rackloop: CommandLine, *servers: str) -> Path:
    """The description of the rack of the designs, where each of these servers has a drive that is not scratch."""
    document = yaml.safe_load(load_lab("disaggregation").source.read_text())
    document["name"] = "kept"
    for number, server in enumerate(document["servers"].values(), start=1):
        server["ports"]["p4"] = 24 + number
    for number, server in enumerate(servers, start=1):
        drive = {"profile": "sata-ssd", "serial": f"RD00005{number}", "wwn": f"5000c500d000005{number}"}
        document["drives"][f"k{number}"] = {**drive, "size": "4 GiB", "port": 130 + number, "scratch": False}
        document["baseline"][server]["p4"] = f"k{number}"
    return rackloop.write("kept.yaml", document)


def entry(test: str, limit: str, **parameters: Any) -> dict[str, Any]:
    return {"test": test, "with": parameters, "limits": [{"measure": limit, "quantile": "max", "max": "0"}]}


ELASTIC = entry("disaggregation/elastic", "elastic.rule_broken", day_s=4.0, steps=12, trace="demo")
FAILURE = entry("disaggregation/failure", "failover.rule_broken", repeats=2, policies=["spread"], half=True)
REBUILD = entry("erasure/rebuild", "rebuild.wrong", objects=12, policies=["move"], throttles=["none"], healthy_s=0.1)
CONFIGURATION = entry("disaggregation/configuration", "configuration.rule_broken", power=["switch"])
WITHOUT_CUTS = entry("disaggregation/configuration", "configuration.rule_broken", power=["none"])


def dry(rackloop: CommandLine, lab: Path, *entries: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The foreseen effects of these entries, by test."""
    ended: Ended = rackloop("run", rackloop.plan(*entries), "--lab", lab, "--dry-run", "--json")
    return {test["test"].partition("::")[0]: test for test in json.loads(ended.out)["tests"]}


def test_the_designs_run_beside_a_drive_that_has_to_stay(rackloop: CommandLine) -> None:
    lab = rack_with(rackloop, "srv3")
    plan = rackloop.plan(ELASTIC, FAILURE, REBUILD, WITHOUT_CUTS)
    ended = rackloop("run", plan, "--lab", lab, "--seed", "5", "--out", "out")
    assert ended.status == 0, ended
    results = Results(rackloop.directory / "out")
    assert {name: test["verdict"] for name, test in results.tests().items()} == {
        "disaggregation/elastic::elastic": "pass",
        "disaggregation/failure::failure": "pass",
        "erasure/rebuild::server_loss": "pass",
        "erasure/rebuild::throttle": "pass",
        "disaggregation/configuration::configuration": "pass",
    }
    failed = [event.target for event in results.of_kind("fault.phase") if event.fault_kind == "power_loss"]
    assert failed
    assert "srv3" not in failed


def test_a_dry_run_foresees_what_the_guard_would_refuse(rackloop: CommandLine) -> None:
    foreseen = dry(rackloop, rack_with(rackloop, "srv3"), ELASTIC, FAILURE, REBUILD, CONFIGURATION)
    assert [name for name, test in foreseen.items() if test["blocked"]] == ["disaggregation/configuration"]
    [reason] = foreseen["disaggregation/configuration"]["blocked"]
    assert "not scratch: true would lose its link with the power of the switch" in reason
    assert "one of srv1, srv2, srv4, srv5, srv6 by power_loss" in foreseen["disaggregation/failure"]["faults"][0]
    assert all("k1" not in test["erases"] for test in foreseen.values())


def test_too_few_servers_that_may_fail_are_known_before_with_their_number(rackloop: CommandLine) -> None:
    foreseen = dry(rackloop, rack_with(rackloop, "srv1", "srv2", "srv3", "srv4"), ELASTIC, FAILURE)
    assert foreseen["disaggregation/elastic"]["blocked"] == []
    [reason] = foreseen["disaggregation/failure"]["blocked"]
    assert "3 of the servers are to fail at once, and 2 of 6 may" in reason
