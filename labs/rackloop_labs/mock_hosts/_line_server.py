"""A Unix socket in labd that answers JSON lines, for the emulated tools and the faults of servers."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

_LONGEST_LINE = 1 << 20

Reply = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
Refuse = Callable[[str], dict[str, Any]]


class LineServer:
    """Answers every line of every connection, a JSON object, with what ``reply`` makes of it. Make one by :meth:`at`.

    A line that is no JSON object is answered with what ``refuse`` makes of the reason; one that is longer than 1 MiB
    too, and ends its connection.
    """

    def __init__(self, server: asyncio.Server, path: Path) -> None:
        self._server = server
        self._path = path

    @classmethod
    async def at(cls, path: Path, reply: Reply, refuse: Refuse) -> LineServer:
        """Listen at ``path``. Raises OSError where that cannot be."""

        async def answer(line: bytes) -> dict[str, Any]:
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                message = None
            if not isinstance(message, dict):
                return refuse("the line is no JSON object")
            return await reply(message)

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            async def send(said: dict[str, Any]) -> None:
                writer.write(json.dumps(said).encode() + b"\n")
                await writer.drain()

            try:
                while line := await _line(reader):
                    await send(await answer(line))
                if line is None:
                    await send(refuse("the line is longer than 1 MiB"))
            except ConnectionError:
                return
            finally:
                writer.close()

        server = await asyncio.start_unix_server(serve, sock=_listening(path), limit=_LONGEST_LINE)
        return cls(server, path)

    def close(self) -> None:
        """Listen no more."""
        self._server.close()
        self._path.unlink(missing_ok=True)


async def _line(reader: asyncio.StreamReader) -> bytes | None:
    """The next line, empty at the end of the stream; None for one that is too long."""
    try:
        return await reader.readline()
    except ValueError:
        return None


def _listening(path: Path) -> socket.socket:
    """A socket bound to ``path``, which may be longer than the address of a socket."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    sock = socket.socket(socket.AF_UNIX)
    try:
        path.unlink(missing_ok=True)
        sock.bind(f"/proc/self/fd/{folder}/{path.name}")
        path.chmod(0o600)
    except OSError:
        sock.close()
        raise
    finally:
        os.close(folder)
    return sock
