"""The SSH server of a simulated controller, which shows the server's serial console."""

from __future__ import annotations

import asyncssh

from rackloop_drivers.boxes import Account, SerialLine


class SshConsolePeer:
    """An SSH server on a port of its own that serves ``line`` to one client at a time, and without feed to none."""

    def __init__(self, line: SerialLine, account: Account) -> None:
        self.is_fed = True
        self._line = line
        self._account = account
        self._key = asyncssh.generate_private_key("ssh-ed25519")
        self._acceptor: asyncssh.SSHAcceptor | None = None
        self._connections: set[asyncssh.SSHServerConnection] = set()
        self.shown: _Terminal | None = None
        """The terminal that has the console now."""

    @property
    def port(self) -> int:
        """The TCP port on 127.0.0.1 that it listens at."""
        assert self._acceptor is not None, "it listens from start() on"  # noqa: S101
        return int(self._acceptor.get_port())

    @property
    def known_hosts_line(self) -> str:
        """Its line of a known_hosts file."""
        return f"[127.0.0.1]:{self.port} {self._key.export_public_key().decode().strip()}\n"

    async def start(self) -> None:
        """Listen."""
        self._acceptor = await asyncssh.create_server(
            lambda: _Login(self, self._account),
            "127.0.0.1",
            0,
            server_host_keys=[self._key],
            encoding=None,
            line_editor=False,
            public_key_auth=False,
            kbdint_auth=False,
            gss_host=None,
        )

    async def close(self) -> None:
        """End every connection, and listen no more."""
        self.cut()
        if self._acceptor is not None:
            self._acceptor.close()
            await self._acceptor.wait_closed()

    def feed(self, *, on: bool) -> None:
        """Lose power, and with it every client, or get it."""
        self.is_fed = on
        if not on:
            self.cut()

    def cut(self) -> None:
        """End every connection."""
        for connection in tuple(self._connections):
            connection.abort()
        self.shown = None

    def came(self, connection: asyncssh.SSHServerConnection) -> None:
        """A client has connected."""
        if not self.is_fed:
            connection.abort()
        self._connections.add(connection)

    def went(self, connection: asyncssh.SSHServerConnection) -> None:
        """A client has gone."""
        self._connections.discard(connection)

    def show(self, terminal: _Terminal) -> bool:
        """Give a terminal the console; False where another has it."""
        if self.shown is not None:
            return False
        self.shown = terminal
        self._line.listen(terminal.say)
        return True

    def hide(self, terminal: _Terminal) -> None:
        """Take the console from it."""
        self._line.leave(terminal.say)
        if self.shown is terminal:
            self.shown = None

    def type(self, data: bytes) -> None:
        """Have the server get what was typed."""
        self._line.type(data)


class _Login(asyncssh.SSHServer):
    def __init__(self, peer: SshConsolePeer, account: Account) -> None:
        self._peer = peer
        self._account = account

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn
        self._peer.came(conn)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncssh's signature
        self._peer.went(self._connection)

    def begin_auth(self, username: str) -> bool:  # noqa: ARG002
        return True

    def password_auth_supported(self) -> bool:
        return True

    def validate_password(self, username: str, password: str) -> bool:
        return self._account.admits(username, password)

    def session_requested(self) -> _Terminal:
        return _Terminal(self._peer)


class _Terminal(asyncssh.SSHServerSession[bytes]):
    def __init__(self, peer: SshConsolePeer) -> None:
        self._peer = peer

    def connection_made(self, chan: asyncssh.SSHServerChannel[bytes]) -> None:
        self._channel = chan

    def shell_requested(self) -> bool:
        return True

    def session_started(self) -> None:
        if not self._peer.show(self):
            self._channel.write(b"The serial console is in use by another session.\r\n")
            self._channel.exit(1)

    def data_received(self, data: bytes, datatype: int | None) -> None:  # noqa: ARG002 - asyncssh's signature
        self._peer.type(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._peer.hide(self)

    def say(self, data: bytes) -> None:
        self._channel.write(data)
