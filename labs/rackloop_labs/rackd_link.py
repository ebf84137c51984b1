"""The simulated rack as labd's own parts see it, on the event loop: requests to rackd, and what happens in it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, cast

from rackloop.errors import LabError, NotConnected, ProtocolError

__all__ = ["RackdLink", "TruthListener"]

TruthListener = Callable[[dict[str, Any]], None]
"""Called on the event loop with each truth record (``docs/reference/rackd.md``), in rackd's order."""


class RackdLink(asyncio.Protocol):
    """A connection to rackd's control socket that follows its truth log. Make it with :meth:`connect`.

    Records come in rackd's order, but the record of what a request changed may come before or after its answer.
    """

    def __init__(self) -> None:
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._numbers = count(1)
        self._listeners: list[TruthListener] = []
        self._partial = b""

    @classmethod
    async def connect(cls, control: Path) -> RackdLink:
        """The link to the rackd that listens on ``control``. Raises NotConnected where none does."""
        try:
            _, link = await asyncio.get_running_loop().create_unix_connection(cls, str(control))
        except OSError as error:
            raise NotConnected(f"no rackd listens on {control}: {error}; start it") from error
        await link.request("subscribe")
        return link

    def follow(self, listener: TruthListener) -> None:
        """Have ``listener`` called with every truth record from now on."""
        self._listeners.append(listener)

    async def request(self, op: str, **fields: Any) -> dict[str, Any]:
        """Ask rackd for ``op`` and return its answer. Raises LabError where it refuses, NotConnected where it ends."""
        if self._transport.is_closing():
            raise NotConnected(f"rackd cannot be asked for {op}: it has ended")
        number = next(self._numbers)
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        self._transport.write(json.dumps({"id": number, "op": op, **fields}).encode() + b"\n")
        message = await answer
        if message.get("ok") is True:
            return message
        refusal = message.get("error") or {}
        raise LabError(f"rackd refused {op}: {refusal.get('message', message)}")

    def close(self) -> None:
        """End the connection; requests in flight raise NotConnected."""
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:  # noqa: D102 - asyncio's
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:  # noqa: D102 - asyncio's
        *lines, self._partial = (self._partial + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if "event" in message:
                for listener in self._listeners:
                    listener(message)
            elif (number := message.get("id")) is None:
                raise ProtocolError(f"rackd could not read a request: {message.get('error')}")
            elif (answer := self._waiting.pop(number, None)) and not answer.done():
                answer.set_result(message)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002, D102 - asyncio's
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(NotConnected("rackd has ended"))
        self._waiting.clear()
