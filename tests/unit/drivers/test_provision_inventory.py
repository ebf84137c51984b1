"""What Ansible and OpenSSH are told of a rack; OpenSSH itself reads it back."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from rackloop.errors import BadInput
from rackloop.lab import EnvironmentSecret, load_lab
from rackloop_drivers.host import SshAccess
from rackloop_drivers.provision import inventory, ssh_config
from rackloop_drivers.provision._inventory import passwords

PLAIN = SshAccess("srv1", "127.0.0.1", Path("/lab/100% known_hosts"), 40022, key_file=Path("/lab/key"), use_agent=False)
GATE = SshAccess("gate", "gate.lab.example", Path("/lab/gate_hosts"), 443, "guest")
BEHIND = SshAccess(
    "srv-2", "10.0.0.2", Path("/lab/known_hosts"), user="operator", password=EnvironmentSecret("RACK_PW"), jump=GATE
)


def resolved(config: str, name: str, folder: Path) -> dict[str, str]:
    """The settings that ssh itself takes for ``ssh NAME``."""
    (folder / "config").write_text(config)
    done = subprocess.run(["ssh", "-G", "-F", folder / "config", name], capture_output=True, text=True, check=True)
    return dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)


def test_ssh_reaches_a_server_by_its_name_and_checks_its_key(tmp_path: Path) -> None:
    found = resolved(ssh_config({"srv1": PLAIN}, tmp_path), "srv1", tmp_path)
    assert (found["hostname"], found["port"], found["user"]) == ("127.0.0.1", "40022", "root")
    assert found["stricthostkeychecking"] == "true"
    assert found["updatehostkeys"] == "false"
    assert found["userknownhostsfile"] == "/lab/100% known_hosts"
    assert (found["identityfile"], found["identitiesonly"], found["identityagent"]) == ("/lab/key", "yes", "none")
    assert (found["controlmaster"], found["controlpath"]) == ("auto", str(tmp_path / "srv1.ssh"))
    assert "proxyjump" not in found


def test_the_zone_of_an_address_reaches_ssh_as_it_is(tmp_path: Path) -> None:
    reach = SshAccess("srv1", "fe80::1%eth0", tmp_path / "known_hosts")
    assert resolved(ssh_config({"srv1": reach}, tmp_path), "srv1", tmp_path)["hostname"] == "fe80::1%eth0"
    assert reach.address == "[fe80::1%eth0]:22"


def test_ssh_reaches_a_server_by_way_of_its_jump_host(tmp_path: Path) -> None:
    config = ssh_config({"srv-2": BEHIND}, tmp_path)
    assert resolved(config, "srv-2", tmp_path)["proxyjump"] == "srv-2.jump"
    way = resolved(config, "srv-2.jump", tmp_path)
    assert (way["hostname"], way["port"], way["user"]) == ("gate.lab.example", "443", "guest")
    assert (way["userknownhostsfile"], way["stricthostkeychecking"]) == ("/lab/gate_hosts", "true")
    assert way["controlpath"] != resolved(config, "srv-2", tmp_path)["controlpath"]


def test_servers_are_grouped_by_lab_and_by_how_they_take_a_drive() -> None:
    lab = load_lab("mock")
    groups = inventory(lab, {name: replace(PLAIN, name=name) for name in lab.servers})["all"]["children"]
    assert {group: sorted(members["hosts"]) for group, members in groups.items()} == {
        "servers": ["srv1", "srv2", "srv3", "srv4"],
        "mock": ["srv1", "srv2", "srv3", "srv4"],
        "stack_vanilla": ["srv1"],
        "stack_no_timeouts": ["srv2"],
        "stack_warm_port": ["srv3"],
        "stack_comreset": ["srv4"],
    }
    assert groups["servers"]["hosts"]["srv1"] == {
        "ansible_user": {"__ansible_unsafe": "root"},
        "ansible_become": False,
    }


def test_a_password_is_in_the_environment_and_nowhere_else(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RACK_PW", "correct horse")
    lab = load_lab("mock")
    reaches = {"srv1": PLAIN, "srv2": BEHIND}
    written = json.dumps(inventory(lab, reaches)) + ssh_config(reaches, tmp_path)
    assert "correct horse" not in written
    [(variable, revealed)] = passwords(reaches).items()
    assert revealed == "correct horse"
    variables = inventory(lab, reaches)["all"]["children"]["servers"]["hosts"]["srv2"]
    assert variables["ansible_become"] is True
    assert variables["ansible_password"] == f"{{{{ lookup('ansible.builtin.env', '{variable}') }}}}"


@pytest.mark.parametrize(
    ("reach", "words"),
    [
        (replace(PLAIN, passphrase=EnvironmentSecret("P")), "srv1: the key /lab/key has a passphrase"),
        (replace(PLAIN, jump=replace(GATE, password=EnvironmentSecret("P"))), "the jump host gate has a password"),
    ],
)
def test_what_ansible_cannot_be_given_is_refused(reach: SshAccess, words: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=words):
        ssh_config({"srv1": reach}, tmp_path)


@pytest.mark.parametrize("variable", ["ansible_user", "rackloop_scratch"])
def test_neither_a_user_nor_a_serial_is_a_template_that_ansible_runs(variable: str, tmp_path: Path) -> None:
    mark, lab = tmp_path / "ran", load_lab("mock")
    template = f"{{{{ lookup('ansible.builtin.pipe', 'touch {mark}') }}}}"
    labelled = lab.model_copy(
        update={"drives": {**lab.drives, "d01": lab.drives["d01"].model_copy(update={"serial": template})}}
    )
    hosts = inventory(labelled, {"srv1": replace(PLAIN, user=template)})
    (tmp_path / "inventory.json").write_text(json.dumps(hosts))
    ansible, hosts_file = str(Path(sys.executable).with_name("ansible")), str(tmp_path / "inventory.json")
    ask = [ansible, "srv1", "-c", "local", "-i", hosts_file, "-m", "debug", "-a", f"var={variable}"]
    said = subprocess.run(ask, capture_output=True, text=True, check=True, env={"HOME": str(tmp_path)})
    assert "lookup(" in said.stdout
    assert not mark.exists()


@pytest.mark.parametrize("end", ['"\n  ProxyCommand sh -c true\n  #', "\n", '"', "\r"])
def test_no_path_becomes_a_setting_of_ssh(end: str, tmp_path: Path) -> None:
    path = Path(f"/lab/k{end}")
    for changed in (replace(PLAIN, key_file=path), replace(PLAIN, known_hosts=path)):
        with pytest.raises(BadInput, match="ssh cannot be given the path"):
            ssh_config({"srv1": changed}, tmp_path)
