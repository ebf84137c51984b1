"""Addresses in a physical rack's description: each leads somewhere, none in the clear, and no two boxes share one."""

from __future__ import annotations

from pathlib import Path

import pytest

from rackloop.errors import DescriptionError
from rackloop.lab import load_lab

RACK = """\
name: rack
kind: physical
fabric: {driver: flexfabric, control: {tcp: 'switch:5025'}}
servers:
  srv1: {ports: {p0: 1}, ssh: srv1, known_hosts: known}
  srv2: {ports: {p0: 2}, ssh: srv2, known_hosts: known}
drives:
  d01: {profile: sata-ssd, model: M, serial: A1, wwn: 5000c500a0000001, size: 8 GiB, port: 3, scratch: true}
jump_hosts:
  gate: {ssh: gate, known_hosts: known}
pdus:
"""


LOGIN = "user: operator, password: {env: BOXES}"


def rack(srv1: str = "ssh: srv1", srv2: str = "ssh: srv2", pdus: tuple[str, ...] = ()) -> str:
    """The description with these keys of its servers, and of its units, which have eight outlets."""
    text = RACK.replace("ssh: srv1", srv1).replace("ssh: srv2", srv2)
    return text + "".join(f"  pdu{number}: {{outlets: 8, {LOGIN}, {keys}}}\n" for number, keys in enumerate(pdus, 1))


def problems_of(text: str, folder: Path) -> list[str]:
    path = folder / "rack.yaml"
    path.write_text(text)
    try:
        load_lab(path)
    except DescriptionError as error:
        return [f"{problem.path}: {problem.message}" for problem in error.problems]
    return []


def bmc(driver: str, address: str, number: int) -> str:
    return f"ssh: srv{number}, bmc: {{driver: {driver}, {LOGIN}, address: '{address}'}}"


def console(keys: str, number: int) -> str:
    return f"ssh: srv{number}, console: {{{keys}}}"


@pytest.mark.parametrize(
    "address", ["srv1:", ":22", "srv1:65536", "srv1:0", "-Fsrv1", "[::1", "1:2:3", "[::1]:0", "a..b"]
)
def test_what_is_no_address_of_an_ssh_server_is_a_problem(address: str, tmp_path: Path) -> None:
    for key, before in (("ssh", ""), ("clock", "ssh: srv1, ")):
        [problem] = problems_of(rack(f"{before}{key}: '{address}'"), tmp_path)
        assert problem.startswith(f"servers.srv1.{key}: expected a host such as")


@pytest.mark.parametrize(
    "address",
    [
        "srv1",
        "srv1.lab.",
        "srv1:65535",
        "my_host",
        "192.0.2.1:22",
        "::1",
        "fe80::1%eth0",
        "[::1]",
        "[fe80::1%eth0]:2222",
    ],
)
def test_what_is_an_address_of_an_ssh_server_is_none(address: str, tmp_path: Path) -> None:
    assert problems_of(rack(f"ssh: '{address}', clock: '{address}'"), tmp_path) == []


@pytest.mark.parametrize(
    ("driver", "address", "said"),
    [
        ("ipmi", "bmc1:x", "'bmc1:x' is no address"),
        ("ipmi", "bmc1..lab", "'bmc1..lab' is no address"),
        ("redfish", "https://bmc1..lab", "'bmc1..lab' is no address"),
        ("ipmi", "https://bmc1", "'https://bmc1' is no address that this driver speaks to"),
        ("redfish", "bmc1:70000", "'bmc1:70000' is no address"),
        ("redfish", "https://", "'' is no address"),
        ("redfish", "http://bmc1", "'http://bmc1' is no address that this driver speaks to"),
        ("redfish", "https://admin:hunter2@bmc1", "an account must not stand in an address"),
    ],
)
def test_what_is_no_address_of_a_controller_is_a_problem(driver: str, address: str, said: str, tmp_path: Path) -> None:
    """One by which a password would cross the network in the clear is none, and one in it is not repeated."""
    [problem] = problems_of(rack(bmc(driver, address, 1)), tmp_path)
    assert problem.startswith(f"servers.srv1.bmc.address: {said}")
    assert "hunter2" not in problem


def test_what_is_no_address_of_serial_over_lan_is_a_problem(tmp_path: Path) -> None:
    described = f"{bmc('ipmi', 'bmc1', 1)}, console: {{driver: ipmi, address: 'bmc1:PORT'}}"
    assert problems_of(rack(described.replace("PORT", "623")), tmp_path) == []
    [problem] = problems_of(rack(described.replace("PORT", "x")), tmp_path)
    assert problem.startswith("servers.srv1.console.address: 'bmc1:x' is no address")


@pytest.mark.parametrize("driver", ["apc", "cyberpower", "redfish"])
def test_what_is_no_address_of_a_unit_is_a_problem(driver: str, tmp_path: Path) -> None:
    [problem] = problems_of(rack(pdus=(f"driver: {driver}, address: 'http://pdu1'",)), tmp_path)
    assert problem.startswith("pdus.pdu1.address: 'http://pdu1' is no address that this driver speaks to")


@pytest.mark.parametrize(
    ("text", "place", "address", "first"),
    [
        (rack("ssh: srv1", "ssh: 'SRV1:22'"), "servers.srv2.ssh", "srv1", "servers.srv1.ssh"),
        (rack("ssh: a, jump: gate", "ssh: a, jump: gate"), "servers.srv2.ssh", "a", "servers.srv1.ssh"),
        (rack(bmc("ipmi", "b", 1), bmc("ipmi", "B:623", 2)), "servers.srv2.bmc.address", "b:623", "servers.srv1.bmc"),
        (
            rack(bmc("redfish", "b", 1), bmc("redfish", "https://b:443/", 2)),
            "servers.srv2.bmc.address",
            "b:443",
            "servers.srv1.bmc.address",
        ),
        (
            rack(console("driver: tty, device: /dev/ttyS0", 1), console("driver: tty, device: /dev/ttyS0", 2)),
            "servers.srv2.console.device",
            "/dev/ttyS0",
            "servers.srv1.console.device",
        ),
        (
            rack(
                console("driver: ser2net, address: 'c:65535'", 1),
                console("driver: ser2net, address: 'rfc2217://C:65535'", 2),
            ),
            "servers.srv2.console.address",
            "c:65535",
            "servers.srv1.console.address",
        ),
        (
            rack(pdus=("driver: apc, address: p", "driver: cyberpower, address: 'p:161'")),
            "pdus.pdu2.address",
            "p:161",
            "pdus.pdu1.address",
        ),
        (
            rack(pdus=("driver: redfish, address: p, unit: 2", "driver: redfish, address: p, unit: 2")),
            "pdus.pdu2.address",
            "unit 2 of p:443",
            "pdus.pdu1.address",
        ),
    ],
)
def test_no_two_boxes_share_an_address(text: str, place: str, address: str, first: str, tmp_path: Path) -> None:
    """What is done to the one would be done to the other, which another person may have leased."""
    [problem] = problems_of(text, tmp_path)
    assert problem.startswith(f"{place}: {address} is already the ")
    assert f" of {first}" in problem


@pytest.mark.parametrize(
    "text",
    [
        rack("ssh: a, jump: gate", "ssh: a"),
        rack(bmc("ipmi", "b:623", 1), bmc("ipmi", "b:624", 2)),
        rack(pdus=("driver: redfish, address: p, unit: 1", "driver: redfish, address: p, unit: 2")),
        rack(f"{bmc('ipmi', 'b', 1)}, console: {{driver: ipmi, address: b}}"),
        rack(console("driver: ser2net, address: 'c:2001'", 1), console("driver: ser2net, address: 'c:2002'", 2)),
    ],
)
def test_addresses_that_look_alike_may_be_of_different_boxes(text: str, tmp_path: Path) -> None:
    assert problems_of(text, tmp_path) == []


def test_the_serial_line_of_the_switch_is_no_console(tmp_path: Path) -> None:
    text = rack(console("driver: tty, device: /dev/ttyUSB0", 1))
    text = text.replace("{tcp: 'switch:5025'}", "{tcp: 'switch:5025', serial: /dev/ttyUSB0}")
    [problem] = problems_of(text, tmp_path)
    assert problem.startswith(
        "servers.srv1.console.device: /dev/ttyUSB0 is already the address of fabric.control.serial"
    )


def test_simulated_boxes_make_addresses_of_their_own(tmp_path: Path) -> None:
    text = rack(bmc("ipmi", "b", 1), bmc("ipmi", "b", 2)).replace("kind: physical", "kind: mock")
    assert problems_of(text, tmp_path) == []


def test_an_authority_by_which_nothing_is_verified_is_a_problem(tmp_path: Path) -> None:
    text = rack(bmc("redfish", "b", 1)).replace("driver: redfish", "driver: redfish, ca_file: ca.pem, verify: VERIFY")
    assert problems_of(text.replace("VERIFY", "true"), tmp_path) == []
    [problem] = problems_of(text.replace("VERIFY", "false"), tmp_path)
    assert problem.startswith("servers.srv1.bmc.ca_file: verifies nothing")


@pytest.mark.parametrize("driver", ["ipmi", "redfish"])
def test_a_controller_without_an_account_is_a_problem(driver: str, tmp_path: Path) -> None:
    """A test would find that out when it is to give back the power of a server that it made panic."""
    found = problems_of(rack(f"ssh: srv1, bmc: {{driver: {driver}, address: b}}"), tmp_path)
    assert {problem.partition(" is missing")[0] for problem in found} == {
        "servers.srv1.bmc.user:",
        "servers.srv1.bmc.password:",
    }


def test_a_unit_by_snmp_takes_a_community_and_no_account(tmp_path: Path) -> None:
    described = RACK + "  pdu1: {outlets: 8, driver: apc, address: p"
    assert problems_of(described + ", password: {env: COMMUNITY}}\n", tmp_path) == []
    [problem] = problems_of(described + "}\n", tmp_path)
    assert problem.startswith("pdus.pdu1.password: is missing")
