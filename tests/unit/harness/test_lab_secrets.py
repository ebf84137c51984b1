"""Secrets stand elsewhere: the description names where, and nothing ever prints them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rackloop.errors import BadInput, DescriptionError
from rackloop.lab import EnvironmentSecret, FileSecret, Lab, VaultSecret, load_lab

RACK = """\
name: rack
kind: mock
fabric: {driver: flexfabric}
servers:
  srv1: {ports: {p0: 1}, password: PASSWORD}
drives:
  d01: {profile: sata-ssd, serial: A1, wwn: 5000c500a0000001, size: 8 GiB, port: 3, scratch: true}
"""


def load(password: str, folder: Path) -> Lab:
    (folder / "rack.yaml").write_text(RACK.replace("PASSWORD", password))
    return load_lab(folder / "rack.yaml")


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("hunter2", "a secret must not stand in this file; keep it elsewhere and write {env: NAME}"),
        ("''", "a secret must not stand in this file"),
        ("[hunter2]", "expected where the secret is kept"),
        ("{}", "expected where the secret is kept"),
        ("{env: A, file: b}", "expected where the secret is kept"),
        ("{evn: NAME}", "did you mean 'env'?"),
        ("{env: hunter-2}", "expected the name of an environment variable"),
        ("{file: ''}", "expected a file name"),
        ("{vault: secrets.yaml}", "expected {file: PATH, key: NAME} after vault"),
        ("{vault: {file: a, key: [b]}}", "expected the name of a key in the vault"),
    ],
)
def test_only_a_reference_is_a_password(reference: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(DescriptionError) as caught:
        load(reference, tmp_path)
    [problem] = caught.value.problems
    assert (problem.line, problem.column, problem.path) == (5, 36, "servers.srv1.password")
    assert words in problem.message
    assert "hunter" not in str(caught.value)


def test_a_variable_holds_a_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = load("{env: RACK_PASSWORD}", tmp_path).servers["srv1"].password
    assert secret == EnvironmentSecret("RACK_PASSWORD")
    monkeypatch.setenv("RACK_PASSWORD", "hunter2")
    assert secret.reveal() == "hunter2"
    assert "hunter2" not in repr(secret)
    monkeypatch.delenv("RACK_PASSWORD")
    with pytest.raises(BadInput, match="RACK_PASSWORD is not set"):
        secret.reveal()


def test_a_file_beside_the_description_holds_a_secret(tmp_path: Path) -> None:
    secret = load("{file: bmc.password}", tmp_path).servers["srv1"].password
    assert secret == FileSecret(tmp_path / "bmc.password")
    with pytest.raises(BadInput, match=r"bmc\.password cannot be read: .*check its name"):
        secret.reveal()
    (tmp_path / "bmc.password").write_text(" hunter 2\n")
    assert secret.reveal() == " hunter 2"
    (tmp_path / "bmc.password").write_text("\n")
    with pytest.raises(BadInput, match="is empty"):
        secret.reveal()


def test_a_secret_file_that_is_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "bmc.password")
    with pytest.raises(BadInput, match=r"bmc\.password is a pipe, which may never say it; give it as a file"):
        FileSecret(tmp_path / "bmc.password").reveal()


def test_a_vault_holds_a_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = load("{vault: {file: secrets.yaml, key: bmc}}", tmp_path).servers["srv1"].password
    assert secret == VaultSecret(tmp_path / "secrets.yaml", "bmc")
    (tmp_path / "secrets.yaml").write_text("bmc: 00123456\nempty: ''\n")
    (tmp_path / "vault-password").write_text("open sesame\n")
    password, sealed = str(tmp_path / "vault-password"), str(tmp_path / "secrets.yaml")
    seal = [str(Path(sys.executable).with_name("ansible-vault")), "encrypt", "--vault-password-file", password, sealed]
    subprocess.run(seal, check=True, capture_output=True)
    monkeypatch.delenv("ANSIBLE_VAULT_PASSWORD_FILE", raising=False)
    with pytest.raises(BadInput, match="ANSIBLE_VAULT_PASSWORD_FILE is not set"):
        secret.reveal()
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", str(tmp_path / "vault-password"))
    assert secret.reveal() == "00123456"
    for key in ("ipmi", "empty"):
        with pytest.raises(BadInput, match=f"holds no text under the key '{key}'"):
            VaultSecret(tmp_path / "secrets.yaml", key).reveal()
    (tmp_path / "vault-password").write_text("wrong\n")
    with pytest.raises(BadInput, match="cannot be opened with the password in"):
        secret.reveal()
