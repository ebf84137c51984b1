"""A command on a server whose input and output are bytes, on an SSH connection of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from rackloop.abilities import Completed
from rackloop.clock import Deadline
from rackloop_drivers.host._process import SshProcess


class _Host(Protocol):
    """The host that has the connection."""

    def start(self, argv: Sequence[str], *, is_stream: bool = False) -> SshProcess: ...
    def give_up(self) -> None: ...
    def close(self) -> None: ...


class SshStream:
    """A command of :meth:`~rackloop_drivers.host.SshHost.open_stream`: one thread may read while another writes.

    The connection is its own: what goes over it keeps no other command waiting, and takes none of the server's
    sessions from them. The command ends with it, and by its watchdog's hand where the harness dies.
    """

    def __init__(self, host: _Host, argv: Sequence[str], when_closed: Callable[[SshStream], None]) -> None:
        self._host = host
        self._when_closed = when_closed
        try:
            self._process = host.start(argv, is_stream=True)
        except BaseException:
            host.close()
            raise

    def __str__(self) -> str:
        return str(self._process)

    def read_bytes(self, deadline: Deadline) -> bytes:
        """See :meth:`SshProcess.read_bytes`."""
        return self._process.read_bytes(deadline)

    def write_bytes(self, data: bytes) -> None:
        """See :meth:`SshProcess.write_bytes`."""
        self._process.write_bytes(data)

    def read_line(self, deadline: Deadline) -> str | None:
        """See :meth:`SshProcess.read_line`."""
        return self._process.read_line(deadline)

    def write_line(self, line: str) -> None:
        """See :meth:`SshProcess.write_line`."""
        self._process.write_line(line)

    def wait(self, deadline: Deadline) -> Completed:
        """End its input and wait for its end; see :meth:`SshProcess.wait`."""
        return self._process.wait(deadline)

    def kill(self) -> None:
        """As :meth:`close`."""
        self.close()

    def give_up(self) -> None:
        """Drop the connection without a question to the server; calls that wait for the command raise NotConnected."""
        self._host.give_up()

    def close(self) -> None:
        """Kill the command where it still runs, and disconnect; closing twice does nothing. Raises as SshHost does."""
        try:
            self._host.close()
        finally:
            self._when_closed(self)
