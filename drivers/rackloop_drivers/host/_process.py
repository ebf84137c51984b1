"""A command that runs on a server: lines in and out, its exit status, and its termination."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from rackloop.abilities import Completed
from rackloop.clock import Clock, Deadline
from rackloop.errors import DeadlineExceeded, LabError, NotConnected, ToolError
from rackloop_drivers.host._line_buffer import LineBuffer
from rackloop_drivers.host._paramiko import hang_up
from rackloop_drivers.host._wrapper import NOT_BEGUN, ZERO, Head, Tail, UnbufferedTail, told

if TYPE_CHECKING:
    from paramiko import Channel

_CHUNK_BYTES = 1 << 16
_COMPLAINT_CHARACTERS = 2000
_LOOK_S = 0.1

_CANNOT_EXECUTE = 126
_NOT_FOUND = 127


class Owner(Protocol):
    """The host that a process belongs to."""

    def kill_group(self, pid: int, deadline: Deadline) -> None:
        """Kill a process group on the server; raises LabError where the server cannot be asked."""
        ...

    def note_end(self, process: SshProcess) -> None:
        """The process has ended, or its connection was lost."""
        ...


class SshProcess:
    """A command of an :class:`~rackloop_drivers.host.SshHost`, the leader of a process group that ends with it.

    What the leader leaves behind in its group is killed when it ends; a daemon that means to stay makes a session of
    its own. A command that a signal N ended has the status 128 + N. Bytes that are not UTF-8 are replaced. One
    thread may read lines while others write, wait or kill. A stream is read as bytes instead, none of them held back
    for what may come behind them. What it prints is taken while a caller reads or waits; with 2 MiB not taken it has
    to wait.
    """

    def __init__(
        self,
        host: str,
        argv: tuple[str, ...],
        label: str,
        channel: Channel,
        clock: Clock,
        owner: Owner,
        *,
        answers_within_s: float,
        is_stream: bool = False,
    ) -> None:
        self._host = host
        self._argv = argv
        self._label = label
        self._channel = channel
        self._clock = clock
        self._owner = owner
        self._answers_within_s = answers_within_s
        self._head = Head()
        self._tail = UnbufferedTail(label) if is_stream else Tail(label)
        self._stderr_tail = Tail(label)
        self._lines = LineBuffer()
        self._stderr = bytearray()
        self._reading = threading.RLock()
        self._sending = threading.Lock()
        self._ending = threading.Lock()
        self._status: int | None = None
        self._lost: NotConnected | None = None
        self._completed: Completed | None = None
        self._has_input = True
        self._is_signalled = False
        # Set when either stream has something or ends; a channel's descriptor would cost a pipe for each command.
        self._news = threading.Event()
        channel.in_buffer.set_event(self._news)
        channel.in_stderr_buffer.set_event(self._news)

    def __str__(self) -> str:
        return f"{self._host}: {told(self._argv)}"

    @property
    def pid(self) -> int | None:
        """The process, and process group, on the server; None until it has said so."""
        return self._head.pid

    @property
    def is_lost(self) -> bool:
        """Whether the connection to it was lost: it may go on running on the server."""
        return self._lost is not None

    @property
    def given_up(self) -> str | None:
        """The label of the connection that the server had given up before the command, which was not begun."""
        return self._label if self._tail.status == NOT_BEGUN else None

    def feed(self, data: bytes) -> None:
        """Give the command ``data`` as its whole input while it runs, without waiting for it to be read."""
        if data:
            # It may be larger than the window, and the command may print before it reads: nobody waits here.
            threading.Thread(target=self._send_all, args=(data,), daemon=True).start()
        else:
            self._close_input(self._answer_deadline())

    def write_line(self, line: str) -> None:
        """Give the command ``line`` and a newline on its standard input at once; waits while it does not read.

        Raises ToolError when the command no longer reads.
        """
        if not self._send(line.encode() + b"\n"):
            raise ToolError(f"{self}: it no longer reads its input{self._complaint()}")

    def read_line(self, deadline: Deadline) -> str | None:
        """The next line of standard output without its newline; None at the end of it.

        Raises DeadlineExceeded when no whole line came in time, keeping what has come of it for the next call, and
        NotConnected when the connection was lost.
        """
        with self._sole_reader(deadline):
            while (line := self._lines.pop()) is None and not self._lines.is_complete:
                self._progress(deadline, "printed no line in time")
            if line is None and self._lost:
                raise self._lost
            return line

    def write_bytes(self, data: bytes) -> None:
        """Give the command ``data`` on its standard input; waits while it does not read. Raises as write_line does."""
        if not self._send(data):
            raise ToolError(f"{self}: it no longer reads its input{self._complaint()}")

    def read_bytes(self, deadline: Deadline) -> bytes:
        """The bytes of a stream's standard output that have come, once any have; none at its end.

        Raises DeadlineExceeded where nothing came in time, and NotConnected when the connection was lost.
        """
        with self._sole_reader(deadline):
            while not (data := self._lines.rest_bytes()) and not self._lines.is_complete:
                self._progress(deadline, "printed nothing in time")
            if not data and self._lost:
                raise self._lost
            return data

    def wait(self, deadline: Deadline) -> Completed:
        """Close the command's input and wait for its end.

        ``stdout`` of the answer is what no ``read_line`` had taken, ``stderr`` is everything. Raises
        DeadlineExceeded, and leaves the command running, when it does not end in time, ToolError when its program is
        missing or cannot be executed, and NotConnected when the connection was lost.
        """
        self._close_input(deadline)
        with self._sole_reader(deadline):
            self._await_end(deadline)
            if self._completed is None:
                self._completed = self._complete(self._lines.rest())
            return self._completed

    def wait_bytes(self, deadline: Deadline) -> tuple[bytes, Completed]:
        """As :meth:`wait`, after :meth:`feed`, with standard output as it came beside the rest."""
        with self._sole_reader(deadline):
            self._await_end(deadline)
            return self._lines.rest_bytes(), self._complete("")

    def kill(self) -> None:
        """End the command and its process group with SIGKILL. Killing what has ended does nothing.

        It may take as long as the server may take to answer. Raises LabError when it does not end; one whose connection
        was lost is ended when the server is next reached.
        """
        try:
            with contextlib.suppress(NotConnected):
                self._end(self._answer_deadline())
        except DeadlineExceeded as error:
            within = f"within {self._answers_within_s:g} s"
            if self.pid is None:
                raise LabError(
                    f"{self}: the server did not say {within} which process it is, to kill it; is it hung?"
                ) from error
            if not self._is_signalled:
                raise LabError(f"{self}: the server did not send it SIGKILL {within}; is it hung?") from error
            raise LabError(
                f"{self}: SIGKILL did not end it {within}; it is stuck in the kernel, so look for hung I/O in dmesg"
            ) from error

    def _answer_deadline(self) -> Deadline:
        return Deadline.after(self._clock, self._answers_within_s)

    def _end(self, deadline: Deadline) -> None:
        with self._ending:
            while self.pid is None and not self._is_over:
                self._look(deadline)
            if self.pid is None or self._is_over:
                return
            # A server that does not answer has had its connection closed, and with it this channel.
            with contextlib.suppress(NotConnected, DeadlineExceeded):
                self._owner.kill_group(self.pid, deadline)
                self._is_signalled = True
        with self._sole_reader(deadline):
            self._await_end(deadline)

    @property
    def _is_over(self) -> bool:
        return self._status is not None or self._lost is not None

    def _look(self, deadline: Deadline) -> None:
        """Learn what has come, or let who is reading already do so."""
        if self._reading.acquire(timeout=_LOOK_S):
            try:
                with contextlib.suppress(DeadlineExceeded):
                    self._progress(deadline.sooner(_LOOK_S), "did not start in time")
            finally:
                self._reading.release()
        if deadline.is_over():
            raise DeadlineExceeded(f"{self}: it did not start in time")

    def _await_end(self, deadline: Deadline) -> None:
        while not self._is_over:
            self._progress(deadline, "did not end in time")
        if self._lost:
            raise self._lost

    def _complete(self, stdout: str) -> Completed:
        assert self._status is not None  # noqa: S101 - it has ended
        stderr = self._stderr.decode(errors="replace")
        if self._status in {_CANNOT_EXECUTE, _NOT_FOUND} and stderr.startswith(f"{ZERO}:"):
            if self._status == _NOT_FOUND:
                raise ToolError(
                    f"{self._argv[0]} was not found on {self._host}: install the package that has it there, or put "
                    "its folder on PATH"
                )
            raise ToolError(f"{self}: cannot be executed: {stderr.strip().rpartition(': ')[2]}")
        if self._status == _NOT_FOUND and self.pid is None:
            raise ToolError(f"{self}: cannot be started: {stderr.strip()}; the server needs sh and setsid (util-linux)")
        return Completed(self._argv, self._status, stdout, stderr)

    @contextlib.contextmanager
    def _sole_reader(self, deadline: Deadline) -> Iterator[None]:
        if not self._reading.acquire(timeout=min(deadline.remaining_s(), threading.TIMEOUT_MAX)):
            raise DeadlineExceeded(f"{self}: it neither printed nor ended in time{self._complaint()}")
        try:
            yield
        finally:
            self._reading.release()

    def _progress(self, deadline: Deadline, failing: str) -> None:
        """Take some output or note the end of the command; DeadlineExceeded when neither came in time."""
        while not self._is_over:
            # This is asked before the streams are emptied: nothing comes after it.
            is_cut_off = self._channel.closed or self._channel.eof_received
            if self._take():
                return
            if is_cut_off:
                self._lost = NotConnected(
                    f"{self}: the connection was lost while it ran; was the server switched off, did it crash, or did "
                    "this machine stand still?"
                )
                self._finish()
                return
            if deadline.is_over():
                raise DeadlineExceeded(f"{self}: it {failing}{self._complaint()}")
            self._news.wait(min(deadline.remaining_s(), threading.TIMEOUT_MAX))

    def _take(self) -> bool:
        """Take what is there of both streams; False when nothing is."""
        has_taken = False
        if self._channel.recv_stderr_ready():
            self._stderr += self._stderr_tail.strip(self._channel.recv_stderr(_CHUNK_BYTES))
            has_taken = True
        if self._channel.recv_ready():
            if output := self._tail.strip(self._head.strip(self._channel.recv(_CHUNK_BYTES))):
                self._lines.feed(output)
            has_taken = True
        if self._status is None and self._tail.status is not None and self._stderr_tail.status is not None:
            if self._tail.status == NOT_BEGUN:
                self._lost = NotConnected(
                    f"{self}: it was not begun: the server had not heard of this harness for 6 s or more, and has "
                    "ended what it ran for it; did this machine stand still?"
                )
            else:
                self._status = self._tail.status
            self._finish()
        return has_taken

    def _finish(self) -> None:
        self._lines.is_complete = True
        with self._sending:
            self._has_input = False
            hang_up(self._channel)
        self._owner.note_end(self)

    def _close_input(self, deadline: Deadline) -> None:
        if not self._sending.acquire(timeout=min(deadline.remaining_s(), threading.TIMEOUT_MAX)):
            raise DeadlineExceeded(f"{self}: it did not take its input in time{self._complaint()}")
        try:
            if self._has_input:
                self._has_input = False
                self._channel.shutdown_write()
        except (OSError, EOFError):
            # The connection is lost, which whoever reads is told.
            return
        finally:
            self._sending.release()

    def _send_all(self, data: bytes) -> None:
        view = memoryview(data)
        while view and self._send(bytes(view[:_CHUNK_BYTES])):
            view = view[_CHUNK_BYTES:]
        with contextlib.suppress(DeadlineExceeded):
            self._close_input(self._answer_deadline())

    def _send(self, data: bytes) -> bool:
        """Send all of it, waiting while the command does not read; False when it never will."""
        with self._sending:
            try:
                while data and self._has_input:
                    sent = self._channel.send(data)
                    if not sent:
                        return False
                    data = data[sent:]
            except (OSError, EOFError):
                return False
            return self._has_input

    def _complaint(self) -> str:
        said = self._stderr.decode(errors="replace").strip()[-_COMPLAINT_CHARACTERS:]
        return f"; it said: {said}" if said else ""
