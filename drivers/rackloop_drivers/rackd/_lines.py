"""JSON lines over a Unix socket, with every error of the socket in Rackloop's tree."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rackloop.clock import Clock, Deadline
from rackloop.errors import DeadlineExceeded, NotConnected, ProtocolError

_CONNECT_S = 2.0
_RETRY_NS = 10_000_000


class LineSocket:
    """A connection to the control socket at ``path``. One thread may read while others write in turn."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self.path = path
        self._received = b""
        self._socket = _connect(path, Deadline.after(clock, _CONNECT_S))

    def send(self, message: Mapping[str, Any]) -> None:
        """Write one line."""
        with self._explained():
            self._socket.sendall(json.dumps(message, separators=(",", ":")).encode() + b"\n")

    def receive(self, deadline: Deadline | None = None) -> dict[str, Any]:
        """The next line. Raises NotConnected at the end of the stream, DeadlineExceeded past ``deadline``."""
        while b"\n" not in self._received:
            with self._explained():
                self._socket.settimeout(None if deadline is None else max(deadline.remaining_s(), 1e-6))
                chunk = self._socket.recv(1 << 16)
            if not chunk:
                raise NotConnected(f"rackd closed its control socket {self.path}; did it end? start the lab again")
            self._received += chunk
        line, self._received = self._received.split(b"\n", 1)
        try:
            message = json.loads(line)
        except ValueError as error:
            raise ProtocolError(f"rackd at {self.path} sent a line that is not JSON: {line[:80]!r}") from error
        if not isinstance(message, dict):
            raise ProtocolError(f"rackd at {self.path} sent a line that is not an object: {line[:80]!r}")
        return message

    def shut(self) -> None:
        """End the connection; a thread that reads gets NotConnected."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            return  # the other side was faster

    def close(self) -> None:
        """Give the descriptor back."""
        self._socket.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except TimeoutError as error:
            raise DeadlineExceeded(f"rackd at {self.path} sent nothing before the deadline") from error
        except OSError as error:
            raise NotConnected(f"control socket {self.path}: {error.strerror or error}; is the lab up?") from error


def _connect(path: Path, deadline: Deadline) -> socket.socket:
    """Connect, giving a rackd that is just being started a moment."""
    while True:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(str(path))
        except OSError as error:
            connection.close()
            waits = isinstance(error, FileNotFoundError | ConnectionRefusedError | BlockingIOError)
            if not waits or deadline.is_over():
                reason = error.strerror or str(error)
                raise NotConnected(f"no rackd answers at {path}: {reason}; bring the lab up") from error
        else:
            return connection
        deadline.clock.sleep_until_ns(deadline.clock.now_ns() + _RETRY_NS)
