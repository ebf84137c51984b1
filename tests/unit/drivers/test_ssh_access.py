"""How a lab description says its servers are reached by SSH."""

from __future__ import annotations

from pathlib import Path

from rackloop.lab import EnvironmentSecret, Lab, load_lab
from rackloop_drivers.host import SshAccess
from rackloop_labs.ssh_access import ssh_accesses

PHYSICAL = """
name: rack
kind: physical
fabric: {driver: flexfabric, control: {tcp: 'switch:5025'}}
servers:
  plain: {ports: {p0: 1}, ssh: srv1.lab.example, known_hosts: keys}
  behind:
    ports: {p0: 2}
    ssh: 'srv2:2222'
    known_hosts: keys
    user: operator
    key_file: /keys/operator
    password: {env: OPERATOR}
    jump: gate
  v6: {ports: {p0: 3}, ssh: '[fe80::1]:22022', known_hosts: keys}
  bare: {ports: {p0: 4}, ssh: 'fe80::2', known_hosts: keys}
jump_hosts:
  gate: {ssh: 'gate:443', known_hosts: gate.keys, user: guest, key_file: /keys/gate}
drives:
  d01: {profile: sata-ssd, model: M, serial: A1, wwn: 5000c500a0000001, size: 8 GiB, port: 5, scratch: true}
"""

MOCK = """
name: bench
kind: mock
fabric: {driver: flexfabric}
servers: {srv1: {ports: {p0: 1}}}
drives:
  d01: {profile: sata-ssd, serial: A1, wwn: 5000c500a0000001, size: 8 GiB, port: 5, scratch: true}
"""

ENDPOINTS = {
    "servers": {"srv1": {"ssh": "127.0.0.1:40022"}},
    "ssh": {"user": "root", "known_hosts": "/state/known_hosts", "key_file": "/state/key"},
}


def lab_of(text: str, folder: Path) -> Lab:
    path = folder / "lab.yaml"
    path.write_text(text)
    return load_lab(path)


def test_a_server_is_reached_as_it_is_described(tmp_path: Path) -> None:
    lab = lab_of(PHYSICAL, tmp_path)
    accesses = ssh_accesses(lab)
    assert accesses["plain"] == SshAccess("plain", "srv1.lab.example", tmp_path / "keys")
    gate = SshAccess("gate", "gate", tmp_path / "gate.keys", 443, "guest", Path("/keys/gate"))
    assert accesses["behind"] == SshAccess(
        "behind",
        "srv2",
        tmp_path / "keys",
        2222,
        "operator",
        Path("/keys/operator"),
        password=EnvironmentSecret("OPERATOR"),
        jump=gate,
        sudo=True,
    )
    assert (accesses["v6"].host, accesses["v6"].port) == ("fe80::1", 22022)
    assert (accesses["bare"].host, accesses["bare"].port) == ("fe80::2", 22)


def test_a_simulated_server_is_reached_where_its_lab_says_it_answers(tmp_path: Path) -> None:
    lab = lab_of(MOCK, tmp_path)
    expected = SshAccess(
        "srv1", "127.0.0.1", Path("/state/known_hosts"), 40022, "root", Path("/state/key"), use_agent=False
    )
    assert ssh_accesses(lab, ENDPOINTS) == {"srv1": expected}


def test_what_known_hosts_calls_a_server_is_as_openssh_writes_it(tmp_path: Path) -> None:
    accesses = ssh_accesses(lab_of(PHYSICAL, tmp_path))
    names = [access.host_key_name for access in accesses.values()]
    assert names == ["srv1.lab.example", "[srv2]:2222", "[fe80::1]:22022", "fe80::2"]
