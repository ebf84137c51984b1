"""The interface of the switching matrix behind the simulated front end: the live map, the PHYs, the saved map."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from rackloop.abilities import LiveMap, PortState
from rackloop.portmap import PortMap


class PortMatrix(Protocol):
    """Owns the map, its generation, PHY state, drop counts and the saved map.

    Every change of the live map, power-on included, adds one to the generation. A guard that does not match raises
    :class:`~rackloop.errors.StaleGeneration`, a number that it does not take a refusal with -222, anything else that
    goes wrong a :class:`~rackloop.errors.LabError`. Coroutines may await nothing but futures.
    """

    @property
    def port_count(self) -> int:
        """The number of ports, numbered from 1."""
        ...

    async def generation(self) -> int:
        """The number of changes of the live map so far."""
        ...

    async def get_map(self) -> LiveMap:
        """The live map and its generation, read together."""
        ...

    async def map(self, pairs: PortMap, *, full: bool, generation: int | None, asked_ns: int | None = None) -> LiveMap:
        """Execute a full or a partial map at once; returns the live map as it was found after that.

        ``asked_ns`` is when the switch had the order, on CLOCK_MONOTONIC.
        """
        ...

    async def open(
        self, ports: Collection[int] | None, *, generation: int | None, asked_ns: int | None = None
    ) -> LiveMap:
        """Unmap these ports, or every port, at once, as :meth:`map` does; returns what that does."""
        ...

    async def states(self, ports: Sequence[int]) -> tuple[PortState, ...]:
        """One state for each port, in order."""
        ...

    async def phy_drop(self, ports: Sequence[int], down_ms: float) -> None:
        """Take the signal away from now on for ``down_ms``; returns at once."""
        ...

    async def phy_flap(self, ports: Sequence[int], down_ms: float, up_ms: float, count: int) -> None:
        """Take the signal away ``count`` times; returns at once."""
        ...

    async def phy_counts(self, ports: Sequence[int]) -> tuple[int, ...]:
        """Drops seen on each port, in order."""
        ...

    async def save_map(self) -> None:
        """Keep the live map as the power-on map."""
        ...

    async def saved_map(self) -> PortMap:
        """The power-on map."""
        ...

    async def power(self, *, on: bool) -> None:
        """Cut or give the switch's power; power-on loads the saved map."""
        ...

    async def stick(self, port: int, *, stuck: bool) -> None:
        """A stuck port ignores map changes."""
        ...
