"""A switching matrix with nothing plugged in: for unit tests, and for racks that have no rackd behind the switch."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from rackloop.abilities import LiveMap, PortState
from rackloop.clock import Clock
from rackloop.errors import StaleGeneration
from rackloop.portmap import Full, MapChange, Open, Partial, PortMap, disturbed_ports

_NS_PER_MS = 1_000_000
TRAINING_NS = 500_000


@dataclass(frozen=True)
class _Outage:
    """The signal is away ``count`` times for ``down_ns``, ``up_ns`` apart, from ``start_ns`` on."""

    start_ns: int
    down_ns: int
    up_ns: int = 0
    count: int = 1

    def state(self, now_ns: int) -> PortState:
        """The state of a port that suffers this outage: it trains after each return of the signal."""
        begun = self.begun(now_ns)
        if not begun:
            return PortState.UP
        into = now_ns - self.start_ns - (begun - 1) * (self.down_ns + self.up_ns)
        if into < self.down_ns:
            return PortState.DOWN
        return PortState.TRAIN if into < self.down_ns + TRAINING_NS else PortState.UP

    def begun(self, now_ns: int) -> int:
        """The number of times the signal has gone by now."""
        if now_ns < self.start_ns:
            return 0
        period = self.down_ns + self.up_ns
        return min(self.count, (now_ns - self.start_ns) // period + 1) if period else self.count

    def is_over(self, now_ns: int) -> bool:
        """Whether the last training has ended."""
        return self.begun(now_ns) == self.count and self.state(now_ns) is PortState.UP


class MemoryMatrix:
    """A :class:`~rackloop_drivers.fabric.flexfabric.PortMatrix` in memory: a mapped port trains for 0.5 ms, then is up.

    A signal that is taken away is lost at both ends of its circuit, and counts at both.
    It starts powered on, at generation 1, with ``boot_map`` live; the saved map lives as long as the object.
    """

    def __init__(self, clock: Clock, *, port_count: int = 160, boot_map: PortMap | None = None) -> None:
        self._clock = clock
        self._port_count = port_count
        self._saved = boot_map or PortMap()
        self._live = self._saved
        self._generation = 1
        self._is_on = True
        self._stuck: set[int] = set()
        self._outages: dict[int, list[_Outage]] = {}
        self._counts: dict[int, int] = {}
        self._train(self._live.ports())

    @property
    def port_count(self) -> int:
        """The number of ports."""
        return self._port_count

    async def generation(self) -> int:
        """The number of changes of the live map so far."""
        return self._generation

    async def get_map(self) -> LiveMap:
        """The live map and its generation."""
        return LiveMap(self._generation, self._live)

    async def map(
        self,
        pairs: PortMap,
        *,
        full: bool,
        generation: int | None,
        asked_ns: int | None = None,  # noqa: ARG002 - nobody reads what this one would write down
    ) -> LiveMap:
        """Execute a full or a partial map at once."""
        return self._change(Full(pairs) if full else Partial(pairs), generation)

    async def open(
        self,
        ports: Collection[int] | None,
        *,
        generation: int | None,
        asked_ns: int | None = None,  # noqa: ARG002 - as above
    ) -> LiveMap:
        """Unmap these ports, or every port, at once."""
        return self._change(Full(PortMap()) if ports is None else Open(frozenset(ports)), generation)

    def _change(self, change: MapChange, generation: int | None) -> LiveMap:
        if generation is not None and generation != self._generation:
            raise StaleGeneration(f"generation is {self._generation}, not {generation}")
        kept = tuple(pair for pair in self._live if self._stuck.intersection(pair))
        unmovable = self._stuck.union(*kept)
        self._become(PortMap.of((*kept, *change.after(self._live).without(unmovable))))
        return LiveMap(self._generation, self._live)

    def _become(self, after: PortMap) -> None:
        disturbed = disturbed_ports(self._live, after)
        self._live = after
        self._generation += 1
        self._train(disturbed)

    def _train(self, ports: Collection[int]) -> None:
        for port in ports:
            self._forget_past(port)
            self._outages.setdefault(port, []).append(_Outage(self._clock.now_ns(), 0))

    async def states(self, ports: Sequence[int]) -> tuple[PortState, ...]:
        """One state for each port, in order."""
        return tuple(map(self._state, ports))

    def _state(self, port: int) -> PortState:
        if self._live.peer_of(port) is None or not self._is_on:
            return PortState.DOWN
        now = self._clock.now_ns()
        seen = {outage.state(now) for outage in self._outages.get(port, ())}
        return next((state for state in (PortState.DOWN, PortState.TRAIN) if state in seen), PortState.UP)

    async def phy_drop(self, ports: Sequence[int], down_ms: float) -> None:
        """Take the signal away for a time."""
        self._suffer(ports, _Outage(self._clock.now_ns(), round(down_ms * _NS_PER_MS)))

    async def phy_flap(self, ports: Sequence[int], down_ms: float, up_ms: float, count: int) -> None:
        """Take the signal away again and again."""
        down_ns, up_ns = round(down_ms * _NS_PER_MS), round(up_ms * _NS_PER_MS)
        self._suffer(ports, _Outage(self._clock.now_ns(), down_ns, up_ns, count))

    def _suffer(self, ports: Sequence[int], outage: _Outage) -> None:
        """A port without a circuit has no signal to lose; with one, both of its ends lose it.

        What is left of what they suffer already is forgotten.
        """
        for port in {end for pair in self._live if not set(pair).isdisjoint(ports) for end in pair}:
            self._forget_past(port, all_of_it=True)
            self._outages[port].append(outage)

    def _forget_past(self, port: int, *, all_of_it: bool = False) -> None:
        now = self._clock.now_ns()
        going_on = []
        for outage in self._outages.get(port, ()):
            if all_of_it or outage.is_over(now):
                self._counts[port] = self._counts.get(port, 0) + _drops(outage, now)
            else:
                going_on.append(outage)
        self._outages[port] = going_on

    async def phy_counts(self, ports: Sequence[int]) -> tuple[int, ...]:
        """Drops seen on each port, in order."""
        now = self._clock.now_ns()
        return tuple(
            self._counts.get(port, 0) + sum(_drops(outage, now) for outage in self._outages.get(port, ()))
            for port in ports
        )

    async def save_map(self) -> None:
        """Keep the live map as the power-on map."""
        self._saved = self._live

    async def saved_map(self) -> PortMap:
        """The power-on map."""
        return self._saved

    async def power(self, *, on: bool) -> None:
        """Cut or give the power; power-on loads the saved map and adds one to the generation."""
        if on and not self._is_on:
            self._outages.clear()
            self._live = PortMap()
            self._become(self._saved)
        self._is_on = on

    async def stick(self, port: int, *, stuck: bool) -> None:
        """Make a port ignore map changes, or let it follow them again."""
        (self._stuck.add if stuck else self._stuck.discard)(port)


def _drops(outage: _Outage, now_ns: int) -> int:
    """Drops that count: a port that trains because its circuit is new has dropped nothing."""
    return outage.begun(now_ns) if outage.down_ns else 0
