"""A shell on an SSH server, as a stream: the form in which management controllers show their servers' consoles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackloop.clock import Deadline
from rackloop.errors import DeadlineExceeded, NotConnected
from rackloop_drivers.host._access import SshAccess
from rackloop_drivers.host._connection import Connection, connect
from rackloop_drivers.host._paramiko import hang_up
from rackloop_drivers.stream_console import MOST_BYTES

if TYPE_CHECKING:
    from paramiko import Channel

_TERM, _COLUMNS, _ROWS = "vt100", 200, 50
# Who reads and who writes share the channel's time-out, so it is set once.
_SLICE_S = 0.05


def open_shell(access: SshAccess, deadline: Deadline) -> ShellStream:
    """Log in and ask for a terminal and a shell.

    Raises as :func:`connect` does, LabError where there is no shell, DeadlineExceeded where the server does not say.
    """
    connection = connect(access, deadline)
    try:
        channel = connection.open_session(deadline)
        connection.show_shell(channel, _TERM, _COLUMNS, _ROWS, deadline)
    except BaseException:
        connection.close()
        raise
    return ShellStream(str(access), connection, channel)


class ShellStream:
    """The :class:`~rackloop_drivers.stream_console.Stream` of a shell on a connection of its own.

    It looks for what has come every 50 ms.
    """

    def __init__(self, where: str, connection: Connection, channel: Channel) -> None:
        self._where = where
        self._connection = connection
        self._channel = channel
        channel.settimeout(_SLICE_S)

    def read(self, timeout_s: float) -> bytes:  # noqa: ARG002 - the channel has a time-out of its own
        """Take the bytes that have come."""
        try:
            data = self._channel.recv(MOST_BYTES)
        except TimeoutError:
            return b""
        except (EOFError, OSError) as error:
            raise self._lost(error) from None
        if not data:
            raise self._lost("it was closed at the other end")
        return data

    def write(self, data: bytes, deadline: Deadline) -> None:
        """Send all of ``data``."""
        while data:
            try:
                data = data[self._channel.send(data) :]
            except TimeoutError:
                if deadline.is_over():
                    raise DeadlineExceeded(f"{self._where} takes no more bytes; is the console held up?") from None
            except (EOFError, OSError) as error:
                raise self._lost(error) from None

    def wake(self) -> None:
        """Have a read that waits end."""
        hang_up(self._channel)

    def close(self) -> None:
        """Hang up."""
        self.wake()
        self._connection.close()

    def _lost(self, reason: object) -> NotConnected:
        return NotConnected(f"{self._where}: the connection was lost: {reason}")
