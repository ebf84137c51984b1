"""The rehearsal of a real rack: the guests as a rack that is simply there, along docs/how-to/your-first-real-rack.md.

The tests are of one rack, and in order.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
import yaml

from rackloop.lab import Lab, LabKind, load_lab
from tests.e2e.command_line import CommandLine, Results
from tests.meta.tree import ROOT
from tests.virtual.guests import baseline_comes, endpoints_of, tell

SMOKE = ROOT / "testplans" / "smoke.yaml"
SETTING = "net.ipv4.tcp_slow_start_after_idle"
# Drives that no smoke may write to, and whose server.
KEPT, KEPT_AT = "RLV00006", "srv3"


def is_same_rack(found: Lab, described: Lab) -> None:
    """Assert that servers, ports, baseline and its drives are the same; a drive that no server has is in neither.

    Nobody can ask what is behind a port of the switch that is joined to none.
    """
    assert found.kind is described.kind is LabKind.PHYSICAL
    for name, server in described.servers.items():
        assert (found.servers[name].ports, found.servers[name].paths) == (server.ports, server.paths)
        assert found.servers[name].ssh == server.ssh
    assert found.baseline == described.baseline
    assert found.drives.keys() == {name for server in described.servers for name in described.drives_of(server)}
    for name, one in found.drives.items():
        drive = described.drives[name]
        assert (one.profile, one.model, one.serial) == (drive.profile, drive.model, drive.serial)
        assert (one.size, one.port, one.by_path) == (drive.size, drive.port, None)


def with_scratch(rehearsal: str, scratch: Collection[str]) -> dict[str, Any]:
    """The description of the rack with no other scratch drives than these."""
    document: dict[str, Any] = yaml.safe_load(Path(rehearsal).read_text())
    for name, drive in document["drives"].items():
        drive["scratch"] = name in scratch
    return document


def of_one_server(rehearsal: str) -> dict[str, Any]:
    """The description of the rack as if its first server were all there is."""
    document: dict[str, Any] = yaml.safe_load(Path(rehearsal).read_text())
    for section in ("servers", "baseline"):
        document[section] = {"srv1": document[section]["srv1"]}
    return document


def short_smoke() -> dict[str, Any]:
    """What of the shipped smoke says that every server reads the drive that the map says, a few times."""
    shipped = yaml.safe_load(SMOKE.read_text())
    [identity] = [entry for entry in shipped["tests"] if entry["test"] == "fabric/identity"]
    few = {**{key: identity[key] for key in ("test", "requires", "limits")}, "with": {"remaps": 6}}
    return {"plan": "short-smoke", "purpose": shipped["purpose"], "tests": [few]}


@pytest.mark.nightly  # Without a description nobody says how slow the guests are.
def test_servers_without_a_description_are_discovered(up: CommandLine, rehearsal: str) -> None:
    baseline_comes(up)
    endpoints = endpoints_of(up)
    login = endpoints["ssh"]
    hosts = [
        word
        for name, server in endpoints["servers"].items()
        for word in ("--host", f"{name}={login['user']}@{server['ssh']}")
    ]
    access = ("--known-hosts", login["known_hosts"], "--key", login["key_file"])
    ended = up("lab", "discover", "--name", "fresh", *hosts, *access, "--switch", f"tcp://{endpoints['switch']['tcp']}")
    assert ended.status == 0, ended
    fresh, described = load_lab(up.directory / "fresh.yaml"), load_lab(rehearsal)
    joined = {name for server in described.servers for name in described.drives_of(server)}
    assert {drive.serial for drive in fresh.drives.values()} == {described.drives[name].serial for name in joined}
    assert not any(drive.scratch for drive in fresh.drives.values())
    assert "which server port is in which of its ports cannot be seen" in (up.directory / "fresh.yaml").read_text()


def test_a_described_rack_is_discovered_as_it_is_described(up: CommandLine, rehearsal: str) -> None:
    baseline_comes(up)
    ended = up("lab", "discover", rehearsal, "--name", "found")
    assert ended.status == 0, ended
    is_same_rack(load_lab(up.directory / "found.yaml"), load_lab(rehearsal))


def test_the_file_the_cables_and_every_part_are_checked(up: CommandLine, rehearsal: str) -> None:
    for words in (("lab", "check", rehearsal), ("lab", "cabling", rehearsal), ("lab", "check", rehearsal, "--live")):
        ended = up(*words)
        assert ended.status == 0, ended
    assert ", 0 failed" in ended.out or "; 0 failed" in ended.out


@pytest.mark.nightly
def test_a_clock_whose_port_is_not_reached_is_named(up: CommandLine, rehearsal: str) -> None:
    document: dict[str, Any] = yaml.safe_load(Path(rehearsal).read_text())
    with socket.create_server(("127.0.0.1", 0)) as closed:
        document["servers"]["srv2"]["clock"] = f"127.0.0.1:{closed.getsockname()[1]}"
    ended = up("lab", "check", up.write("closed-clock.yaml", document), "--live")
    assert ended.status != 0, ended
    assert "srv2: shows its clock by TCP: its TCP port 6170 is not reached" in ended.err


def test_a_drive_of_another_serial_than_described_is_named(up: CommandLine, rehearsal: str) -> None:
    document: dict[str, Any] = yaml.safe_load(Path(rehearsal).read_text())
    document["drives"]["d01"]["serial"] = "RLV00099"
    # What is wrong stays wrong, however long it is looked at.
    document["times"]["settle"] = "1 s"
    ended = up("lab", "cabling", up.write("other.yaml", document))
    assert ended.status == 3, ended
    assert "RLV00001" in ended.out
    assert "RLV00099" in ended.out


def test_what_a_smoke_would_erase_is_known_before_and_is_scratch(up: CommandLine, rehearsal: str) -> None:
    ended = up("run", "smoke", "--lab", rehearsal, "--dry-run", "--json")
    assert ended.status == 0, ended
    erased = {drive for test in json.loads(ended.out)["tests"] for drive in test["erases"]}
    assert "d01" in erased
    assert all(drive.scratch for name, drive in load_lab(rehearsal).drives.items() if name in erased)


def test_a_playbook_changes_a_server_and_is_taken_back(up: CommandLine, rehearsal: str) -> None:
    server = up.write("one-server.yaml", of_one_server(rehearsal))
    before = tell(up, "srv1", f"sysctl -n {SETTING}").strip()
    for words, setting in ((), "0"), (("--undo",), before):
        ended = up("lab", "provision", server, "--roles", "network_tuning", "--timeout-s", "1500", "--json", *words)
        assert ended.status == 0, ended
        assert json.loads(ended.out)["servers"]["srv1"]["changed"] > 0
        assert tell(up, "srv1", f"sysctl -n {SETTING}").strip() == setting


@pytest.mark.nightly
def test_a_package_that_a_playbook_installs_is_removed_again(up: CommandLine, rehearsal: str) -> None:
    server = up.write("one-server.yaml", of_one_server(rehearsal))
    tell(up, "srv1", "dpkg --purge lsscsi")
    for words, is_there in ((), True), (("--undo",), False):
        ended = up("lab", "provision", server, "--roles", "base_tools", "--timeout-s", "1500", "--json", *words)
        assert ended.status == 0, ended
        assert json.loads(ended.out)["servers"]["srv1"]["changed"] > 0
        assert bool(tell(up, "srv1", "command -v lsscsi || true").strip()) is is_there
    # As the guest was.
    tell(up, "srv1", "apt-get update -qq && apt-get install -qq lsscsi")


@pytest.mark.nightly
def test_a_playbook_changes_each_server_once(up: CommandLine, rehearsal: str) -> None:
    changes: list[set[bool]] = []
    for words in (), (), ("--undo",):
        ended = up("lab", "provision", rehearsal, "--timeout-s", "1500", "--json", *words)
        assert ended.status == 0, ended
        servers = json.loads(ended.out)["servers"]
        assert servers.keys() == load_lab(rehearsal).servers.keys()
        changes.append({server["changed"] > 0 for server in servers.values()})
    assert changes == [{True}, {False}, {True}]


def test_a_short_smoke_is_green_and_writes_to_no_drive_of_somebody(
    up: CommandLine, rehearsal: str, tmp_path: Path
) -> None:
    rack = up.write("few-drives.yaml", with_scratch(rehearsal, {"d01", "d03"}))
    look = f"head -c 1048576 /dev/disk/by-id/nvme-*{KEPT} | sha256sum"
    before = tell(up, KEPT_AT, look)
    ended = up("run", up.write("short-smoke.yaml", short_smoke()), "--lab", rack, "--out", tmp_path / "smoke")
    assert ended.status == 0, ended
    results = Results(tmp_path / "smoke")
    assert {name: test["verdict"] for name, test in results.tests().items()} == {"fabric/identity::identity": "pass"}
    reads = [event.value for event in results.of_kind("measured") if event.name == "identity.reads"]
    assert reads[0] > 0
    assert tell(up, KEPT_AT, look) == before


def test_the_rack_is_healed(up: CommandLine, rehearsal: str) -> None:
    assert up("fabric", rehearsal, "map", "srv3.p3=d01").status == 0
    ended = up("heal", rehearsal)
    assert ended.status == 0, ended
    baseline_comes(up)
