"""Servers provisioned by hand and at the start of a run: the record, the report, and the block where it fails."""

from __future__ import annotations

import json
from typing import Any

from tests.e2e.command_line import CommandLine, Results
from tests.e2e.entries import IDENTITY, PHY

FAILING = """
- name: Own
  hosts: servers
  gather_facts: false
  tasks:
    - name: Burn the firmware
      ansible.builtin.shell: echo the flash is worn out >&2; exit 1
      tags: [firmware]
    - name: Say hello
      ansible.builtin.command: "true"
      tags: [hello]
"""


def run(rackloop: CommandLine, provision: Any, *tests: dict[str, Any], status: int) -> Results:
    purpose = "A small rack does what it should."
    document = {"plan": "small", "purpose": purpose, "provision": provision, "tests": list(tests)}
    ended = rackloop("run", rackloop.write("small.yaml", document), "--lab", "mock", "--out", "out")
    assert ended.status == status, ended
    assert "Traceback" not in ended.err, ended
    return Results(rackloop.directory / "out")


def allure_result(results: Results, name: str) -> dict[str, Any]:
    """The Allure result of an entry."""
    found: list[dict[str, Any]] = [
        json.loads(path.read_text()) for path in (results.directory / "allure-results").glob("*-result.json")
    ]
    (position,) = [position for position, result in enumerate(found) if result["name"] == name]
    return found[position]


def test_a_run_provisions_its_servers_first_and_its_report_shows_every_task(rackloop: CommandLine) -> None:
    rackloop.renders_reports = True
    results = run(rackloop, {"roles": ["iscsi_target"]}, IDENTITY, status=0)
    assert {name: test["verdict"] for name, test in results.tests().items()} == {
        "fabric/identity::identity": "pass",
        "provisioning": "pass",
    }
    ran = results.of_kind("task.ran")
    assert {event.server for event in ran} == {"srv1", "srv2", "srv3", "srv4"}
    assert {(event.status, event.role) for event in ran if event.task == "Write the target configuration"} == {
        ("changed", "iscsi_target")
    }
    assert all(event.test == "provisioning" and event.started_ns < event.ended_ns for event in ran)
    acts = [stamped.seq for stamped in results.events if stamped.event.kind == "act.announced"]
    assert max(stamped.seq for stamped in results.events if stamped.event.kind == "task.ran") < min(acts)

    result = allure_result(results, "Provisioning")
    (whole,) = result["steps"]
    steps = {step["name"]: step for step in whole["steps"]}
    made = steps["iscsi_target: Write the target configuration (4 changed)"]
    assert sorted(step["name"] for step in made["steps"]) == [f"srv{n} changed" for n in (1, 2, 3, 4)]
    assert made["stop"] > made["start"]
    left_out = steps["iscsi_target: Enable and start the target service (4 skipped)"]
    assert left_out["status"] == "skipped"
    assert left_out["steps"][0]["name"].endswith("services cannot be managed (systemd is not running)")


def test_a_playbook_that_fails_blocks_the_run_once(rackloop: CommandLine) -> None:
    (rackloop.directory / "own.yml").write_text(FAILING)
    tests = run(rackloop, {"playbook": "own.yml"}, IDENTITY, PHY, status=3).tests()
    entry = tests.pop("provisioning")
    assert (entry["verdict"], entry["cause"]) == ("unknown", "lab")
    assert "task 'Burn the firmware'" in entry["reason"]
    assert "srv1: non-zero return code; the flash is worn out" in entry["reason"]
    assert [(test["verdict"], test["cause"]) for test in tests.values()] == [("blocked", "lab")] * 2
    assert all("the servers could not be provisioned: own.yml failed" in test["reason"] for test in tests.values())


def test_a_dry_run_says_that_servers_would_be_provisioned(rackloop: CommandLine) -> None:
    ended = rackloop("run", "smoke", "--lab", "mock", "--dry-run")
    assert ended.status == 0, ended
    assert "Servers are provisioned first: playbook site (base_tools, kernel_ahci, network_tuning)" in ended.out


def test_servers_are_provisioned_and_given_back_by_hand(rackloop: CommandLine) -> None:
    assert rackloop("lab", "up", "mock").status == 0

    def changed(said: str, *arguments: str) -> list[str]:
        """The servers where a task of the role changed something."""
        ended = rackloop("lab", "provision", "mock", "--roles", "iscsi_target", *arguments)
        assert ended.status == 0, ended
        assert "left out, services cannot be managed (systemd is not running): iscsi_target: " in ended.out
        told = f"changed      iscsi_target: {said}"
        return sorted(line.split()[0] for line in ended.out.splitlines() if told in line)

    port = ("--set", "iscsi_target_port=9999")
    assert changed("Write the target configuration", *port, "--servers", "srv1,srv2") == ["srv1", "srv2"]
    assert changed("", *port, "--servers", "srv2") == []
    assert changed("Put back what was there before", "--undo", "--servers", "srv2") == ["srv2"]
    assert changed("Put back what was there before", "--undo", "--servers", "srv1,srv2") == ["srv1"]


def test_what_is_wrong_with_the_command_is_said_before_anything_is_touched(rackloop: CommandLine) -> None:
    (rackloop.directory / "own.yml").write_text(FAILING)
    for arguments, status, words in (
        (("mock", "--roles", "iscsi_targe"), 2, "site.yml has no role 'iscsi_targe'; did you mean 'iscsi_target'?"),
        (("mock", "--roles", ","), 2, "--roles ',' names no role: leave it out for all of them; known: base_tools, "),
        (("mock", "--servers", "srv9"), 2, "no server is named 'srv9'; did you mean"),
        (("mock", "--set", "port"), 2, "--set port: write KEY=VALUE"),
        (("mock", "--set", "port=[1"), 2, "--set port=[1: not YAML"),
        (("mock", "--playbook", "gone.yml"), 2, "there is no playbook at gone.yml"),
        (("mock", "--playbook", "own.yml", "--undo"), 2, "--undo takes back the shipped roles"),
        (("mock", "--playbook", "own.yml", "--roles", "helo"), 2, "own.yml has no role 'helo'; did you mean 'hello'?"),
        (("example-rack",), 3, "lab store postgresql://rackloop@db.lab.example/rackloop"),
        (("mock",), 3, "lab mock is not up: start it with `rackloop lab up mock`"),
    ):
        ended = rackloop("lab", "provision", *arguments)
        assert ended.status == status, ended
        assert words in ended.err
        assert "Traceback" not in ended.err


ENDLESS = """
- name: Own
  hosts: servers
  gather_facts: false
  environment: "{{ rackloop_environment | default({}) }}"
  tasks:
    - name: Begin
      ansible.builtin.command: "true"
    - name: Write
      ansible.builtin.command: sleep 1000
"""


def test_provisioning_by_hand_ends_once_another_has_the_lease(rackloop: CommandLine) -> None:
    (rackloop.directory / "own.yml").write_text(ENDLESS)
    assert rackloop("lab", "up", "mock").status == 0
    try:
        running = rackloop.start("lab", "provision", "mock", "--playbook", "own.yml", "--servers", "srv1")
        assert running.process.stdout is not None
        assert "Begin" in running.process.stdout.readline()
        assert rackloop("lab", "lease", "mock", "--for", "1h", "--steal", "--yes").status == 0
        running.end().refused(3, "stolen")
    finally:
        assert rackloop("lab", "down", "mock", "--steal", "--yes").status == 0
