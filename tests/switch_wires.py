"""Ways to a simulated switch that do what wires and connections of real ones do."""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from threading import Event, Thread


@contextmanager
def rewritten(url: str, old: bytes, new: bytes, *, asked: tuple[bytes, bytes] = (b"", b"")) -> Iterator[str]:
    """A line to the switch on which one text of its answers becomes another, as on a wire with a fault.

    The first text of what is ``asked`` becomes the second on its way to the switch, once.
    """
    host, _, port = url.removeprefix("tcp://").partition(":")

    def carry(source: socket.socket, sink: socket.socket, old: bytes, new: bytes, count: int = -1) -> None:
        while data := source.recv(65536):
            sink.sendall(data.replace(old, new, count) if old else data)
            if count > 0 and old in data:
                old = b""
        sink.shutdown(socket.SHUT_WR)

    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection((host, int(port))) as far:

        def meet() -> None:
            near, _ = server.accept()
            with near:
                forth = Thread(target=carry, args=(near, far, *asked, 1))
                forth.start()
                carry(far, near, old, new)
                forth.join()

        meeting = Thread(target=meet)
        meeting.start()
        yield f"tcp://127.0.0.1:{server.getsockname()[1]}"
        meeting.join()


@contextmanager
def forgotten(url: str) -> Iterator[tuple[str, Event]]:
    """A way to the switch whose first connection carries nothing any more once the event is set, and does not end.

    So it is where the switch lost power and has it again: neither end hears that the other knows nothing of it.
    """
    host, _, port = url.removeprefix("tcp://").partition(":")
    is_lost = Event()

    def carry(source: socket.socket, sink: socket.socket, is_lost: Event) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if not is_lost.is_set():
                    sink.sendall(data)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    def meet(server: socket.socket) -> None:
        for lost in (is_lost, Event()):
            near, _ = server.accept()
            far = socket.create_connection((host, int(port)))
            stack.callback(near.close)
            stack.callback(far.close)
            for ends in ((near, far), (far, near)):
                threads.append(Thread(target=carry, args=(*ends, lost)))
                threads[-1].start()

    threads: list[Thread] = []
    with ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        meeting = Thread(target=meet, args=(server,))
        meeting.start()
        yield f"tcp://127.0.0.1:{server.getsockname()[1]}", is_lost
        meeting.join()
        for thread in threads:
            thread.join()


@contextmanager
def terminal_server(tty: str) -> Iterator[str]:
    """The socket of a terminal server that has the switch on a serial line."""

    def meet(server: socket.socket, line: int) -> None:
        near, _ = server.accept()
        with near:
            answers = Thread(target=bring, args=(line, near))
            answers.start()
            while data := near.recv(65536):
                os.write(line, data)
            is_over.set()
            answers.join()

    def bring(line: int, near: socket.socket) -> None:
        while not is_over.is_set():
            if select.select([line], [], [], 0.05)[0]:
                near.sendall(os.read(line, 65536))

    is_over = Event()
    line = os.open(tty, os.O_RDWR | os.O_NOCTTY)
    with socket.create_server(("127.0.0.1", 0)) as server:
        meeting = Thread(target=meet, args=(server, line))
        meeting.start()
        yield f"tcp://127.0.0.1:{server.getsockname()[1]}"
        meeting.join()
    os.close(line)
