"""A TCP relay that can lose the connections through it."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_CHUNK_BYTES = 1 << 16


class TcpRelay:
    """Carries every connection to its own ``port`` on to ``target``."""

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._ends: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._flows = threading.Event()
        self._flows.set()
        self._answers = threading.Event()
        self._answers.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._accepting = threading.Thread(target=self._accept)
        self._accepting.start()

    def break_connections(self, first: int | None = None) -> None:
        """Lose the connections, or the ``first`` of them, as seen from both ends, and carry on with new ones."""
        # Each has two ends, and a thread for each direction.
        count = None if first is None else 2 * first
        with self._lock:
            ends, threads = self._ends[:count], self._threads[:count]
            del self._ends[:count], self._threads[:count]
        for end in ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join()
        for end in ends:
            end.close()

    @contextmanager
    def cut(self) -> Iterator[None]:
        """Carry nothing while the block runs, and tell neither end."""
        self._flows.clear()
        try:
            yield
        finally:
            self._flows.set()

    @contextmanager
    def refusing(self, lost: int | None = None) -> Iterator[None]:
        """Lose the connections there are, or so many, and end each new one at once while the block runs."""
        self._answers.clear()
        self.break_connections(lost)
        try:
            yield
        finally:
            self._answers.set()

    def close(self) -> None:
        """Lose the connections there are and carry no more."""
        # A shutdown, not a close, wakes the thread that accepts.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._accepting.join()
        self._listener.close()
        self.break_connections()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if not self._answers.is_set():
                client.close()
                continue
            try:
                server = socket.create_connection(self._target)
            except OSError:
                client.close()
                continue
            with self._lock:
                self._ends += (client, server)
                for source, sink in ((client, server), (server, client)):
                    source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    self._threads.append(threading.Thread(target=_copy, args=(source, sink, self._flows)))
                    self._threads[-1].start()


@contextmanager
def relaying(target: tuple[str, int]) -> Iterator[TcpRelay]:
    """A relay for as long as the block lasts."""
    relay = TcpRelay(target)
    try:
        yield relay
    finally:
        relay.close()


def _copy(source: socket.socket, sink: socket.socket, flows: threading.Event) -> None:
    with contextlib.suppress(OSError):
        while chunk := source.recv(_CHUNK_BYTES):
            flows.wait()
            sink.sendall(chunk)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_RDWR)
