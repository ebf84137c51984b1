"""The dialect of all ACME boxes, a line of words each way over TCP: both ends of it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from rackloop.clock import Deadline
from rackloop.errors import DeadlineExceeded, LabError, NotConnected, ProtocolError
from rackloop_drivers.endpoint import host_and_port

Answering = Callable[[list[str]], Awaitable[str]]
_PORT = 4001


def ask(address: str, *words: object, deadline: Deadline) -> list[str]:
    """The words that the box answers with.

    Raises NotConnected where nothing answers, DeadlineExceeded where it answers too late, and LabError where it
    refuses.
    """
    if deadline.is_over():
        raise DeadlineExceeded(f"{address} was to be asked after the deadline; nothing was sent")
    line = " ".join(map(str, words))
    try:
        with socket.create_connection(host_and_port(address, _PORT), timeout=deadline.remaining_s()) as connection:
            connection.sendall(f"{line}\n".encode())
            with connection.makefile(encoding="ascii") as answers:
                status, *answer = answers.readline().split() or [""]
    except TimeoutError as error:
        raise DeadlineExceeded(f"{address} did not answer in time") from error
    except OSError as error:
        raise NotConnected(f"nothing answers at {address} ({error}): check address, cable and power") from error
    if status == "NO":
        raise LabError(f"{address} refused {words[0]}: {' '.join(answer)}")
    if status != "YES":
        raise ProtocolError(f"{address} answered {status!r}: is this an ACME box?")
    return answer


@asynccontextmanager
async def serving(answering: Answering) -> AsyncIterator[str]:
    """A simulated box on a free loopback port while the context lasts; its address."""

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while words := (await reader.readline()).decode("ascii", "replace").split():
            try:
                answer = f"YES {await answering(words)}"
            except (LabError, LookupError, ValueError) as error:
                answer = f"NO {error!r}"
            writer.write(f"{answer}\n".encode())
        writer.close()

    server = await asyncio.start_server(converse, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
