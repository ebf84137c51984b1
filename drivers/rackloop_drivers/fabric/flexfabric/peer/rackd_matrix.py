"""The switching matrix of a simulated rack: every call is one request on rackd's control socket."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rackloop.abilities import LiveMap, PortState
from rackloop.errors import StaleGeneration
from rackloop.portmap import PortMap
from rackloop_drivers.fabric.flexfabric.dialect.scpi_errors import OUT_OF_RANGE, ScpiError
from rackloop_drivers.rackd import RackdLink, RackdRefused


class RackdMatrix:
    """A :class:`~rackloop_drivers.fabric.flexfabric.PortMatrix` kept by rackd.

    A connection that was lost is opened again by the next call, so a restarted rackd is found again.
    """

    def __init__(self, control: Path, port_count: int) -> None:
        self._control = control
        self._port_count = port_count
        self._link: RackdLink | None = None

    @classmethod
    async def connect(cls, control: Path) -> RackdMatrix:
        """The matrix behind the control socket. Raises NotConnected where no rackd listens."""
        matrix = cls(control, 0)
        hello = await matrix._request("hello")
        matrix._port_count = int(hello["ports"])
        return matrix

    @property
    def port_count(self) -> int:
        """The number of ports of rackd's rack."""
        return self._port_count

    async def generation(self) -> int:
        """The number of changes of the live map so far."""
        return int((await self._request("hello"))["generation"])

    async def get_map(self) -> LiveMap:
        """The live map and its generation."""
        return _live(await self._request("get_map"))

    async def map(self, pairs: PortMap, *, full: bool, generation: int | None, asked_ns: int | None = None) -> LiveMap:
        """Execute a full or a partial map at once; the live map after that."""
        return await self._change("map", pairs=pairs.pairs, full=full, generation=generation, asked_ns=asked_ns)

    async def open(
        self, ports: Collection[int] | None, *, generation: int | None, asked_ns: int | None = None
    ) -> LiveMap:
        """Unmap these ports, or every port, at once; the live map after that."""
        named = "all" if ports is None else sorted(ports)
        return await self._change("open", ports=named, generation=generation, asked_ns=asked_ns)

    async def _change(self, op: str, **fields: Any) -> LiveMap:
        given = {name: value for name, value in fields.items() if value is not None}
        link = await self._connected()
        # The look goes out with the change, behind it, and costs no way of its own.
        change, look = link.ask(op, **given), link.ask("get_map")
        with _refusals_of_the_switch():
            await change
        return _live(await look)

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
        if self._link is not None:
            self._link.close()
            self._link = None

    async def _request(self, op: str, **fields: Any) -> dict[str, Any]:
        link = await self._connected()
        with _refusals_of_the_switch():
            return await link.ask(op, **fields)

    async def _connected(self) -> RackdLink:
        if self._link is None or self._link.is_lost:
            self._link = await RackdLink.connect(self._control)
        return self._link


@contextmanager
def _refusals_of_the_switch() -> Iterator[None]:
    """Raise what rackd refuses as the switch does: by its generation, or for a number too small or too large."""
    try:
        yield
    except RackdRefused as refusal:
        if refusal.code == "stale_generation":
            raise StaleGeneration(str(refusal)) from refusal
        if refusal.code == "out_of_range":
            raise ScpiError(OUT_OF_RANGE, str(refusal)) from refusal
        raise


def _live(answer: dict[str, Any]) -> LiveMap:
    return LiveMap(int(answer["generation"]), _pairs(answer))


def _pairs(answer: dict[str, Any]) -> PortMap:
    return PortMap.of((int(low), int(high)) for low, high in answer["pairs"])
