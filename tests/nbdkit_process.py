"""An nbdkit, a third-party NBD server, on a Unix socket or TCP."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

# nbdkit takes the socket as a service manager gives it: descriptor 3, and its own process id in the environment.
_ACTIVATE = 'exec 3<&0 </dev/null; LISTEN_FDS=1 LISTEN_PID=$$ exec "$@"'


@contextmanager
def serving(listener: socket.socket, arguments: Sequence[str]) -> Iterator[None]:
    """Serve on ``listener`` with ``nbdkit ARGUMENTS``; who connects before nbdkit runs is answered once it does."""
    server = subprocess.Popen(
        ("sh", "-c", _ACTIVATE, "sh", "nbdkit", "--foreground", *arguments), stdin=listener.fileno()
    )
    try:
        yield
    finally:
        # Asked politely it would wait for its clients, and a client may be waiting for it to go.
        server.kill()
        server.wait()


@contextmanager
def serving_unix(path: Path, arguments: Sequence[str]) -> Iterator[Path]:
    """Serve on a Unix socket at ``path``."""
    with closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind(os.fspath(path))
        listener.listen()
        with serving(listener, arguments):
            yield path


@contextmanager
def serving_tcp(arguments: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Serve on a free port of the loopback."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener, serving(listener, arguments):
        host, port = listener.getsockname()
        yield (host, port)


class PauseControl:
    """Holds the requests of an nbdkit with ``--filter=pause`` back, and lets them go on."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def pause(self) -> None:
        """Hold every request that comes from now on."""
        self._tell(b"p")

    def resume(self) -> None:
        """Answer what is held, and go on."""
        self._tell(b"r")

    def _tell(self, command: bytes) -> None:
        with closing(socket.socket(socket.AF_UNIX)) as control:
            control.connect(os.fspath(self._path))
            control.sendall(command)
            answer = control.recv(1)
        assert answer == command.upper(), f"the pause filter answered {answer!r} to {command!r}"
