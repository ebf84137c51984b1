"""A box that breaks the links between servers and drives."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, ClassVar, Protocol

from rackloop.abilities import PortState
from rackloop.clock import Deadline
from rackloop.lab.yaml import Text
from rackloop_drivers.boxes import PhyDriver, PhyOpening, SimulatedPlace

from .line import ask, serving


class Links(Protocol):
    """The links that a simulated breaker breaks, those of rackd in a mock lab."""

    async def request(self, op: str, **fields: Any) -> dict[str, Any]: ...


class AcmeBreaker:
    """The ports of a breaker; see :class:`~rackloop.abilities.PhyControl`."""

    def __init__(self, address: str) -> None:
        self._address = address

    def drop(self, ports: Collection[int], down_s: float, deadline: Deadline, *, request_id: int) -> None:
        """Break the links of ``ports`` once."""
        self.flap(ports, down_s, 0.0, 1, deadline, request_id=request_id)

    def flap(
        self, ports: Collection[int], down_s: float, up_s: float, count: int, deadline: Deadline, *, request_id: int
    ) -> None:
        """Break the links of ``ports`` again and again."""
        ask(self._address, "FLAP", request_id, down_s, up_s, count, *sorted(ports), deadline=deadline)

    def port_states(self, ports: Collection[int], deadline: Deadline) -> dict[int, PortState]:
        """Whether each link has a signal."""
        asked = sorted(ports)
        return dict(zip(asked, map(PortState, ask(self._address, "STATES", *asked, deadline=deadline)), strict=True))

    def drop_counts(self, ports: Collection[int], deadline: Deadline) -> dict[int, int]:
        """How often each link was broken."""
        asked = sorted(ports)
        return dict(zip(asked, map(int, ask(self._address, "COUNTS", *asked, deadline=deadline)), strict=True))


class SimAcmeBreaker:
    """The breaker, simulated: it breaks ``links``, and does nothing for a request that it had before."""

    def __init__(self, links: Links) -> None:
        self._links = links
        self._had: set[str] = set()

    async def answer(self, words: list[str]) -> str:
        """What it says to a line."""
        match words:
            case ["FLAP", request_id, down_s, up_s, count, *ports]:
                if request_id not in self._had:
                    down_ms, up_ms = float(down_s) * 1e3, float(up_s) * 1e3
                    numbers = [*map(int, ports)]
                    if int(count) == 1:
                        await self._links.request("phy_drop", ports=numbers, down_ms=down_ms)
                    else:
                        await self._links.request(
                            "phy_flap", ports=numbers, down_ms=down_ms, up_ms=up_ms, count=int(count)
                        )
                self._had.add(request_id)
                return ""
            case ["COUNTS", *ports]:
                counts = (await self._links.request("phy_counts", ports=[*map(int, ports)]))["counts"]
                return " ".join(map(str, counts))
            case ["STATES", *ports]:
                states = (await self._links.request("states", ports=[*map(int, ports)]))["states"]
                return " ".join(states[port] for port in ports)
        raise LookupError(f"no verb {words[0]}")


class AcmeBreakerDriver(PhyDriver):
    """A breaker of ACME, over TCP."""

    is_simulated: ClassVar[bool] = True

    address: Text | None = None
    """Where the breaker answers, as host or host:port; a simulated one makes its own."""

    def lacking(self) -> Iterator[tuple[str, str]]:
        """The address."""
        if self.address is None:
            yield "address", "is missing: where the breaker answers, such as breaker1.lab.example"

    def open(self, opening: PhyOpening) -> AcmeBreaker:
        """The breaker."""
        return AcmeBreaker(str(self.address))

    @asynccontextmanager
    async def simulated(self, place: SimulatedPlace) -> AsyncIterator[Mapping[str, Any]]:
        """The breaker, breaking the links of the simulated rack."""
        async with serving(SimAcmeBreaker(place.rackd).answer) as address:
            yield {"address": address}
