"""Commands on this machine: the :class:`~rackloop.abilities.Executor` that needs no wire."""

from __future__ import annotations

import contextlib
import os
import select
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from rackloop.abilities import Completed
from rackloop.clock import Clock, Deadline
from rackloop.errors import BadInput, DeadlineExceeded, LabError, ToolError
from rackloop.lab import environment_for_programs
from rackloop_drivers.host._complaints import complaints
from rackloop_drivers.host._file_name import require_file_name
from rackloop_drivers.host._line_buffer import LineBuffer

_CHUNK_BYTES = 1 << 16
_COMPLAINT_CHARACTERS = 2000
_KILL_GRACE_S = 5.0
_LONGEST_POLL_S = 3600.0
_STDERR_GRACE_S = 1.0


class LocalProcess:
    """A command of a :class:`LocalExecutor`, the leader of a process group that ends with it.

    What the leader leaves behind in its group is killed when it ends; a daemon that means to stay makes a session
    of its own. Bytes that are not UTF-8 are replaced. One thread may read lines while others write, wait or kill.
    """

    def __init__(
        self,
        argv: tuple[str, ...],
        popen: subprocess.Popen[bytes],
        clock: Clock,
        when_ended: Callable[[LocalProcess], None],
    ) -> None:
        assert popen.stdout is not None  # noqa: S101 - LocalExecutor always starts with pipes
        assert popen.stderr is not None  # noqa: S101
        self._argv = argv
        self._popen = popen
        self._clock = clock
        self._when_ended = when_ended
        self._stdout = popen.stdout
        os.set_blocking(self._stdout.fileno(), False)
        self._pidfd = os.pidfd_open(popen.pid)
        self._lines = LineBuffer()
        self._reading = threading.RLock()
        self._ending = threading.Lock()
        self._status: int | None = None
        self._completed: Completed | None = None
        self._stderr = bytearray()
        self._stderr_thread = threading.Thread(target=self._collect, args=(popen.stderr,), daemon=True)
        self._stderr_thread.start()

    def __str__(self) -> str:
        return shlex.join(self._argv)

    def write_line(self, line: str) -> None:
        """Give the command ``line`` and a newline on its standard input at once; waits while its pipe is full.

        Raises ToolError when the command no longer reads.
        """
        stdin = self._popen.stdin
        try:
            if stdin is not None and not stdin.closed:
                stdin.write(line.encode() + b"\n")
                stdin.flush()
                return
        except (BrokenPipeError, ValueError) as error:
            raise ToolError(f"{self}: it no longer reads its input{self._complaint()}") from error
        raise ToolError(f"{self}: its input is closed{self._complaint()}")

    def read_line(self, deadline: Deadline) -> str | None:
        """The next line of standard output without its newline; None at the end of it.

        Raises DeadlineExceeded when no whole line came in time; what has come of it is kept for the next call.
        """
        with self._sole_reader(deadline):
            while (line := self._lines.pop()) is None and not self._lines.is_complete:
                self._progress(deadline, "printed no line in time")
            return line

    def wait(self, deadline: Deadline) -> Completed:
        """Close the command's input and wait for its end.

        ``stdout`` of the answer is what no ``read_line`` had taken, ``stderr`` is everything, and a ``status`` of
        -N says that signal N ended the command. Raises DeadlineExceeded, and leaves the command running, when it
        does not end in time.
        """
        self._close_stdin()
        with self._sole_reader(deadline):
            while self._status is None:
                self._progress(deadline, "did not end in time")
            if self._completed is None:
                self._completed = Completed(self._argv, self._status, self._lines.rest(), self._stderr_text())
            return self._completed

    def kill(self) -> None:
        """End the command and its process group with SIGKILL. Killing what has ended does nothing.

        Raises LabError when the kernel cannot end it, as with I/O stuck in a driver.
        """
        with self._ending:
            if self._status is not None:
                return
            # The leader is not reaped yet, so its number cannot belong to another group.
            os.killpg(self._popen.pid, signal.SIGKILL)
        try:
            self.wait(Deadline.after(self._clock, _KILL_GRACE_S))
        except DeadlineExceeded as error:
            raise LabError(
                f"{self}: SIGKILL did not end process {self._popen.pid} in {_KILL_GRACE_S:g} s; it is stuck in the "
                "kernel, so look for hung I/O in dmesg"
            ) from error

    @contextlib.contextmanager
    def _sole_reader(self, deadline: Deadline) -> Iterator[None]:
        if not self._reading.acquire(timeout=deadline.remaining_s()):
            raise DeadlineExceeded(f"{self}: it neither printed nor ended in time{self._complaint()}")
        try:
            yield
        finally:
            self._reading.release()

    def _progress(self, deadline: Deadline, failing: str) -> None:
        """Take a chunk of output or note the end of the command; DeadlineExceeded when neither came in time."""
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        if not self._lines.is_complete:
            poll.register(self._stdout, select.POLLIN)
        # poll counts milliseconds in 31 bits: a far deadline is waited for in parts.
        while not (ready := {fd for fd, _ in poll.poll(min(deadline.remaining_s(), _LONGEST_POLL_S) * 1000)}):
            if deadline.is_over():
                raise DeadlineExceeded(f"{self}: it {failing}{self._complaint()}")
        if self._pidfd in ready:
            self._finish()
        else:
            self._take_chunk()

    def _take_chunk(self) -> bool:
        """Take what is there of standard output; False when nothing is."""
        try:
            self._lines.feed(os.read(self._stdout.fileno(), _CHUNK_BYTES))
        except BlockingIOError:
            return False
        return not self._lines.is_complete

    def _finish(self) -> None:
        """The leader has ended: end its group, take the rest of its output, then reap it."""
        with self._ending:
            # The leader is a zombie until it is reaped below, so the group's number is still ours.
            os.killpg(self._popen.pid, signal.SIGKILL)
            # A daemon that left the group may hold the pipes open for ever: take what is there, wait for no more.
            while self._take_chunk():
                pass
            self._lines.is_complete = True
            self._stderr_thread.join(_STDERR_GRACE_S)
            self._status = self._popen.wait()
        self._close_stdin()
        self._stdout.close()
        os.close(self._pidfd)
        self._when_ended(self)

    def _close_stdin(self) -> None:
        if self._popen.stdin is not None:
            # What could not be delivered to a command that ended is of no use to it.
            with contextlib.suppress(BrokenPipeError):
                self._popen.stdin.close()

    def _collect(self, stderr: IO[bytes]) -> None:
        """Take standard error as it comes, so that a full pipe cannot stop the command."""
        with stderr:
            while chunk := os.read(stderr.fileno(), _CHUNK_BYTES):
                self._stderr += chunk

    def _stderr_text(self) -> str:
        return self._stderr.decode(errors="replace")

    def _complaint(self) -> str:
        said = self._stderr_text().strip()[-_COMPLAINT_CHARACTERS:]
        return f"; it said: {said}" if said else ""


class LocalExecutor:
    """Runs commands on this machine as the harness's own user, in its environment with ``LC_ALL=C.UTF-8``.

    Variables that a lab description names as secrets are not in it. Several threads may use it. Closing it kills what
    is still running and removes the files it made; leaving a ``with`` block closes it.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._running: set[LocalProcess] = set()
        self._lock = threading.Lock()
        self._is_closed = False
        self._folder = tempfile.TemporaryDirectory(prefix="rackloop-")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def run(self, argv: Sequence[str], deadline: Deadline, *, stdin: str = "") -> Completed:
        """Run a command to its end with ``stdin`` as its whole input; a status other than 0 is not an error here.

        Raises ToolError when the program is missing or cannot be executed, and DeadlineExceeded, after killing
        the command's process group, when it does not end in time.
        """
        # A file, not a pipe: a command that reads late or never cannot hold the caller.
        with tempfile.TemporaryFile() as given:
            given.write(stdin.encode())
            given.seek(0)
            process = self._start(argv, given)
        try:
            return process.wait(deadline)
        finally:
            process.kill()

    def start(self, argv: Sequence[str]) -> LocalProcess:
        """Start a command whose input and output are lines. Raises ToolError when it cannot be executed."""
        return self._start(argv, subprocess.PIPE)

    def find(self, program: str) -> str | None:
        """The path of ``program`` on PATH, or None."""
        return shutil.which(program)

    def put_text(self, name: str, text: str) -> str:
        """Write ``text`` to a file ``name`` in a private folder and return its path; a second time replaces it."""
        require_file_name(name)
        with self._lock:
            self._must_be_open()
            path = Path(self._folder.name) / name
            path.write_text(text, encoding="utf-8", newline="")
        return str(path)

    def close(self) -> None:
        """Kill what is running and remove the private folder. Closing twice does nothing.

        Raises LabError, after all else is done, when the kernel could not end a command.
        """
        with self._lock:
            self._is_closed = True
            running = tuple(self._running)
        stuck = complaints(process.kill for process in running)
        self._folder.cleanup()
        if stuck:
            raise LabError("\n".join(stuck))

    def _start(self, argv: Sequence[str], stdin: int | IO[bytes]) -> LocalProcess:
        with self._lock:
            self._must_be_open()
            try:
                popen = subprocess.Popen(
                    argv,
                    stdin=stdin,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    env={**environment_for_programs(), "LC_ALL": "C.UTF-8"},
                    start_new_session=True,
                )
            except FileNotFoundError as error:
                raise ToolError(
                    f"{argv[0]} was not found on this machine: install the package that has it, "
                    "or put its folder on PATH"
                ) from error
            except OSError as error:
                raise ToolError(f"{shlex.join(argv)}: cannot be executed: {error.strerror}") from error
            except ValueError as error:
                raise BadInput(f"{shlex.join(argv)!r}: cannot be a command: {error}") from error
            process = LocalProcess(tuple(argv), popen, self._clock, self._forget)
            self._running.add(process)
            return process

    def _forget(self, process: LocalProcess) -> None:
        with self._lock:
            self._running.discard(process)

    def _must_be_open(self) -> None:
        if self._is_closed:
            raise LabError("this executor is closed: open another to run commands")
