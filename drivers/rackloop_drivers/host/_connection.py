"""A connection to a server's SSH: dialled, its host key checked, logged in, all before a deadline."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, NoReturn

from rackloop.clock import Deadline
from rackloop.errors import (
    BadInput,
    DeadlineExceeded,
    LabError,
    LoginRefused,
    NameUnknown,
    NotConnected,
    ProtocolError,
)
from rackloop_drivers.host._access import SshAccess
from rackloop_drivers.host._known_hosts import KnownHosts
from rackloop_drivers.host._login import Answer, answer_to, offers, refusal
from rackloop_drivers.host._paramiko import hang_up, load_paramiko
from rackloop_drivers.socket_keepalive import keep_alive

if TYPE_CHECKING:
    from paramiko import Channel, Transport

# A server that vanishes without a word is noticed after 5 + 3 * 5 s of silence, or unanswered data for as long.
_KEEPALIVE_S = 5
_KEEPALIVE_PROBES = 3
_UNANSWERED_MS = 20_000
# Firewalls on the way, and jump hosts, forget who says nothing.
_CHATTER_S = 15
# How long, and how often, a session is asked for again that the server has no room for.
_PATIENCE_S = 2.0
_PAUSE_S = 0.01
_COMPLAINT_BYTES = 2000

# Without a handler of its own, what paramiko notes of a lost connection would be printed on standard error.
_NO_PRINT = logging.NullHandler()


class Connection:
    """A transport that is logged in, and the jump host's under it. Several threads may use it.

    ``label`` is what commands that run over it are known by on the server; their caller sets it.
    """

    label = ""

    def __init__(self, access: SshAccess, transport: Transport, jump: Connection | None) -> None:
        self._access = access
        self._transport = transport
        self._jump = jump

    @property
    def is_alive(self) -> bool:
        """Whether nothing is known yet of its loss."""
        return self._transport.is_active()

    def open_session(self, deadline: Deadline) -> Channel:
        """A new channel. Raises NotConnected where the connection is lost: then nothing was done with it."""
        what = f"{self._access}: opening a session"
        # The server may not have cleared away a session that has ended.
        channel = deadline.sooner(_PATIENCE_S).poll(
            lambda: self._open("session", None, what, deadline), lambda channel: channel is not None, every_s=_PAUSE_S
        )
        if channel is None:
            raise LabError(f"{what} was refused: does MaxSessions in its sshd_config allow the 10 that are needed?")
        if deadline.is_over():
            hang_up(channel)
            raise DeadlineExceeded(f"{what}: there was no time left; give it more, or look at the server's load")
        return channel

    @contextlib.contextmanager
    def session(self, deadline: Deadline) -> Iterator[Channel]:
        """A new channel for as long as the block lasts; raises as :meth:`open_session` does."""
        channel = self.open_session(deadline)
        try:
            yield channel
        finally:
            hang_up(channel)

    def execute(self, channel: Channel, command: str, what: str, deadline: Deadline) -> None:
        """Have the server's login shell run the simple ``command``, as root where the access has ``sudo``.

        ``what`` names it in messages.
        """
        from paramiko import SSHException

        command = f"exec {'sudo -n -- ' if self._access.sudo else ''}{command}"
        with self._given_up_after(deadline) as end:
            try:
                channel.exec_command(command)
            except (SSHException, EOFError, OSError) as error:
                self._fail(error, what, end)

    def show_shell(self, channel: Channel, term: str, columns: int, rows: int, deadline: Deadline) -> None:
        """Have the server give ``channel`` a terminal and the account's login shell."""
        from paramiko import SSHException

        with self._given_up_after(deadline) as end:
            try:
                channel.get_pty(term, columns, rows)
                channel.invoke_shell()
            except (SSHException, EOFError, OSError) as error:
                self._fail(error, f"{self._access}: opening a shell", end)

    def open_tunnel(self, host: str, port: int, deadline: Deadline) -> Channel:
        """A channel to another machine that is reached from this one."""
        what = f"{self._access}: reaching {host}:{port} from it"
        if (channel := self._open("direct-tcpip", (host, port), what, deadline)) is None:
            raise NotConnected(f"{what} failed; is that server on, and does the jump host's sshd_config allow it?")
        return channel

    def close(self) -> None:
        """Close it; whatever runs over it ends here, though not on the server."""
        self._transport.close()
        if self._jump:
            self._jump.close()

    def _open(self, kind: str, target: tuple[str, int] | None, what: str, deadline: Deadline) -> Channel | None:
        """A channel, or None where the server refuses it."""
        from paramiko import SSHException

        with self._given_up_after(deadline) as end:
            try:
                origin = ("127.0.0.1", 0) if target else None
                return self._transport.open_channel(kind, target, origin, timeout=end.remaining_s())
            except (SSHException, EOFError, OSError) as error:
                # Of several threads that are refused at once, paramiko tells one alone that this is why.
                if self.is_alive and not end.is_over():
                    return None
                self._fail(error, what, end)

    @contextlib.contextmanager
    def _given_up_after(self, deadline: Deadline) -> Iterator[Deadline]:
        """Close the connection when the body has not ended by the deadline, and the server counts as hung.

        A caller in a greater hurry waits for that all the same: others have commands running over it.
        """
        end = _time_to_answer(self._access, deadline)
        timer = threading.Timer(end.remaining_s(), self.close)
        timer.daemon = True
        timer.start()
        try:
            yield end
        finally:
            timer.cancel()

    def _fail(self, error: Exception, what: str, deadline: Deadline) -> NoReturn:
        if deadline.is_over():
            self.close()
            raise DeadlineExceeded(f"{what}: the server did not answer in time; is it hung?") from error
        if self.is_alive:
            raise LabError(f"{what}: the server refused it{_because(error)}") from error
        raise NotConnected(f"{what}: the connection was lost{_because(error)}") from error


def connect(access: SshAccess, deadline: Deadline, let_in_by: Deadline | None = None) -> Connection:
    """Connect and log in, by way of its jump host where it has one; with ``let_in_by``, be let in sooner.

    Raises NotConnected where nothing answers, DeadlineExceeded where it answers too late, ProtocolError where it is
    no SSH server, HostKeyUnknown and HostKeyMismatch before anything is shown to it, LoginRefused, and BadInput
    where a key, a secret or known_hosts cannot be read. With ``sudo`` LoginRefused is also that it is refused.
    """
    load_paramiko()
    logging.getLogger("paramiko").addHandler(_NO_PRINT)
    login = let_in_by or deadline
    jump = connect(access.jump, login) if access.jump else None
    with contextlib.ExitStack() as undo:
        if jump:
            undo.callback(jump.close)
        transport = _logged_in(access, jump, login)
        transport.set_keepalive(_CHATTER_S)
        connection = Connection(access, transport, jump)
        if access.sudo:
            undo.callback(transport.close)
            _require_root(access, connection, deadline)
        undo.pop_all()
    return connection


def _time_to_answer(access: SshAccess, deadline: Deadline) -> Deadline:
    """The deadline, but no sooner than a server of this kind answers."""
    least_ns = deadline.clock.now_ns() + round(access.answers_within_s * 1e9)
    return Deadline(deadline.clock, max(deadline.at_ns, least_ns))


def _require_root(access: SshAccess, connection: Connection, deadline: Deadline) -> None:
    """Raise LoginRefused where ``sudo`` does not let the account be root."""
    what = f"{access}: sudo"
    deadline = _time_to_answer(access, deadline)
    with connection.session(deadline) as channel:
        connection.execute(channel, "true", what, deadline)
        if not channel.status_event.wait(min(deadline.remaining_s(), threading.TIMEOUT_MAX)):
            raise DeadlineExceeded(f"{what} did not answer in time; does it ask another machine for its rules?")
        if channel.recv_exit_status() == 0:
            return
        channel.settimeout(max(deadline.remaining_s(), 0.001))
        said = " ".join(channel.recv_stderr(_COMPLAINT_BYTES).decode(errors="replace").split())
    raise LoginRefused(
        f"{access}: {access.user} was let in, but may not be root there: {said or 'sudo does not say why'}; give it "
        f"the line '{access.user} ALL=(root) NOPASSWD: ALL' in a file below /etc/sudoers.d, or log in as root"
    )


def _logged_in(access: SshAccess, jump: Connection | None, deadline: Deadline) -> Transport:
    """A transport on which the server took one of the offers."""
    tried: list[str] = []
    answer = Answer.MORE
    with contextlib.ExitStack() as undo, contextlib.closing(offers(access)) as offered:
        transport = undo.enter_context(contextlib.closing(_reach(access, jump, deadline)))
        for offer in offered:
            if offer.alone and answer is Answer.REFUSED:
                transport.close()
                transport = undo.enter_context(contextlib.closing(_reach(access, jump, deadline)))
            tried.append(offer.what)
            answer = answer_to(offer, access, transport, tried, deadline)
            if answer is Answer.LET_IN:
                undo.pop_all()
                return transport
    raise refusal(access, tried)


def _reach(access: SshAccess, jump: Connection | None, deadline: Deadline) -> Transport:
    wire = jump.open_tunnel(access.host, access.port, deadline) if jump else _dial(access, deadline)
    try:
        return _greet(access, wire, deadline)
    except BaseException:
        wire.close()
        raise


def _dial(access: SshAccess, deadline: Deadline) -> socket.socket:
    try:
        wire = socket.create_connection((access.host, access.port), timeout=max(deadline.remaining_s(), 0.001))
    except TimeoutError as error:
        raise DeadlineExceeded(f"{access}: nothing answered in time; is the server on, and the network up?") from error
    except socket.gaierror as error:
        said = f"{access}: the name {access.host!r} does not resolve ({error.strerror})"
        raise NameUnknown(f"{said}; look at it in the lab description, or ask the name service") from error
    except OSError as error:
        raise NotConnected(f"{access}: {error.strerror or error}; is the server on, and its sshd running?") from error
    except UnicodeError as error:
        raise BadInput(f"{access}: {access.host!r} is no name that a host can have: {error}") from error
    # paramiko leaves Nagle's algorithm on, and each command would wait 40 ms for a delayed acknowledgement.
    wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    keep_alive(wire, idle_s=_KEEPALIVE_S, probes=_KEEPALIVE_PROBES)
    wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNANSWERED_MS)
    return wire


def _greet(access: SshAccess, wire: socket.socket | Channel, deadline: Deadline) -> Transport:
    """Agree on keys with the server and check that it is the one that is meant."""
    from paramiko import Transport

    known = KnownHosts(access.known_hosts)
    transport = Transport(wire)
    options = transport.get_security_options()
    wanted = known.algorithms(access.host_key_name)
    options.key_types = [
        *(name for name in wanted if name in options.key_types),
        *(name for name in options.key_types if name not in wanted),
    ]
    # Authenticated by the cipher itself, in C; of the others paramiko compares the MAC byte by byte in Python.
    options.ciphers = sorted(options.ciphers, key=lambda name: "-gcm@" not in name)
    transport.banner_timeout = transport.handshake_timeout = deadline.remaining_s()
    agreed = threading.Event()
    try:
        transport.start_client(agreed)
        if not agreed.wait(deadline.remaining_s()) or not transport.is_active():
            _refuse(access, transport.get_exception(), deadline)
        known.check(access, transport.get_remote_server_key())
    except BaseException:
        transport.close()
        raise
    return transport


def _refuse(access: SshAccess, error: Exception | None, deadline: Deadline) -> NoReturn:
    from paramiko import SSHException

    if deadline.is_over():
        raise DeadlineExceeded(
            f"{access}: the server accepts connections, but its SSH did not answer in time; is it hung?"
        ) from error
    if isinstance(error, SSHException) and "banner" not in str(error):
        raise ProtocolError(f"{access}: no SSH could be agreed on with what answers there{_because(error)}") from error
    raise NotConnected(
        f"{access}: the server closed the connection before it said who it is; is it still booting, or has it too "
        "many callers (MaxStartups in its sshd_config)?"
    ) from error


def _because(error: Exception | None) -> str:
    said = str(error or "")
    return f": {said}" if said else ""
