"""A real rack with a switch: what it cannot do is said before the first test, and no such run is green."""

from __future__ import annotations

import json
import secrets
import socket
from pathlib import Path

import pytest
import yaml

from tests.e2e.command_line import CommandLine, Results
from tests.e2e.entries import IDENTITY, REMAP

CANNOT = "cannot run here: "
SIMULATED_LACK = {
    "has mdadm",
    "has losetup",
    "has mkfs.ext4 for remap.mount",
    "mounts ext4 for remap.mount",
    "can have its programs held for server_hang, by control groups of version 2",
}
UNNAMED = "no path says what is at srv1.p0"


@pytest.fixture
def found(rackloop: CommandLine) -> Path:
    """The mock rack as `lab discover` describes it, a physical one, all of whose drives may be erased."""
    # One store has a physical lab of this name on this machine, and keeps it after the test.
    name = f"found-{secrets.token_hex(4)}"
    assert rackloop("lab", "up", "mock").status == 0
    assert rackloop("lab", "discover", "mock", "--name", name, "--out", "found.yaml").status == 0
    path = rackloop.directory / "found.yaml"
    document = yaml.safe_load(path.read_text())
    document["controllers"] = [socket.gethostname()]
    for drive in document["drives"].values():
        drive["scratch"] = True
    path.write_text(yaml.safe_dump(document))
    return path


def test_what_a_real_rack_cannot_do_is_known_before_anything_is_erased(rackloop: CommandLine, found: Path) -> None:
    needing_probe = {"fabric/remap_latency", "fabric/identity", "fabric/undisturbed_io"}
    reasons = blocked(rackloop, found)
    assert reasons.keys() == {"disaggregation/failure", "fabric/switched_throughput"}
    assert "can have the fault fail_stop" in reasons["disaggregation/failure"]
    assert "has the stack comreset" in reasons["fabric/switched_throughput"]
    document = yaml.safe_load(found.read_text())
    del document["servers"]["srv1"]["paths"]
    found.write_text(yaml.safe_dump(document))
    reasons = blocked(rackloop, found)
    assert needing_probe <= reasons.keys()
    assert all(UNNAMED in reasons[name] for name in needing_probe)

    ended = rackloop("run", rackloop.plan(REMAP, IDENTITY), "--lab", found, "--out", "out")
    assert ended.status == 3, ended
    assert ended.err.index(f"remap_latency {CANNOT}") < ended.err.index("remap_latency: blocked"), ended
    results = Results(rackloop.directory / "out")
    assert {test["verdict"] for test in results.summary["tests"]} == {"blocked"}
    assert results.summary["verdict"] == "blocked"
    assert results.of_kind("act.announced") == []
    assert rackloop("lab", "down", "mock").status == 0


def test_each_port_and_tool_is_used_once_and_what_fails_is_named(rackloop: CommandLine, found: Path) -> None:
    live = rackloop("lab", "check", "mock", "--live")
    assert live.status == 0, live
    assert "24 ports" in live.out
    assert "; 0 failed" in live.out
    # A file of the current folder by its name is the same file.
    named = rackloop("lab", "check", found.name, "--live")
    assert "(physical), live: " in named.out, named
    assert rackloop("power", "mock", "off", "srv2").status == 0
    assert failed_of(rackloop, "mock") == {"srv2", *(f"srv2.p{number}" for number in range(6))}
    assert rackloop("power", "mock", "on", "srv2").status == 0
    # By the same way as a real rack's: over SSH, by the path of each port.
    real = rackloop("lab", "check", found, "--live", "--json")
    (file,) = json.loads(real.out)["files"]
    assert {"has nft", "has setpci", "has mdadm"} <= {attempt["did"] for attempt in file["live"]}
    # A simulated server has no kernel of its own, which would do this.
    lacks = {attempt["did"] for attempt in file["live"] if attempt["problem"]}
    assert lacks <= SIMULATED_LACK, real
    assert real.status == (3 if lacks else 0), real
    assert rackloop("lab", "down", "mock").status == 0


def blocked(rackloop: CommandLine, lab: Path) -> dict[str, str]:
    """The tests of smoke that a dry run says are blocked, each with its reasons."""
    shown = rackloop("run", "smoke", "--lab", lab, "--dry-run", "--json")
    tests = json.loads(shown.out)["tests"]
    assert not any(test["skipped"] for test in tests)
    return {test["test"].partition("::")[0]: "; ".join(test["blocked"]) for test in tests if test["blocked"]}


def failed_of(rackloop: CommandLine, lab: str) -> set[str]:
    """The parts of a lab that failed when it was used."""
    live = rackloop("lab", "check", lab, "--live", "--json")
    assert live.status == 3, live
    (file,) = json.loads(live.out)["files"]
    return {attempt["part"] for attempt in file["live"] if attempt["problem"]}
