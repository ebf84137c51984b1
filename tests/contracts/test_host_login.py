"""Logging in by SSH: keys, agents, passwords, and what is said when none of them opens the server."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import subprocess
import threading
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import asyncssh
import pytest

from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import BadInput, LoginRefused, NotConnected
from rackloop.lab import EnvironmentSecret, FileSecret
from rackloop_drivers.host import SshAccess, SshHost
from rackloop_drivers.host._login import _read_key
from tests.deadlines import CLOCK, soon
from tests.sshd_process import Sshd, make_key, require_sudo, running_sshd

PASSWORD = "correct horse"  # noqa: S105 - of a server that lives as long as a test


@pytest.fixture
def sshd() -> Iterator[Sshd]:
    with running_sshd() as running:
        yield running


@pytest.fixture
def no_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


def say_hello(access: SshAccess) -> str:
    with SshHost(access, CLOCK) as host:
        return host.run(("echo", "hello"), soon()).stdout


@contextmanager
def agent_with(key: Path, folder: Path) -> Iterator[dict[str, str]]:
    """OpenSSH's own agent with one key, by the environment that leads to it."""
    environment = {"SSH_AUTH_SOCK": str(folder / "agent")}
    with closing(socket.socket(socket.AF_UNIX)) as ready:
        agent = subprocess.Popen(
            ("ssh-agent", "-D", "-a", environment["SSH_AUTH_SOCK"]), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert agent.stdout is not None
        # It listens once it has said where.
        agent.stdout.readline()
        ready.connect(environment["SSH_AUTH_SOCK"])
    try:
        subprocess.run(("ssh-add", "-q", str(key)), env=environment, check=True)
        yield environment
    finally:
        agent.kill()
        agent.communicate()


class PasswordServer(asyncssh.SSHServer):
    """Lets in who has the password, and notes what it was shown; ``on_login`` comes before the first session."""

    def __init__(self, shown: list[str], on_login: Callable[[], None]) -> None:
        self._shown = shown
        self._on_login = on_login
        self.connection: asyncssh.SSHServerConnection | None = None

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self.connection = conn

    def password_auth_supported(self) -> bool:
        return True

    def validate_password(self, username: str, password: str) -> bool:
        self._shown.append(password)
        return password == PASSWORD

    def auth_completed(self) -> None:
        self._on_login()


def run_here(process: asyncssh.SSHServerProcess[str]) -> None:
    """Run a short command that reads nothing; one that reads what comes, the watchdog, waits as long as its client."""
    if "at_the_end" in (process.command or ""):
        return
    argv = ("sh", "-c", process.command or "")
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    process.stdout.write(done.stdout)
    process.stderr.write(done.stderr)
    process.exit(done.returncode)


@contextmanager
def password_server(folder: Path, on_login: Callable[[], None] = lambda: None) -> Iterator[tuple[list[str], SshAccess]]:
    """A server with a password, by what it was shown so far and how to reach it."""
    key = make_key(folder / "host")
    shown: list[str] = []
    servers: list[PasswordServer] = []
    loop = asyncio.new_event_loop()
    serving = threading.Thread(target=loop.run_forever)
    serving.start()

    def make_server() -> PasswordServer:
        servers.append(PasswordServer(shown, on_login))
        return servers[-1]

    async def listen() -> asyncssh.SSHAcceptor:
        return await asyncssh.listen(
            "127.0.0.1", 0, server_host_keys=[key], server_factory=make_server, process_factory=run_here
        )

    async def end() -> None:
        server.close()
        for connection in (one.connection for one in servers if one.connection):
            connection.abort()
            await connection.wait_closed()
        await server.wait_closed()

    server = asyncio.run_coroutine_threadsafe(listen(), loop).result()
    known = folder / "known_hosts"
    known.write_text(f"[127.0.0.1]:{server.get_port()} {key.with_suffix('.pub').read_text()}")
    try:
        yield shown, SshAccess("srv1", "127.0.0.1", known, server.get_port(), "operator", use_agent=False)
    finally:
        asyncio.run_coroutine_threadsafe(end(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        serving.join()
        loop.close()


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_a_key_of_each_kind_opens_the_server(sshd: Sshd, tmp_path: Path, kind: str) -> None:
    key = make_key(tmp_path / "key", kind)
    (sshd.folder / "authorized_keys").write_text(key.with_suffix(".pub").read_text())
    assert say_hello(replace(sshd.access(), key_file=key)) == "hello\n"


def test_a_wrong_key_is_named_and_not_shown_again_until_told(sshd: Sshd, tmp_path: Path) -> None:
    stranger = make_key(tmp_path / "stranger")
    with SshHost(replace(sshd.access(), key_file=stranger), CLOCK) as host:
        with pytest.raises(LoginRefused, match=f"srv1.*the key {stranger}"):
            host.run(("true",), soon())
        before = sshd.connections
        with pytest.raises(LoginRefused, match="not tried again"):
            host.run(("true",), soon())
        assert sshd.connections == before
        with pytest.raises(LoginRefused):
            host.reconnect(soon())
        (sshd.folder / "authorized_keys").write_text(stranger.with_suffix(".pub").read_text())
        host.reconnect(soon())
        assert host.run(("echo", "let in"), soon()).stdout == "let in\n"


def test_an_encrypted_key_needs_its_passphrase(sshd: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = make_key(tmp_path / "key", passphrase="opensesame")  # noqa: S106 - of a key that lives as long as a test
    (sshd.folder / "authorized_keys").write_text(key.with_suffix(".pub").read_text())
    access = replace(sshd.access(), key_file=key)
    with pytest.raises(BadInput, match=r"key is encrypted.*ssh-add"):
        say_hello(access)
    given = replace(access, passphrase=EnvironmentSecret("KEY_PASSPHRASE"))
    monkeypatch.setenv("KEY_PASSPHRASE", "wrong-passphrase")
    with pytest.raises(BadInput, match="passphrase is wrong") as refused:
        say_hello(given)
    assert "wrong-passphrase" not in str(refused.value)
    monkeypatch.setenv("KEY_PASSPHRASE", "opensesame")
    assert say_hello(given) == "hello\n"


@pytest.mark.parametrize(
    ("content", "said"), [(None, "cannot be read: No such file"), ("no key", "no private key")], ids=["missing", "text"]
)
def test_a_key_that_is_none_is_bad_input(sshd: Sshd, tmp_path: Path, content: str | None, said: str) -> None:
    key = tmp_path / "key"
    if content is not None:
        key.write_text(content)
    with pytest.raises(BadInput, match=said):
        say_hello(replace(sshd.access(), key_file=key))


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_key_that_is_no_file_is_refused_and_not_waited_for(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "key")
    with pytest.raises(BadInput, match="key is a directory, a pipe or a device; give it as a file"):
        _read_key(tmp_path / "key", None)


def test_the_agents_keys_are_used_where_no_key_is_given(
    sshd: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with agent_with(sshd.key_file, tmp_path) as environment:
        monkeypatch.setenv("SSH_AUTH_SOCK", environment["SSH_AUTH_SOCK"])
        assert say_hello(replace(sshd.access(), key_file=None)) == "hello\n"
        with pytest.raises(BadInput, match="nothing to log in with"):
            say_hello(replace(sshd.access(), key_file=None, use_agent=False))


@pytest.mark.usefixtures("no_agent")
def test_having_nothing_to_show_is_bad_input(sshd: Sshd) -> None:
    with pytest.raises(BadInput, match=r"srv1.*nothing to log in with: give key_file or password"):
        say_hello(replace(sshd.access(), key_file=None))


def test_a_password_opens_the_server(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(f"{PASSWORD}\n")
    with password_server(tmp_path) as (shown, access):
        assert say_hello(replace(access, password=FileSecret(tmp_path / "secret"))) == "hello\n"
    assert shown == [PASSWORD]


@pytest.mark.parametrize(("takes_s", "within_s", "logins"), [(25.0, 60.0, 1), (50.0, 300.0, 2)])
def test_a_server_that_let_us_in_is_waited_for_as_long_as_pam_may_take(
    tmp_path: Path, takes_s: float, within_s: float, logins: int
) -> None:
    """By the clock of the host, which the server sets forward between the login and the first session."""
    clock = VirtualClock()
    with password_server(tmp_path, lambda: clock.advance(takes_s)) as (shown, access):
        (tmp_path / "password").write_text(PASSWORD)
        knowing = replace(access, password=FileSecret(tmp_path / "password"))
        with SshHost(knowing, clock) as host:
            began_ns = clock.now_ns()
            away_ns = host.reconnect(Deadline.after(clock, within_s))
        assert len(shown) == logins
        assert away_ns == began_ns, "it let us in then, or the attempt that failed began then"


def test_a_wrong_password_is_shown_once_and_never_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "secret").write_text("battery staple")
    caplog.set_level(logging.DEBUG)
    with password_server(tmp_path) as (shown, opened):
        access = replace(opened, password=FileSecret(tmp_path / "secret"))
        host = SshHost(access, CLOCK)
        messages = []
        for _ in range(3):
            with pytest.raises(LoginRefused, match="the password") as refused:
                host.run(("true",), soon())
            messages.append(str(refused.value))
        host.close()
    assert shown == ["battery staple"]
    for text in (*messages, caplog.text, repr(access), str(access), repr(host)):
        assert "battery" not in text


def test_a_refused_key_is_followed_by_the_password(sshd: Sshd, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("battery staple")
    key = make_key(tmp_path / "stranger")
    access = replace(sshd.access(), key_file=key, password=FileSecret(tmp_path / "secret"))
    with pytest.raises(LoginRefused, match=f"none of: the key {key}, the password;"):
        say_hello(access)


def test_a_password_follows_a_key_on_a_server_that_grants_one_request_a_connection(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(PASSWORD)
    with password_server(tmp_path) as (shown, opened):
        access = replace(opened, key_file=make_key(tmp_path / "stranger"), password=FileSecret(tmp_path / "secret"))
        assert say_hello(access) == "hello\n"
    assert shown == [PASSWORD]


def test_a_refused_password_is_known_as_such_where_no_second_failure_is_answered(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("battery staple")
    key = make_key(tmp_path / "stranger")
    with (
        running_sshd("MaxAuthTries 2") as sshd,
        pytest.raises(LoginRefused, match=f"none of: the key {key}, the password;"),
    ):
        say_hello(replace(sshd.access(), key_file=key, password=FileSecret(tmp_path / "secret")))


@pytest.mark.parametrize(("is_known", "connections"), [(True, 1), (False, 2)])
def test_a_password_that_is_wanted_beside_a_key_is_shown_where_the_key_was(
    is_known: bool, connections: int, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("battery staple")
    with running_sshd("AuthenticationMethods publickey,password publickey,keyboard-interactive password") as sshd:
        key = sshd.key_file if is_known else make_key(tmp_path / "stranger")
        before = sshd.connections
        with pytest.raises(LoginRefused, match=f"none of: the key {key}, the password;"):
            say_hello(replace(sshd.access(), key_file=key, password=FileSecret(tmp_path / "secret")))
        assert sshd.connections == before + connections


def test_being_hung_up_on_says_what_was_shown(tmp_path: Path) -> None:
    stranger = make_key(tmp_path / "stranger")
    with (
        running_sshd("MaxAuthTries 1") as sshd,
        pytest.raises(NotConnected, match=f"closed the connection when it was shown the key {stranger}"),
    ):
        say_hello(replace(sshd.access(), key_file=stranger))


def test_commands_of_an_account_run_as_root(sshd: Sshd) -> None:
    require_sudo()
    with SshHost(replace(sshd.access(), sudo=True), CLOCK) as host:
        assert host.run(("sh", "-c", "id -u; echo $SUDO_USER"), soon()).stdout == f"0\n{sshd.user}\n"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo 'sudo: a password is required' >&2; exit 1", "may not be root there: sudo: a password is required"),
        (None, r"may not be root there: .*sudo: (command )?not found"),
    ],
)
def test_an_account_that_may_not_be_root_is_told_what_to_allow(tmp_path: Path, script: str | None, said: str) -> None:
    if script is not None:
        (tmp_path / "sudo").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "sudo").chmod(0o755)
    (tmp_path / "sh").symlink_to("/bin/sh")
    with running_sshd(path=str(tmp_path)) as sshd, SshHost(replace(sshd.access(), sudo=True), CLOCK) as host:
        with pytest.raises(LoginRefused, match=rf"{said}; give it the line '{sshd.user} ALL=\(root\) NOPASSWD: ALL'"):
            host.run(("true",), soon())
        with pytest.raises(LoginRefused, match="not tried again"):
            host.run(("true",), soon())
        assert sshd.connections == 1


def test_a_key_of_whose_bytes_one_is_wrong_is_bad_input(tmp_path: Path) -> None:
    key = make_key(tmp_path / "key")
    first, *lines, last = key.read_text().splitlines()
    whole = bytearray(b64decode("".join(lines)))
    public = b64decode((tmp_path / "key.pub").read_text().split()[1])[-32:]
    # The private part has the public one as well, which must agree.
    whole[whole.rindex(public)] ^= 1
    key.write_text(f"{first}\n{b64encode(whole).decode()}\n{last}\n")
    with pytest.raises(BadInput, match="cannot be used: it is no private key of type"):
        _read_key(key, None)
