"""What a run from this machine would stop at, said by `lab check` beside the problems of the file."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from rackloop.lab import load_lab
from rackloop_cli.lab import check
from rackloop_labs.readiness import unready

LAB = """\
name: das
kind: physical
controllers: [CONTROLLER]
fabric: {driver: static}
servers:
  box1:
    ssh: box1.lab.example
    known_hosts: box1.known_hosts
    key_file: box1.key
    ports: {p0}
    bmc: {driver: redfish, address: 'https://bmc1', user: op, password: {env: RACKLOOP_TEST_BMC}, ca_file: ca.pem}
    outlet: pdu1/1
pdus:
  pdu1: {driver: apc, outlets: 8, address: pdu1.lab.example, password: {vault: {file: vault.yml, key: pdu}}}
drives:
  d01: {profile: sata-ssd, model: X, serial: S1, wwn: 5000c500a0000001, size: 1 TB, attached: box1/p0, scratch: true}
"""


def described(folder: Path, controller: str = "") -> Path:
    path = folder / "das.yaml"
    path.write_text(LAB.replace("CONTROLLER", controller or socket.gethostname()))
    return path


def test_each_thing_that_is_missing_is_told_at_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RACKLOOP_TEST_BMC", raising=False)
    found = unready(load_lab(described(tmp_path, "elsewhere")))
    assert [(one.line, one.path) for one in found] == [
        (3, "controllers"),
        (8, "servers.box1.known_hosts"),
        (9, "servers.box1.key_file"),
        (11, "servers.box1.bmc.password"),
        (11, "servers.box1.bmc.ca_file"),
        (14, "pdus.pdu1.password"),
    ]
    assert all(one.message.startswith("on this machine: ") for one in found)
    assert "RACKLOOP_TEST_BMC is not set" in found[3].message
    assert f"this machine is {socket.gethostname()}" in found[0].message


def test_a_file_that_cannot_be_looked_at_keeps_nothing_else_from_being_told(tmp_path: Path) -> None:
    path = described(tmp_path, "elsewhere")
    path.write_text(path.read_text().replace("box1.known_hosts", "k" * 256).replace("box1.key", "das.yaml/key"))
    places = {one.path: one.message for one in unready(load_lab(path))}
    assert "k cannot be read: File name too long" in places["servers.box1.known_hosts"]
    assert "there is no file" in places["servers.box1.key_file"]
    assert "servers.box1.bmc.ca_file" in places


def test_nothing_is_missing_where_all_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("box1.known_hosts", "box1.key", "ca.pem", "vault.yml"):
        (tmp_path / name).write_text("x")
    monkeypatch.setenv("RACKLOOP_TEST_BMC", "x")
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", "x")
    assert unready(load_lab(described(tmp_path))) == []
    assert unready(load_lab("mock")) == []


def test_it_is_no_problem_of_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = described(tmp_path)
    assert check.run([str(path)]) == 0
    said = capsys.readouterr()
    assert f"{path}:8:18: servers.box1.known_hosts: on this machine: there is no file {tmp_path}/" in said.err
    assert said.out == ("1 file, 0 with problems, 0 problems; a run from this machine would stop at 5 things\n")
    check.run([str(path)], json=True)
    [file] = json.loads(capsys.readouterr().out)["files"]
    assert file["problems"] == []
    assert file["here"][0]["path"] == "servers.box1.known_hosts"
