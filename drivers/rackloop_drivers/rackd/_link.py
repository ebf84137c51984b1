"""The control socket of rackd as parts of a simulated rack use it, on an event loop.

The same JSON lines as in :mod:`rackloop_drivers.rackd._control`, which is for callers that wait.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection
from itertools import count
from pathlib import Path
from typing import Any, cast

from rackloop.errors import LabError, NotConnected, ProtocolError
from rackloop_drivers.rackd._control import accepted

TruthListener = Callable[[dict[str, Any]], None]
"""Called on the event loop with each truth record (``docs/reference/rackd.md``), in rackd's order."""


class RackdLink(asyncio.Protocol):
    """A connection to rackd's control socket. Make it with :meth:`connect`.

    ``is_lost`` once it has ended, from either side.
    """

    def __init__(self) -> None:
        self.is_lost = False
        self._waiting: dict[int, tuple[str, asyncio.Future[dict[str, Any]]]] = {}
        self._numbers = count(1)
        self._listeners: list[TruthListener] = []
        self._partial = b""

    @classmethod
    async def connect(cls, control: Path, *, follows: Collection[str] = ()) -> RackdLink:
        """The link to the rackd that listens on ``control``, which hears of the events that ``follows`` names.

        Raises NotConnected where no rackd listens.
        """
        try:
            _, link = await asyncio.get_running_loop().create_unix_connection(cls, str(control))
        except OSError as error:
            raise NotConnected(f"no rackd listens on {control}: {error}; start it") from error
        if follows:
            await link.request("subscribe", events=sorted(follows))
        return link

    def follow(self, listener: TruthListener) -> None:
        """Have ``listener`` called with every truth record of the events that the link follows, from now on.

        Records come in rackd's order, but that of what a request changed may come before or after its answer.
        """
        self._listeners.append(listener)

    async def request(self, op: str, **fields: Any) -> dict[str, Any]:
        """Ask rackd for ``op`` and return its answer, ``t_ns`` (CLOCK_MONOTONIC) and the fields of the operation.

        Raises RackdRefused where it refuses, NotConnected where it has ended, ProtocolError where it says nonsense.
        """
        return await self.ask(op, **fields)

    def ask(self, op: str, **fields: Any) -> asyncio.Future[dict[str, Any]]:
        """Send what :meth:`request` asks and return at once; the future gives and raises what that does.

        Rackd takes the requests of a link in their order. An answer without a waiter is dropped.
        """
        if self.is_lost:
            raise NotConnected(f"rackd cannot be asked for {op}: it has ended; start it again")
        number = next(self._numbers)
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = (op, answer)
        message = {"id": number, "op": op, **fields}
        self._transport.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        return answer

    def close(self) -> None:
        """End the connection; requests in flight raise NotConnected."""
        self._end(NotConnected("the connection to rackd was closed"))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        *lines, self._partial = (self._partial + data).split(b"\n")
        for line in lines:
            try:
                message = json.loads(line)
                waiting = None if "event" in message else self._waiting.pop(message["id"], None)
            except (ValueError, KeyError, TypeError):
                self._end(ProtocolError(f"rackd answered {line[:80]!r}, which is no answer; check its version"))
                return
            if waiting is not None:
                _settle(*waiting, message)
            elif "event" in message:
                for listener in self._listeners:
                    listener(message)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's
        self._end(NotConnected("rackd has ended; start it again"))

    def _end(self, error: LabError) -> None:
        self.is_lost = True
        self._transport.abort()
        for _, answer in self._waiting.values():
            _raise_in(answer, error)
        self._waiting.clear()


def _settle(op: str, answer: asyncio.Future[dict[str, Any]], message: dict[str, Any]) -> None:
    try:
        taken = accepted(op, message)
    except LabError as error:
        _raise_in(answer, error)
    else:
        if not answer.done():
            answer.set_result(taken)


def _raise_in(answer: asyncio.Future[dict[str, Any]], error: LabError) -> None:
    if not answer.done():
        answer.set_exception(error)
        # Read here: one that nobody waits for any more is no fault of the program.
        answer.exception()
