"""The SSH server of a mock server, on a port of its own: who gets in, and what a client meets while it is ill."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable
from typing import cast
from weakref import WeakSet

import asyncssh

from rackloop_labs.mock_hosts._ssh_session import HostSession

USER = "root"
_BACKLOG = 128
_RETRY_S = 0.1
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)

Forward = Callable[[str, int], int | None]
"""The port on 127.0.0.1 that a host and port named on a mock server lead to, None where they lead nowhere."""


class SshServer:
    """Answers on 127.0.0.1 for one mock server, by turns: every :meth:`open` is a boot, :meth:`close` its end.

    While it is closed the port stays the server's and refuses connections. ``new_session`` makes what runs a
    channel; ``forward`` says where the connections go that clients ask for (jump hosts).
    """

    def __init__(
        self,
        host_key: asyncssh.SSHKey,
        user_key: asyncssh.SSHKey,
        new_session: Callable[[], HostSession],
        forward: Forward,
    ) -> None:
        self._new_session = new_session
        self._sessions: WeakSet[HostSession] = WeakSet()
        self._transports: WeakSet[asyncio.Transport] = WeakSet()
        self._listener: socket.socket | None = None
        self._accepting: asyncio.Task[None] | None = None
        # Bound but not listening: connections are refused, and nobody else gets the port.
        self._place = _bound(0)
        self.port: int = self._place.getsockname()[1]
        self._options = asyncssh.SSHServerConnectionOptions(
            server_factory=lambda: _Login(user_key, self._session, forward),
            server_host_keys=[host_key],
            encoding=None,
            line_editor=False,
            agent_forwarding=False,
            password_auth=False,
            kbdint_auth=False,
            gss_host=None,
        )

    def open(self) -> None:
        """Listen and answer."""
        self._listener = _bound(self.port)
        self._listener.listen(_BACKLOG)
        self.resume()

    def pause(self) -> None:
        """Answer nothing any more: the kernel still accepts connections, and nobody reads them."""
        if self._accepting is not None:
            self._accepting.cancel()
        for transport in self._transports:
            transport.pause_reading()

    def resume(self) -> None:
        """Answer again, what came in the meantime first."""
        assert self._listener is not None  # noqa: S101 - open comes first
        for transport in self._transports:
            transport.resume_reading()
        for session in self._sessions:
            session.proceed()
        self._accepting = asyncio.get_running_loop().create_task(self._accept(self._listener))

    def close(self) -> None:
        """Reset every connection and refuse new ones."""
        if self._accepting is not None:
            self._accepting.cancel()
        for transport in [transport for transport in self._transports if not transport.is_closing()]:
            sock = cast(socket.socket, transport.get_extra_info("socket"))
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            transport.abort()
        for session in self._sessions:
            session.proceed()
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    def shut(self) -> None:
        """Close for good and give the port back."""
        self.close()
        self._place.close()

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                sock, _ = await loop.sock_accept(listener)
                # asyncssh sets TCP_NODELAY, and every reply is written whole.
                transport, _ = await loop.connect_accepted_socket(
                    lambda: asyncssh.SSHServerConnection(loop, self._options), sock
                )
            except OSError:
                await asyncio.sleep(_RETRY_S)  # too many files are open, and some will be closed
                continue
            self._transports.add(transport)

    def _session(self) -> HostSession:
        session = self._new_session()
        self._sessions.add(session)
        return session


class _Login(asyncssh.SSHServer):
    """One connection: root may log in with the lab's key."""

    def __init__(self, user_key: asyncssh.SSHKey, new_session: Callable[[], HostSession], forward: Forward) -> None:
        self._user_key = user_key
        self._new_session = new_session
        self._forward = forward

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn

    def begin_auth(self, username: str) -> bool:  # noqa: ARG002 - everybody has to prove it
        return True

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        return username == USER and key == self._user_key

    def session_requested(self) -> HostSession:
        return self._new_session()

    def connection_requested(
        self,
        dest_host: str,
        dest_port: int,
        orig_host: str,  # noqa: ARG002 - asyncssh's signature
        orig_port: int,  # noqa: ARG002
    ) -> Awaitable[asyncssh.SSHTCPSession[bytes]]:
        port = self._forward(dest_host, dest_port)
        if port is None:
            raise asyncssh.ChannelOpenError(
                asyncssh.OPEN_CONNECT_FAILED, f"{dest_host} port {dest_port}: no route to host"
            )
        forwarding = self._connection.forward_connection("127.0.0.1", port)
        return cast(Awaitable[asyncssh.SSHTCPSession[bytes]], forwarding)


def _bound(port: int) -> socket.socket:
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.settimeout(0)
    sock.bind(("127.0.0.1", port))
    return sock
