"""Commands and files on this machine or on a server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from rackloop.clock import Deadline


@dataclass(frozen=True)
class Completed:
    """A command that ended: its exit status and everything it printed."""

    argv: tuple[str, ...]
    status: int
    stdout: str
    stderr: str


@runtime_checkable
class Process(Protocol):
    """A command that is running: lines come and go until it ends."""

    def write_line(self, line: str) -> None: ...
    def read_line(self, deadline: Deadline) -> str | None: ...
    def wait(self, deadline: Deadline) -> Completed: ...
    def kill(self) -> None: ...


@runtime_checkable
class Executor(Protocol):
    """A place to run commands: this machine or a host.

    ``put_text`` makes a file there and returns its path; ``find`` returns a program's path or None.
    """

    def run(self, argv: Sequence[str], deadline: Deadline, *, stdin: str = "") -> Completed: ...
    def start(self, argv: Sequence[str]) -> Process: ...
    def find(self, program: str) -> str | None: ...
    def put_text(self, name: str, text: str) -> str: ...
    def close(self) -> None: ...


@runtime_checkable
class Host(Executor, Protocol):
    """A server as who is logged in on it sees it: an Executor that also carries whole files, by absolute path.

    A connection that is lost fails what runs over it and is made anew by the next call; ``give_up`` drops it, and asks
    nothing of the server. ``reconnect`` waits until it answers again, as after a reboot or a power cycle; it returns
    the clock's nanoseconds at the beginning of the last attempt that failed, or of the call where the first succeeded.
    """

    @property
    def name(self) -> str: ...
    def read_file(self, path: str, deadline: Deadline) -> bytes: ...
    def write_file(self, path: str, content: bytes, deadline: Deadline, *, mode: int = 0o600) -> None: ...
    def give_up(self) -> None: ...
    def reconnect(self, deadline: Deadline) -> int: ...
