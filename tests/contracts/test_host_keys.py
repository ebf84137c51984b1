"""A server by SSH is who known_hosts says it is, or is not spoken to: against OpenSSH's own sshd and ssh-keygen."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from rackloop.errors import BadInput, HostKeyMismatch, HostKeyUnknown
from rackloop_drivers.host import SshAccess, SshHost
from rackloop_drivers.host._known_hosts import KnownHosts
from tests.deadlines import CLOCK, soon
from tests.sshd_process import Sshd, make_key, running_sshd

ED25519 = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExcs8Mc0hjI2N7+9OLaPn4cDLqtD+iyqSecy6rBmdJ2"
# Of RSA with an exponent below zero.
NEGATIVE = "ssh-rsa AAAAB3NzaC1yc2EAAAAC//8AAAARAMMRERERERERERERERERERE="


def say_hello(access: SshAccess) -> str:
    with SshHost(access, CLOCK) as host:
        return host.run(("echo", "hello"), soon()).stdout


def fingerprint(key: Path) -> str:
    """What OpenSSH says of a key, which is what stands on the server's console."""
    said = subprocess.run(("ssh-keygen", "-l", "-f", str(key)), capture_output=True, text=True, check=True).stdout
    return said.split()[1]


def with_known_hosts(sshd: Sshd, path: Path, text: str) -> SshAccess:
    path.write_text(text)
    return replace(sshd.access(), known_hosts=path)


def test_an_unknown_key_is_refused_with_the_line_to_add(sshd: Sshd, tmp_path: Path) -> None:
    access = with_known_hosts(sshd, tmp_path / "known_hosts", "# nobody\n\nother.example ssh-unknown AAAA\n")
    with pytest.raises(HostKeyUnknown) as refused:
        say_hello(access)
    assert fingerprint(sshd.folder / "host_key.pub") in str(refused.value)
    assert "srv1" in str(refused.value)
    assert str(refused.value).endswith(refused.value.line)
    assert say_hello(with_known_hosts(sshd, tmp_path / "added", f"{refused.value.line}\n")) == "hello\n"


def test_a_key_of_another_port_or_name_vouches_for_nobody(sshd: Sshd, tmp_path: Path) -> None:
    text = f"127.0.0.1,[127.0.0.1]:1,* {sshd.host_key}\n"
    with pytest.raises(HostKeyUnknown):
        say_hello(with_known_hosts(sshd, tmp_path / "known_hosts", text))


def test_a_changed_key_names_both_fingerprints_and_where_the_old_one_stands(sshd: Sshd, tmp_path: Path) -> None:
    other = make_key(tmp_path / "other").with_suffix(".pub")
    kind, text = other.read_text().split()[:2]
    access = with_known_hosts(sshd, tmp_path / "known_hosts", f"# rack\n[127.0.0.1]:{sshd.port} {kind} {text}\n")
    with pytest.raises(HostKeyMismatch, match="THE HOST KEY HAS CHANGED") as refused:
        say_hello(access)
    assert f"expected {fingerprint(other)}" in str(refused.value)
    assert f"found    {fingerprint(sshd.folder / 'host_key.pub')}" in str(refused.value)
    assert f"{access.known_hosts}:2" in str(refused.value)


def test_a_second_key_of_a_server_is_as_good_as_the_first(sshd: Sshd, tmp_path: Path) -> None:
    old = make_key(tmp_path / "old").with_suffix(".pub").read_text()
    name = f"[127.0.0.1]:{sshd.port}"
    text = f"{name} {old}{name} {sshd.host_key} a comment\n"
    assert say_hello(with_known_hosts(sshd, tmp_path / "known_hosts", text)) == "hello\n"


def test_hashed_names_are_known(sshd: Sshd, tmp_path: Path) -> None:
    access = with_known_hosts(sshd, tmp_path / "known_hosts", sshd.known_hosts.read_text())
    subprocess.run(("ssh-keygen", "-q", "-H", "-f", str(access.known_hosts)), check=True, stderr=subprocess.DEVNULL)
    assert "127.0.0.1" not in access.known_hosts.read_text()
    assert say_hello(access) == "hello\n"


def test_a_revoked_key_is_refused(sshd: Sshd, tmp_path: Path) -> None:
    known = sshd.known_hosts.read_text()
    access = with_known_hosts(sshd, tmp_path / "known_hosts", f"{known}@revoked {known}")
    with pytest.raises(HostKeyMismatch, match=r"REVOKED: .*known_hosts:2"):
        say_hello(access)


@pytest.mark.parametrize(
    "revoked",
    [
        "@revoked * {key}",
        "@revoked [127.0.0.?]:*,other {key}",
        "@revoked\t{name}  {key}",
        "@revoked [127.0.0.*]:{port} {key}",
    ],
    ids=["of-all", "of-some", "tabs", "of-a-port"],
)
def test_a_key_that_is_revoked_in_any_way_of_openssh_is_refused(sshd: Sshd, tmp_path: Path, revoked: str) -> None:
    known = f"[127.0.0.1]:{sshd.port} {sshd.host_key}\n"
    line = revoked.format(key=sshd.host_key, name=f"[127.0.0.1]:{sshd.port}", port=sshd.port)
    with pytest.raises(HostKeyMismatch, match=r"REVOKED: .*known_hosts:2"):
        say_hello(with_known_hosts(sshd, tmp_path / "known_hosts", f"{known}{line}\n"))


@pytest.mark.parametrize("revoked", ["@revoked 10.* {key}", "@revoked *,!{name} {key}"], ids=["other", "but-this"])
def test_a_key_that_is_revoked_for_others_is_taken(sshd: Sshd, tmp_path: Path, revoked: str) -> None:
    name = f"[127.0.0.1]:{sshd.port}"
    text = f"{name}  {sshd.host_key}\n{revoked.format(key=sshd.host_key, name=name)}\n"
    assert say_hello(with_known_hosts(sshd, tmp_path / "known_hosts", text)) == "hello\n"


def test_a_name_that_a_line_excepts_is_not_vouched_for(sshd: Sshd, tmp_path: Path) -> None:
    name = f"[127.0.0.1]:{sshd.port}"
    with pytest.raises(HostKeyUnknown):
        say_hello(with_known_hosts(sshd, tmp_path / "known_hosts", f"{name},!{name} {sshd.host_key}\n"))


def test_the_kind_of_key_that_is_known_is_asked_for(tmp_path: Path) -> None:
    rsa = make_key(tmp_path / "rsa", "rsa")
    kind, text = rsa.with_suffix(".pub").read_text().split()[:2]
    with running_sshd(f"HostKey {rsa}") as sshd:
        known = f"[127.0.0.1]:{sshd.port} {kind} {text}\n"
        assert say_hello(with_known_hosts(sshd, tmp_path / "known_hosts", known)) == "hello\n"


def test_the_kind_of_an_authoritys_key_is_not_asked_for(tmp_path: Path) -> None:
    rsa, other = make_key(tmp_path / "rsa", "rsa"), make_key(tmp_path / "other")
    kind, text = rsa.with_suffix(".pub").read_text().split()[:2]
    with running_sshd(f"HostKey {rsa}\nHostKey {other}") as sshd:
        name = f"[127.0.0.1]:{sshd.port}"
        known = f"@cert-authority {name} {ED25519}\n{name} {kind} {text}\n"
        assert say_hello(with_known_hosts(sshd, tmp_path / "known_hosts", known)) == "hello\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("srv1 ssh-ed25519 AAA\n", "known_hosts:1: is no host key"),
        (f"|1|c3Jy|c3Jy {ED25519}\n", "known_hosts:1: is no host key"),
        (f"srv1 {NEGATIVE}\n", "known_hosts:1: is no host key"),
        (b"\xff\xfe", "cannot be read"),
    ],
    ids=["no-key", "no-hash", "negative", "no-text"],
)
def test_a_known_hosts_file_that_is_none_is_bad_input(sshd: Sshd, tmp_path: Path, text: str | bytes, said: str) -> None:
    path = tmp_path / "known_hosts"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(BadInput, match=said):
        say_hello(replace(sshd.access(), known_hosts=path))


def test_a_known_hosts_file_that_is_missing_is_bad_input(sshd: Sshd, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"missing cannot be read: .*ssh-keyscan"):
        say_hello(replace(sshd.access(), known_hosts=tmp_path / "missing"))


def test_a_known_hosts_file_that_is_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "known_hosts")
    with pytest.raises(BadInput, match="known_hosts is a directory, a pipe or a device; give it as a file"):
        KnownHosts(tmp_path / "known_hosts")
