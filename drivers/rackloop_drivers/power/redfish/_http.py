"""An HTTP/1.1 server with JSON bodies over TLS, as far as a management controller needs one."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from email.message import Message
from email.parser import HeaderParser
from http import HTTPStatus

from rackloop_drivers.boxes import stop_listening
from rackloop_drivers.socket_blackhole import block, unblock

_BODY_BYTES = 1 << 20
_HEAD_BYTES = 1 << 16
_parser = HeaderParser()


@dataclass(frozen=True)
class Request:
    """A client's request. ``target`` is the path with its query."""

    method: str
    target: str
    headers: Message
    body: bytes

    def json(self) -> Mapping[str, object]:
        """The body's JSON object; raises ValueError for anything else."""
        try:
            value = json.loads(self.body or b"{}")
        except RecursionError:
            raise ValueError("the body is nested too deeply") from None
        if not isinstance(value, dict):
            raise ValueError("the body is no JSON object")  # noqa: TRY004 - json.loads raises ValueError as well
        return value


@dataclass(frozen=True)
class Response:
    """The answer to a request: a JSON object, a text of another kind, or no body."""

    status: HTTPStatus
    body: Mapping[str, object] | str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


class HttpsServer:
    """Answers requests with ``handle``. :meth:`suspend` makes it as good as gone, its port kept for :meth:`resume`.

    While its cable is out clients hear nothing of either.
    """

    def __init__(self, handle: Callable[[Request], Awaitable[Response]], context: ssl.SSLContext) -> None:
        self.is_pulled = False
        self._handle = handle
        self._context = context
        self._server: asyncio.Server | None = None
        self._is_suspended = True
        self._connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._forgotten: set[asyncio.Task[None]] = set()
        self._closing: asyncio.Task[None] | None = None
        # Bound, but not listening: nobody else gets the port while the server is suspended.
        self._reserved = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._reserved.bind(("127.0.0.1", 0))

    @property
    def address(self) -> str:
        """Its address, ``host:port``."""
        host, port = self._reserved.getsockname()
        return f"{host}:{port}"

    async def resume(self) -> None:
        """Listen."""
        self._is_suspended = False
        await self._listen()

    def suspend(self) -> None:
        """Refuse connections and drop those there are."""
        self._is_suspended = True
        self._forgotten |= self._connections.keys()
        if not self.is_pulled:
            self._drop()

    async def pull_cable(self, *, out: bool) -> None:
        """Pull the network cable or plug it in: while it is out whatever clients send is lost on the way."""
        self.is_pulled = out
        # Where nobody listens this machine would refuse connections, which takes a cable.
        await self._listen()
        listening = self._server.sockets if self._server is not None else ()
        open_writers = (writer for writer in self._connections.values() if not writer.is_closing())
        for sock in (*listening, *(writer.get_extra_info("socket") for writer in open_writers)):
            (block if out else unblock)(sock)
        if not out:
            self._drop()

    async def close(self) -> None:
        """End for good."""
        self.is_pulled = False
        self.suspend()
        if self._closing is not None:
            await self._closing
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        self._reserved.close()

    async def _listen(self) -> None:
        if self._server is None:
            host, port = self._reserved.getsockname()
            self._server = await asyncio.start_server(
                self._accept, host, port, ssl=self._context, reuse_port=True, limit=_HEAD_BYTES
            )

    def _drop(self) -> None:
        """End the connections that were forgotten, and listening where the server is suspended."""
        if self._is_suspended and self._server is not None:
            self._closing = asyncio.create_task(stop_listening(self._server))
            self._server = None
        for task in self._forgotten:
            task.cancel()
        self._forgotten.clear()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - start_server runs this in a task
        self._connections[task] = writer
        try:
            while await self._exchange(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, asyncio.CancelledError):
            # The client is gone, speaks no HTTP, or the server is being suspended: there is nobody to tell.
            pass
        finally:
            del self._connections[task]
            self._forgotten.discard(task)
            writer.transport.abort()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; whether the connection may carry another."""
        request_line, _, head = (await reader.readuntil(b"\r\n\r\n")).partition(b"\r\n")
        headers = _parser.parsestr(head.decode("latin-1"))
        words = request_line.decode("latin-1").split()
        length = number(headers.get("Content-Length", "0"))
        is_sound = len(words) == 3 and request_line.isascii() and head.isascii() and words[1].startswith("/")
        if is_sound and "Transfer-Encoding" not in headers and length is not None and length <= _BODY_BYTES:
            body = await reader.readexactly(length)
            response = await self._handled(Request(words[0], words[1], headers, body))
        else:
            is_sound = False
            response = Response(HTTPStatus.BAD_REQUEST)
        keeps = is_sound and headers.get("Connection", "").lower() != "close"
        is_head = bool(words) and words[0] == "HEAD"
        writer.write(_encoded(response, keeps=keeps, is_head=is_head))
        with suppress(ConnectionError):
            await writer.drain()
        return keeps

    async def _handled(self, request: Request) -> Response:
        try:
            return await self._handle(request)
        except Exception as error:  # noqa: BLE001 - the client is told, and so is the log
            context = {"message": f"{request.method} {request.target[:100]} failed", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)
            return Response(HTTPStatus.INTERNAL_SERVER_ERROR)


def number(text: str) -> int | None:
    """A whole number of at most nine digits, as anybody who means one writes it."""
    return int(text) if re.fullmatch(r"[0-9]{1,9}", text) else None


def _encoded(response: Response, *, keeps: bool, is_head: bool) -> bytes:
    match response.body:
        case None:
            body = b""
        case str(text):
            body = text.encode()
        case found:
            body = json.dumps(found).encode()
    headers = {
        "OData-Version": "4.0",
        "Content-Type": "application/json; charset=utf-8",
        "Content-Length": str(len(body)),
        "Cache-Control": "no-store",
        "Connection": "keep-alive" if keeps else "close",
        **response.headers,
    }
    if response.status is HTTPStatus.NO_CONTENT:
        del headers["Content-Type"], headers["Content-Length"]
    head = f"HTTP/1.1 {response.status.value} {response.status.phrase}\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return head.encode("latin-1") + b"\r\n" + (b"" if is_head else body)
