"""A server behind a jump host: both are checked, and reached as one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rackloop.errors import HostKeyUnknown, LoginRefused, NotConnected
from rackloop_drivers.host import SshAccess, SshHost
from tests.deadlines import CLOCK, soon
from tests.sshd_process import Sshd, make_key, running_sshd


@pytest.fixture
def gate() -> Iterator[Sshd]:
    with running_sshd() as running:
        yield running


@pytest.fixture
def inner() -> Iterator[Sshd]:
    with running_sshd() as running:
        yield running


def through(gate: Sshd, inner: Sshd) -> SshAccess:
    return replace(inner.access(), jump=gate.access("gate"))


def test_commands_run_on_the_server_behind(gate: Sshd, inner: Sshd) -> None:
    with SshHost(through(gate, inner), CLOCK) as host:
        home = host.run(("printenv", "HOME"), soon()).stdout
        assert home == f"{inner.folder}/home\n"
        content = bytes(range(256)) * 10_000
        path = host.put_text("file", "")
        host.write_file(path, content, soon())
        assert host.read_file(path, soon()) == content
    assert (gate.connections, inner.connections) == (1, 1)


def test_a_lost_jump_host_is_a_lost_connection(gate: Sshd, inner: Sshd) -> None:
    with SshHost(through(gate, inner), CLOCK) as host:
        process = host.start(("sh", "-c", "echo up; sleep 1000"))
        assert process.read_line(soon()) == "up"
        gate.break_connections()
        with pytest.raises(NotConnected, match=r"srv1: .*sleep 1000.*connection was lost"):
            process.wait(soon())
        assert host.run(("echo", "again"), soon()).stdout == "again\n"


def test_the_keys_of_both_are_checked(gate: Sshd, inner: Sshd, tmp_path: Path) -> None:
    nobody = tmp_path / "known_hosts"
    nobody.write_text("")
    access = through(gate, inner)
    with SshHost(replace(access, known_hosts=nobody), CLOCK) as host, pytest.raises(HostKeyUnknown, match="srv1"):
        host.run(("true",), soon())
    with (
        SshHost(replace(access, jump=replace(gate.access("gate"), known_hosts=nobody)), CLOCK) as host,
        pytest.raises(HostKeyUnknown, match="gate"),
    ):
        host.run(("true",), soon())


def test_a_jump_host_that_lets_nobody_in_is_named(gate: Sshd, inner: Sshd, tmp_path: Path) -> None:
    stranger = make_key(tmp_path / "stranger")
    access = replace(inner.access(), jump=replace(gate.access("gate"), key_file=stranger))
    with SshHost(access, CLOCK) as host, pytest.raises(LoginRefused, match="gate"):
        host.run(("true",), soon())


def test_a_server_that_is_down_behind_its_jump_host_is_named_with_it(gate: Sshd, inner: Sshd) -> None:
    access = through(gate, inner)
    inner.stop()
    with SshHost(access, CLOCK) as host, pytest.raises(NotConnected, match=f"gate .*127.0.0.1:{inner.port}"):
        host.run(("true",), soon())
    inner.start_again()
