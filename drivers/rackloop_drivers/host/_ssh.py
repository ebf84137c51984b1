"""A server by SSH: the :class:`~rackloop.abilities.Host` over paramiko."""

from __future__ import annotations

import contextlib
import secrets
import shlex
import threading
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Self

from rackloop.abilities import Completed
from rackloop.clock import Clock, Deadline
from rackloop.errors import (
    DeadlineExceeded,
    HostKeyMismatch,
    HostKeyUnknown,
    LabError,
    LoginRefused,
    NameUnknown,
    NotConnected,
    RackloopError,
)
from rackloop.safety import END_ALL
from rackloop_drivers.clock_access import ClockAccess
from rackloop_drivers.host._access import SshAccess
from rackloop_drivers.host._complaints import complaints
from rackloop_drivers.host._connection import Connection, connect
from rackloop_drivers.host._connection_pool import ConnectionPool
from rackloop_drivers.host._file_name import require_file_name
from rackloop_drivers.host._files import FIND, FOLDER, PIECE_BYTES, PUT, WRITE, unwritten, write_in_pieces
from rackloop_drivers.host._paramiko import hang_up
from rackloop_drivers.host._process import SshProcess
from rackloop_drivers.host._stream import SshStream
from rackloop_drivers.host._watchdog import Watchdog
from rackloop_drivers.host._wrapper import quoted, told, wrapped

NOBODY = "-/-"
"""For whom a command runs that is not of a lab under a lease."""

# sshd serves 10 sessions of a connection (MaxSessions): one is the watchdog's, one is left for killing what runs.
_SESSIONS = 8
# How long calls may take that are given no deadline, and how long closing.
_OWN_S = 30.0
_FAREWELL_S = 3.0
# A server that boots may never answer an attempt that it took; a slow one may only need longer.
_LONGEST_ATTEMPT = 4
# One that was let in waits for what PAM asks, such as a systemd-logind that does not answer: 25 s to minutes.
_FIRST_SESSION_S = 30.0
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 2.0


class SshHost:
    """A server that is logged in to by SSH when first used, and again when the connection was lost.

    A watchdog on the server ends what runs there when it has not heard of this process for 9 s, and at once when the
    connection ends. ``working_for`` names the lab and the lease, parted by a slash, for which commands run: it begins
    their RACKLOOP_COMMAND, by which another process finds what a watchdog could not end.

    Commands run in the account's environment with ``LC_ALL=C.UTF-8`` and the folders of administration programs at
    the end of PATH; the account's login shell is one of the POSIX kind. Several threads may use it: 8 commands run
    at once, more wait for one to end. A server that refused the login is not asked again until :meth:`reconnect`,
    so that no account is locked. Closing it kills what is still running and removes the files it made; leaving a
    ``with`` block closes it.

    Every call raises NotConnected where the server does not answer or the connection is lost, DeadlineExceeded where
    it answers too late, HostKeyUnknown, HostKeyMismatch and LoginRefused as :class:`SshAccess` has it, always with
    the name of the server.
    """

    def __init__(self, access: SshAccess, clock: Clock, working_for: str = NOBODY) -> None:
        self._access = access
        self._clock = clock
        self._working_for = working_for
        self._label = f"{working_for}/{secrets.token_hex(8)}."
        self._connections = 0
        self._slots = threading.BoundedSemaphore(_SESSIONS)
        self._connecting = threading.Lock()
        self._lock = threading.Lock()
        self._making_folder = threading.Lock()
        self._connection: Connection | None = None
        self._watchdog: Watchdog | None = None
        self._refusal: LoginRefused | None = None
        self._running: set[SshProcess] = set()
        self._apart: set[SshStream] = set()
        self._connection_pool = ConnectionPool(lambda: SshHost(access, clock, working_for))
        self._has_orphans = False
        self._is_given_up = False
        self._folder = ""
        self._is_closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def name(self) -> str:
        """The server's name in the lab description."""
        return self._access.name

    @property
    def clock_access(self) -> ClockAccess | None:
        """The place where the port for the server's clock is reached; None where it is not."""
        return self._access.clock

    def run(self, argv: Sequence[str], deadline: Deadline, *, stdin: str = "") -> Completed:
        """Run a command to its end with ``stdin`` as its whole input; a status other than 0 is not an error here.

        Raises ToolError when the program is missing or cannot be executed, and DeadlineExceeded, after killing the
        command's process group, when it does not end in time.
        """
        stdout, done = self._run(argv, deadline, stdin.encode())
        return Completed(done.argv, done.status, stdout.decode(errors="replace"), done.stderr)

    def start(self, argv: Sequence[str], *, is_stream: bool = False) -> SshProcess:
        """Start a command whose input and output are lines; its :meth:`~SshProcess.wait` says if it is missing.

        Those of a stream are bytes. Raises DeadlineExceeded when there is no room for it within 30 s.
        """
        return self._start(argv, Deadline.after(self._clock, _OWN_S), is_stream=is_stream)

    def open_stream(self, argv: Sequence[str]) -> SshStream:
        """Start a command whose input and output are bytes, on a connection of its own, so that no other waits for it.

        Closed with this host, if not before.
        """
        self._must_be_open()
        stream = SshStream(SshHost(self._access, self._clock, self._working_for), argv, self._forget)
        with self._lock:
            self._apart.add(stream)
            is_late = self._is_closed
        if is_late:
            stream.close()
            self._must_be_open()
        return stream

    def run_apart(self, argv: Sequence[str], deadline: Deadline) -> Completed:
        """Run a command as :meth:`run` does, by a login of its own, whatever becomes of the connection there is."""
        self._must_be_open()
        with SshHost(self._access, self._clock, self._working_for) as other:
            return other.run(argv, deadline)

    def start_aside(self, argv: Sequence[str]) -> SshProcess:
        """Start a command that stays for long and says little, which takes no room from those of this connection.

        It has a connection that it shares with up to 7 others of its kind. Closed with this host, if not before.
        """
        self._must_be_open()
        process = self._connection_pool.start(argv)
        if self._is_closed:
            self._connection_pool.close()
            self._must_be_open()
        return process

    def start_if_room(self, argv: Sequence[str]) -> SshProcess | None:
        """Start a command as :meth:`start` does, or None where 8 run already."""
        command = quoted(argv)
        if not self._slots.acquire(blocking=False):
            return None
        return self._start_in_slot(argv, command, Deadline.after(self._clock, _OWN_S))

    @property
    def is_idle(self) -> bool:
        """Whether nothing runs there by this host."""
        with self._lock:
            return not self._running

    def find(self, program: str) -> str | None:
        """The path of ``program`` on PATH, or None."""
        found = self.run(("sh", "-c", FIND, "find", program), Deadline.after(self._clock, _OWN_S))
        return found.stdout if found.status == 0 else None

    def put_text(self, name: str, text: str) -> str:
        """Write ``text`` to a file ``name`` in a private folder and return its path; a second time replaces it."""
        require_file_name(name)
        content, deadline = text.encode(), Deadline.after(self._clock, _OWN_S)
        is_large = len(content) > PIECE_BYTES
        with self._making_folder:
            script = FOLDER if is_large else PUT
            argv = ("sh", "-c", script, "put", name, "600", str(len(content)), self._folder)
            folder, done = self._run(argv, deadline, b"" if is_large else content)
            if not folder:
                raise LabError(f"{self.name}: no folder for temporary files can be made: {done.stderr.strip()}")
            self._folder = folder.decode()
        path = f"{self._folder}/{name}"
        if done.status:
            raise LabError(unwritten(self.name, path, done.stderr))
        if is_large:
            self.write_file(path, content, deadline)
        return path

    def read_file(self, path: str, deadline: Deadline) -> bytes:
        """The content of a file. Raises LabError where it cannot be read."""
        content, done = self._run(("cat", path), deadline)
        if done.status:
            raise LabError(f"{self.name}: {path} cannot be read: {done.stderr.strip()}")
        return content

    def write_file(self, path: str, content: bytes, deadline: Deadline, *, mode: int = 0o600) -> None:
        """Make or replace a file, whole or not at all. Raises LabError where it cannot be written."""
        if len(content) > PIECE_BYTES:
            done = write_in_pieces(lambda argv, piece: self._run(argv, deadline, piece), path, content, mode)
        else:
            argv = ("sh", "-c", WRITE, "write", path, f"{mode:o}", str(len(content)))
            _, done = self._run(argv, deadline, content)
        if done.status:
            raise LabError(unwritten(self.name, path, done.stderr))

    def reconnect(self, deadline: Deadline) -> int:
        """Drop the connection, and wait until the server lets us in again; when the last attempt that failed began.

        Where none did, when this was called.

        Raises DeadlineExceeded, with what it last met, when it does not in time, and at once what more time would
        not mend: an unknown or changed host key, a refused login, a name that never resolved.
        """
        pause_s, attempt_s, session_s = _FIRST_PAUSE_S, self._access.logs_in_within_s, _FIRST_SESSION_S
        away_ns = self._clock.now_ns()
        with self._connecting_by(deadline):
            self._must_be_open()
            self._connection_pool.retire()
            # The name of a server that boots may come back with it; one that never led anywhere will not.
            was_known = self._connection is not None
            self._drop()
            self._refusal = None
            while True:
                began_ns = self._clock.now_ns()
                self._must_be_open()
                try:
                    self._connect(deadline.sooner(attempt_s + session_s), deadline.sooner(attempt_s))
                    return away_ns
                except (HostKeyMismatch, HostKeyUnknown, LoginRefused):
                    raise
                except LabError as error:
                    # One that boots, or goes down, may let us in and open no session, or be something else at first.
                    away_ns = began_ns
                    if isinstance(error, DeadlineExceeded):
                        attempt_s = min(2 * attempt_s, _LONGEST_ATTEMPT * self._access.logs_in_within_s)
                        session_s *= 2
                    if isinstance(error, NameUnknown) and not was_known:
                        raise
                    if deadline.remaining_s() <= pause_s:
                        raise DeadlineExceeded(f"{self.name} did not come back in time; at last: {error}") from error
                self._clock.sleep_until_ns(self._clock.now_ns() + round(pause_s * 1e9))
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def give_up(self) -> None:
        """Drop every connection to a server that is gone, without a question to it; the next call connects again.

        Calls that wait for what ran there raise NotConnected; its watchdog ends it, if the server still runs.
        """
        with self._lock:
            apart = tuple(self._apart)
        for stream in apart:
            stream.give_up()
        self._connection_pool.give_up()
        self._is_given_up = True
        if (connection := self._connection) is not None:
            connection.close()

    def close(self) -> None:
        """Kill what is running, remove the private folder, disconnect. Closing twice does nothing.

        What cannot be done because the server does not answer is left to it. Raises LabError, after all else is
        done, when the server could not end a command.
        """
        with self._lock:
            if self._is_closed:
                return
            running: tuple[SshStream | SshProcess, ...] = (*self._apart, *self._running)
        stuck = complaints((*(process.kill for process in running), self._connection_pool.close))
        deadline = Deadline.after(self._clock, _FAREWELL_S)
        with contextlib.suppress(RackloopError):
            if not self._is_given_up:
                if self._has_orphans:
                    self._connected(deadline)
                if self._folder:
                    self.run(("rm", "-rf", "--", self._folder), deadline)
        with self._lock:
            self._is_closed = True
        if self._watchdog and not stuck:
            self._watchdog.dismiss()
        self._drop()
        if stuck:
            raise LabError("\n".join(stuck))

    def kill_group(self, pid: int, deadline: Deadline) -> None:
        """Kill a process group that a command of this host leads."""
        connection = self._connection
        if connection is None:
            raise NotConnected(f"{self.name}: there is no connection to kill process {pid} over")
        self._do(connection, ("sh", "-c", 'kill -9 "-$1"', "kill", str(pid)), deadline)

    def note_end(self, process: SshProcess) -> None:
        """Free what a process of this host had."""
        with self._lock:
            self._running.discard(process)
            self._has_orphans |= process.is_lost
            connection = self._connection
        if connection and connection.label == process.given_up:
            connection.close()
        self._slots.release()

    def _run(self, argv: Sequence[str], deadline: Deadline, stdin: bytes = b"") -> tuple[bytes, Completed]:
        """Run a command to its end; over a new connection where the server had given up the one there is."""
        process = self._start(argv, deadline)
        try:
            process.feed(stdin)
            return process.wait_bytes(deadline)
        except NotConnected:
            if process.given_up is None:
                raise
            return self._run(argv, deadline, stdin)
        except BaseException:
            # What is stuck in the kernel is late all the same, and that is what the caller asked about.
            with contextlib.suppress(LabError):
                process.kill()
            raise

    def _forget(self, stream: SshStream) -> None:
        with self._lock:
            self._apart.discard(stream)

    def _start(self, argv: Sequence[str], deadline: Deadline, *, is_stream: bool = False) -> SshProcess:
        command = quoted(argv)
        if not self._slots.acquire(timeout=min(deadline.remaining_s(), threading.TIMEOUT_MAX)):
            raise DeadlineExceeded(f"{self.name}: {_SESSIONS} commands run there already, and none ended in time")
        return self._start_in_slot(argv, command, deadline, is_stream=is_stream)

    def _start_in_slot(
        self, argv: Sequence[str], command: str, deadline: Deadline, *, is_stream: bool = False
    ) -> SshProcess:
        try:
            process = self._open(argv, command, deadline, is_stream=is_stream)
        except BaseException:
            self._slots.release()
            raise
        with self._lock:
            self._running.add(process)
        return process

    def _open(self, argv: Sequence[str], command: str, deadline: Deadline, *, is_stream: bool) -> SshProcess:
        """Start the command over the connection there is; one that turns out to be lost is made anew, once."""
        connection = self._connected(deadline)
        try:
            channel = connection.open_session(deadline)
        except NotConnected:
            connection = self._connected(deadline)
            channel = connection.open_session(deadline)
        label = connection.label
        process = SshProcess(
            self.name,
            tuple(argv),
            label,
            channel,
            self._clock,
            self,
            answers_within_s=self._access.answers_within_s,
            is_stream=is_stream,
        )
        try:
            connection.execute(channel, wrapped(command, label), str(process), deadline)
        except BaseException:
            hang_up(channel)
            raise
        return process

    def _connected(self, deadline: Deadline) -> Connection:
        """The connection there is, or a new one. Raises LabError when this host is closed."""
        with self._connecting_by(deadline):
            self._must_be_open()
            if self._refusal:
                raise LoginRefused(f"{self._refusal} (not tried again)")
            if self._connection is None or not self._connection.is_alive:
                self._drop()
                self._connection_pool.retire()
                return self._connect(deadline)
            return self._connection

    def _connect(self, deadline: Deadline, let_in_by: Deadline | None = None) -> Connection:
        try:
            connection = connect(self._access, deadline, let_in_by)
        except LoginRefused as error:
            self._refusal = error
            raise
        self._connections += 1
        # With an end, as what begins with a label is ended with it: the first is none of the tenth's.
        connection.label = f"{self._label}{self._connections}."
        try:
            self._end_orphans(connection, deadline)
            watchdog = Watchdog(self.name, connection, deadline)
            with self._lock:
                # Another thread may have closed this host meanwhile, and nobody would close the connection again.
                self._must_be_open()
                self._connection, self._watchdog = connection, watchdog
                self._is_given_up = False
        except BaseException:
            connection.close()
            raise
        return connection

    def _end_orphans(self, connection: Connection, deadline: Deadline) -> None:
        with self._lock:
            # What still counts as running ran over a connection that is gone.
            had_orphans = self._has_orphans or bool(self._running)
        if had_orphans:
            self._do(connection, ("sh", "-c", END_ALL, "kill", self._label), deadline)
        with self._lock:
            self._has_orphans = False

    def _do(self, connection: Connection, argv: Sequence[str], deadline: Deadline) -> None:
        """Run a short command of our own to its end, whether or not there is room for another."""
        what = f"{self.name}: {told(argv)}"
        with connection.session(deadline) as channel:
            connection.execute(channel, shlex.join(argv), what, deadline)
            if not channel.status_event.wait(min(deadline.remaining_s(), threading.TIMEOUT_MAX)):
                raise DeadlineExceeded(f"{what}: it did not end in time")

    def _must_be_open(self) -> None:
        if self._is_closed:
            raise LabError(f"{self.name}: this host is closed: open another to run commands")

    def _drop(self) -> None:
        if self._connection:
            self._connection.close()
            self._connection = self._watchdog = None

    @contextlib.contextmanager
    def _connecting_by(self, deadline: Deadline) -> Iterator[None]:
        """One thread connects, the others wait for it."""
        if not self._connecting.acquire(timeout=min(deadline.remaining_s(), threading.TIMEOUT_MAX)):
            raise DeadlineExceeded(f"{self.name}: it was still being connected to at the deadline")
        try:
            yield
        finally:
            self._connecting.release()
