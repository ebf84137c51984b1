"""The contract of every :class:`~rackloop.abilities.Host` with its callers, besides that of an executor.

Needs what that contract needs where the commands run, and ``ls``, ``mktemp``, ``setsid``, ``stat`` and ``wc``.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing
from typing import Protocol

from rackloop.abilities import Host
from rackloop.clock import Deadline
from rackloop.contracts._clause import CLOCK, await_end, clauses, must_raise, soon
from rackloop.errors import DeadlineExceeded, LabError, NotConnected

_EVERY_BYTE = bytes(range(256))
_MANY = 24


class Server(Protocol):
    """A server that the clauses may do things to; each raises NotSupported where this one cannot."""

    def host(self) -> Host:
        """A new way in, closed by who asked for it."""
        ...

    def break_connections(self) -> None:
        """End every connection there is at once, and answer new ones."""
        ...

    def stopped(self) -> AbstractContextManager[None]:
        """End every connection, and refuse new ones while the block lasts."""
        ...

    def hung(self) -> AbstractContextManager[None]:
        """Answer nothing on the connections there are while the block lasts."""
        ...


def carries_files_byte_by_byte(server: Server) -> None:
    """A file is read as it was written, whatever the bytes and however it is called."""
    with closing(server.host()) as host:
        folder = _folder(host)
        for name, content in (("a 'b' $c", _EVERY_BYTE * 2000), ("empty", b""), ("-n", b"\r\n\0")):
            host.write_file(f"{folder}/{name}", content, soon())
            assert host.read_file(f"{folder}/{name}", soon()) == content


def gives_files_their_modes(server: Server) -> None:
    """A file is its owner's alone unless asked otherwise; one that is replaced gets the mode asked for."""
    with closing(server.host()) as host:
        path = f"{_folder(host)}/file"
        host.write_file(path, b"", soon())
        assert _mode(host, path) == "600"
        host.write_file(path, b"#!/bin/sh\necho ran\n", soon(), mode=0o755)
        assert _mode(host, path) == "755"
        assert host.run((path,), soon()).stdout == "ran\n"


def replaces_files_whole_or_not_at_all(server: Server) -> None:
    """A file that cannot be written is an error with its path, and leaves nothing behind."""
    with closing(server.host()) as host:
        folder = _folder(host)
        host.run(("mkdir", f"{folder}/taken"), soon())
        for path in (f"{folder}/missing/file", f"{folder}/taken"):
            with must_raise(LabError, path):
                host.write_file(path, b"content", soon())
        assert host.run(("ls", "-A", folder), soon()).stdout.split() == ["start", "taken"]
        assert host.run(("ls", "-A", f"{folder}/taken"), soon()).stdout == ""


def says_which_file_cannot_be_read(server: Server) -> None:
    """A file that is not there is an error that names the server and the file."""
    with closing(server.host()) as host:
        with must_raise(LabError, "/no/such/file"):
            host.read_file("/no/such/file", soon())
        with must_raise(LabError, host.name):
            host.read_file("/no/such/file", soon())


def fails_what_runs_when_the_connection_is_lost(server: Server) -> None:
    """A command that was running is an error that names server and command; the next call connects anew."""
    with closing(server.host()) as host:
        process = host.start(("sh", "-c", "echo up; sleep 1000"))
        assert process.read_line(soon()) == "up"
        server.break_connections()
        with must_raise(NotConnected, "echo up; sleep 1000"):
            process.wait(soon())
        with must_raise(NotConnected, host.name):
            process.read_line(soon())
        process.kill()
        assert host.run(("echo", "again"), soon()).stdout == "again\n"


def ends_what_a_lost_connection_left(server: Server) -> None:
    """A command whose connection was lost does not go on once the server is reached again."""
    with closing(server.host()) as host:
        process = host.start(("sh", "-c", 'sleep 1000 & echo "$!"; wait'))
        child = process.read_line(soon())
        server.break_connections()
        assert child is not None
        await_end(host, child)


def keeps_files_when_the_connection_is_lost(server: Server) -> None:
    """A file made by ``put_text`` is still there over a new connection, and removed in the end."""
    with closing(server.host()) as watcher:
        host = server.host()
        path = host.put_text("kept", "text")
        server.break_connections()
        assert host.read_file(path, soon()) == b"text"
        host.close()
        assert watcher.run(("test", "-e", path), soon()).status == 1, f"{path} was left behind"


def says_that_a_server_is_down(server: Server) -> None:
    """A server that does not answer is an error that names it, and is used again once it does."""
    with closing(server.host()) as host:
        with server.stopped(), must_raise(NotConnected, host.name):
            host.run(("true",), soon())
        host.reconnect(soon())
        assert host.run(("echo", "up"), soon()).stdout == "up\n"


def waits_for_a_server_to_come_back(server: Server) -> None:
    """``reconnect`` gives up at its deadline, and returns as soon as the server answers before it."""
    with closing(server.host()) as host, ThreadPoolExecutor(1) as pool:
        host.run(("true",), soon())
        with server.stopped():
            with must_raise(DeadlineExceeded, host.name):
                host.reconnect(Deadline.after(CLOCK, 0.2))
            back = pool.submit(host.reconnect, soon())
        back.result()
        assert host.run(("echo", "back"), soon()).stdout == "back\n"


def is_not_held_by_a_server_that_hangs(server: Server) -> None:
    """A command on a server that accepts and never answers is late, by its name, and the next call connects anew."""
    with closing(server.host()) as host:
        process = host.start(("sh", "-c", "echo up; sleep 1000"))
        assert process.read_line(soon()) == "up"
        with server.hung():
            with must_raise(DeadlineExceeded, "echo up; sleep 1000"):
                process.read_line(Deadline.after(CLOCK, 0.2))
            with must_raise(DeadlineExceeded, host.name):
                host.run(("true",), Deadline.after(CLOCK, 0.2))
        host.reconnect(soon())
        assert host.run(("echo", "back"), soon()).stdout == "back\n"


def serves_more_threads_than_sessions(server: Server) -> None:
    """Commands that find no room wait for it."""
    with closing(server.host()) as host, ThreadPoolExecutor(_MANY) as pool:
        within = soon()
        answers = pool.map(lambda number: host.run(("echo", str(number)), within).stdout, range(_MANY))
        assert list(answers) == [f"{number}\n" for number in range(_MANY)]


CONTRACT = clauses(__name__)


def _folder(host: Host) -> str:
    """A folder on the server that is removed in the end."""
    return host.put_text("start", "").rpartition("/")[0]


def _mode(host: Host, path: str) -> str:
    return host.run(("stat", "-c", "%a", path), soon()).stdout.strip()
