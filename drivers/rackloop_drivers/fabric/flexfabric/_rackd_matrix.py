"""The switching matrix of a simulated rack: every call is one request on rackd's control socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, cast

from rackloop.abilities import LiveMap, PortState
from rackloop.errors import LabError, NotConnected, ProtocolError, StaleGeneration
from rackloop.portmap import PortMap


class RackdMatrix:
    """A :class:`~rackloop_drivers.fabric.flexfabric.PortMatrix` kept by rackd.

    A connection that was lost is opened again by the next call, so a restarted rackd is found again.
    """

    def __init__(self, control: Path, port_count: int) -> None:
        self._control = control
        self._port_count = port_count
        self._wire: _ControlWire | None = None

    @classmethod
    async def connect(cls, control: Path) -> RackdMatrix:
        """The matrix behind the control socket. Raises NotConnected where no rackd listens."""
        matrix = cls(control, 0)
        hello = await matrix._request("hello")
        matrix._port_count = int(hello["ports"])
        return matrix

    @property
    def port_count(self) -> int:
        """How many ports rackd's rack has."""
        return self._port_count

    async def generation(self) -> int:
        """How often the live map has changed."""
        return int((await self._request("hello"))["generation"])

    async def get_map(self) -> LiveMap:
        """The live map and its generation."""
        answer = await self._request("get_map")
        return LiveMap(int(answer["generation"]), _pairs(answer))

    async def map(self, pairs: PortMap, *, full: bool, generation: int | None) -> int:
        """Execute a full or a partial map at once."""
        return await self._change("map", {"pairs": pairs.pairs, "full": full}, generation)

    async def open(self, ports: Collection[int] | None, *, generation: int | None) -> int:
        """Unmap these ports, or every port, at once."""
        return await self._change("open", {"ports": "all" if ports is None else sorted(ports)}, generation)

    async def _change(self, op: str, fields: dict[str, Any], generation: int | None) -> int:
        guard = {} if generation is None else {"generation": generation}
        return int((await self._request(op, **fields, **guard))["generation"])

    async def states(self, ports: Sequence[int]) -> tuple[PortState, ...]:
        """One state for each port, in order."""
        states = (await self._request("states", ports=ports))["states"]
        return tuple(PortState(states[str(port)]) for port in ports)

    async def phy_drop(self, ports: Sequence[int], down_ms: float) -> None:
        """Take the signal away for a time."""
        await self._request("phy_drop", ports=ports, down_ms=down_ms)

    async def phy_flap(self, ports: Sequence[int], down_ms: float, up_ms: float, count: int) -> None:
        """Take the signal away again and again."""
        await self._request("phy_flap", ports=ports, down_ms=down_ms, up_ms=up_ms, count=count)

    async def phy_counts(self, ports: Sequence[int]) -> tuple[int, ...]:
        """Drops seen on each port, in order."""
        counts = (await self._request("phy_counts", ports=ports))["counts"]
        return tuple(int(counts[str(port)]) for port in ports)

    async def save_map(self) -> None:
        """Keep the live map as the power-on map."""
        await self._request("save_map")

    async def saved_map(self) -> PortMap:
        """The power-on map."""
        return _pairs(await self._request("saved_map"))

    async def power(self, *, on: bool) -> None:
        """Cut or give the switch's power."""
        await self._request("power", target="switch", on=on)

    async def stick(self, port: int, *, stuck: bool) -> None:
        """Make a port ignore map changes, or let it follow them again."""
        await self._request("stick", port=port, stuck=stuck)

    async def close(self) -> None:
        """Let go of the control socket."""
        if self._wire is not None:
            self._wire.close()
            self._wire = None

    async def _request(self, op: str, **fields: Any) -> dict[str, Any]:
        wire = self._wire
        if wire is None or wire.is_lost:
            try:
                _, wire = await asyncio.get_running_loop().create_unix_connection(_ControlWire, str(self._control))
            except OSError as error:
                raise NotConnected(f"no rackd listens on {self._control}: {error}; start it") from None
            self._wire = wire
        answer = await wire.request(op, fields)
        if answer.get("ok") is True:
            return answer
        refusal = answer.get("error") or {}
        message = f"rackd refused {op}: {refusal.get('message', answer)}"
        raise (StaleGeneration if refusal.get("code") == "stale_generation" else LabError)(message)


class _ControlWire(asyncio.Protocol):
    """JSON lines both ways; answers find their request by id."""

    def __init__(self) -> None:
        self.is_lost = False
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._next_id = 0
        self._partial = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def request(self, op: str, fields: dict[str, Any]) -> asyncio.Future[dict[str, Any]]:
        """Send a request; the future holds its answer."""
        self._next_id += 1
        answer = asyncio.get_running_loop().create_future()
        self._answers[self._next_id] = answer
        message = {"id": self._next_id, "op": op, **fields}
        self._transport.write(json.dumps(message, separators=(",", ":")).encode("ascii") + b"\n")
        return answer

    def data_received(self, data: bytes) -> None:
        *lines, self._partial = (self._partial + data).split(b"\n")
        for line in lines:
            try:
                answer = json.loads(line)
                waiting = self._answers.pop(answer["id"], None)
            except (ValueError, KeyError, TypeError):
                self._fail(ProtocolError(f"rackd answered {line[:80]!r}, which is no answer; check its version"))
                continue
            if waiting is not None and not waiting.done():
                waiting.set_result(answer)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self._fail(NotConnected("rackd has gone; start it again"))

    def _fail(self, error: LabError) -> None:
        self.is_lost = True
        self._transport.abort()
        for waiting in self._answers.values():
            if not waiting.done():
                waiting.set_exception(error)
        self._answers.clear()

    def close(self) -> None:
        self.is_lost = True
        self._transport.abort()


def _pairs(answer: dict[str, Any]) -> PortMap:
    return PortMap.of((int(low), int(high)) for low, high in answer["pairs"])
