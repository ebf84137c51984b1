"""The rehearsal of a real rack: the guests as a rack that is simply there, along docs/how-to/your-first-real-rack.md.

The tests are of one rack, and in order.
"""

from __future__ import annotations

import json

import pytest

from rackloop.lab import Lab, LabKind, load_lab
from tests.e2e.command_line import CommandLine
from tests.virtual.guests import baseline_comes, endpoints_of


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


def test_what_a_smoke_would_erase_is_known_before_and_is_scratch(up: CommandLine, rehearsal: str) -> None:
    ended = up("run", "smoke", "--lab", rehearsal, "--dry-run", "--json")
    assert ended.status == 0, ended
    erased = {drive for test in json.loads(ended.out)["tests"] for drive in test["erases"]}
    assert "d01" in erased
    assert all(drive.scratch for name, drive in load_lab(rehearsal).drives.items() if name in erased)


def test_the_rack_is_healed(up: CommandLine, rehearsal: str) -> None:
    assert up("fabric", rehearsal, "map", "srv3.p3=d01").status == 0
    ended = up("heal", rehearsal)
    assert ended.status == 0, ended
    baseline_comes(up)
