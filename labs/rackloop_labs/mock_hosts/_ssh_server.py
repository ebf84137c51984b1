"""The SSH server of a mock server, on a port of its own: authentication, and faults that clients meet."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import cast
from weakref import WeakSet

import asyncssh

from rackloop_drivers.socket_blackhole import block, unblock
from rackloop_labs.mock_hosts._ssh_session import HostSession
from rackloop_labs.mock_hosts._ssh_wire import SshConnection, SshWire

USER = "root"
_BACKLOG = 128
_RETRY_S = 0.1

Forward = Callable[[str, int], int | None]
"""The port on 127.0.0.1 that a host and port named on a mock server lead to, None where they lead nowhere."""


class SshServer:
    """Answers on 127.0.0.1 for one mock server, by turns: every :meth:`open` is a boot, :meth:`close` its end.

    While it is closed the port stays the server's and refuses connections. While its cable is pulled
    (:meth:`cut` to :meth:`join`) nothing is answered or refused, whatever becomes of the server. ``new_session``
    makes what runs a channel; ``forward`` says where the connections go that clients ask for (jump hosts).
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
        self._wires: set[SshWire] = set()
        self._listener: socket.socket | None = None
        self._accepting: asyncio.Task[None] | None = None
        self._is_open = self._is_paused = False
        self.is_cut = False
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
        self._is_open, self._is_paused = True, False
        self._listen()
        self._accept_or_not()

    def pause(self) -> None:
        """Answer nothing any more: the kernel still accepts connections, which are not read."""
        self._is_paused = True
        self._accept_or_not()
        for wire in self._wires:
            wire.pause_reading()

    def resume(self) -> None:
        """Answer again, what came in the meantime first."""
        self._is_paused = False
        for wire in self._wires:
            wire.resume_reading()
        for session in self._sessions:
            session.proceed()
        self._accept_or_not()

    def cut(self) -> None:
        """Pull the network cable: what is sent here is lost, on connections there are and for new ones."""
        self.is_cut = True
        self._listen()
        self._accept_or_not()
        for wire in self._wires:
            wire.cut()

    def join(self) -> None:
        """Plug the cable in again: who still tries gets through, to whatever the server is by now."""
        self.is_cut = False
        for wire in tuple(self._wires):
            wire.join()
        self._listen()
        self._accept_or_not()

    def close(self) -> None:
        """Reset every connection and refuse new ones."""
        self._is_open = False
        for wire in tuple(self._wires):
            wire.reset()
        for session in self._sessions:
            session.server_ended()
        self._accept_or_not()
        self._listen()

    def shut(self) -> None:
        """Close for good and give the port back."""
        self.is_cut = False
        for wire in tuple(self._wires):
            wire.join()
        self.close()
        self._place.close()

    def _listen(self) -> None:
        """Listen for clients, or block the port so that they are not even refused."""
        if not self._is_open and not self.is_cut:
            if self._listener is not None:
                self._listener.close()
                self._listener = None
            return
        listener = self._listener or _bound(self.port)
        (block if self.is_cut else unblock)(listener)
        if self._listener is None:
            listener.listen(_BACKLOG)
            self._listener = listener

    def _accept_or_not(self) -> None:
        accepts = self._is_open and not self._is_paused and not self.is_cut
        if self._accepting is not None and not accepts:
            self._accepting.cancel()
            self._accepting = None
        elif self._accepting is None and accepts and self._listener is not None:
            self._accepting = asyncio.get_running_loop().create_task(self._accept(self._listener))

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                sock, _ = await loop.sock_accept(listener)
                # asyncssh sets TCP_NODELAY, and every reply is written whole.
                await loop.connect_accepted_socket(lambda: SshConnection(loop, self._options, self._wires), sock)
            except OSError:
                await asyncio.sleep(_RETRY_S)  # too many files are open, and some will be closed

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
