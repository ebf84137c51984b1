"""The switching matrix of a virtual rack: what it joins is plugged into guests."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Collection, Coroutine, Mapping, Sequence
from typing import Any, Protocol

from rackloop.abilities import LiveMap, PortState
from rackloop.errors import LabError
from rackloop.portmap import PortMap
from rackloop_drivers.fabric.flexfabric import PortMatrix
from rackloop_labs.virtual_rack.guest_drives import PluggedDrive
from rackloop_labs.virtual_rack.plugs import Socket

# A guest on a busy machine lets go of a drive late.
_AGAIN_S = 5.0
_log = logging.getLogger("the rack")


class Plugging(Protocol):
    """Plugs drives into sockets, and pulls them; as :class:`~rackloop_labs.virtual_rack.plugs.Plugs` does."""

    async def plug(self, socket: Socket, drive: PluggedDrive) -> None: ...  # noqa: D102
    async def pull(self, socket: Socket) -> None: ...  # noqa: D102
    async def holds(self, socket: Socket) -> bool: ...  # noqa: D102


class PluggingMatrix:
    """A :class:`~rackloop_drivers.fabric.flexfabric.PortMatrix` whose circuits are drives plugged into guests.

    ``inner`` keeps the map, its generation, the PHYs and the saved map. As with any circuit switch, a change is
    executed and answered at once, and the servers follow: a drive whose circuit has ended is pulled, and once its guest
    has let go of it, plugged in where its new circuit leads. ``sockets`` and ``drives`` are what is behind the
    ports; :meth:`follow` must be running.
    """

    def __init__(
        self,
        inner: PortMatrix,
        sockets: Mapping[int, Socket],
        drives: Mapping[int, PluggedDrive],
        plugs: Plugging,
        *,
        again_s: float = _AGAIN_S,
    ) -> None:
        self._again_s = again_s
        self._inner = inner
        self._sockets = sockets
        self._drives = drives
        self._dark: set[int] = set()
        self._plugs = plugs
        self._plugged: dict[int, int] = {}
        self._doubtful: set[int] = set()
        self._told: dict[int, str] = {}
        self._is_on = True
        self._is_changed = asyncio.Event()
        self._is_settled = asyncio.Event()

    @property
    def port_count(self) -> int:
        """The number of ports."""
        return self._inner.port_count

    async def generation(self) -> int:
        """The number of changes of the live map so far."""
        return await self._inner.generation()

    async def get_map(self) -> LiveMap:
        """The live map and its generation."""
        return await self._inner.get_map()

    async def map(self, pairs: PortMap, *, full: bool, generation: int | None, asked_ns: int | None = None) -> LiveMap:
        """Execute a full or a partial map at once; the live map after that."""
        live = await self._inner.map(pairs, full=full, generation=generation, asked_ns=asked_ns)
        self._change()
        return live

    async def open(
        self, ports: Collection[int] | None, *, generation: int | None, asked_ns: int | None = None
    ) -> LiveMap:
        """Unmap these ports, or every port, at once; the live map after that."""
        live = await self._inner.open(ports, generation=generation, asked_ns=asked_ns)
        self._change()
        return live

    async def states(self, ports: Sequence[int]) -> tuple[PortState, ...]:
        """One state for each port, in order: the switch's own, whatever the guests have made of it."""
        return await self._inner.states(ports)

    async def phy_drop(self, ports: Sequence[int], down_ms: float) -> None:
        """Take the signal away for a time: what the guests ask of the drives there waits for it."""
        await self._inner.phy_drop(ports, down_ms)

    async def phy_flap(self, ports: Sequence[int], down_ms: float, up_ms: float, count: int) -> None:
        """Take the signal away again and again."""
        await self._inner.phy_flap(ports, down_ms, up_ms, count)

    async def phy_counts(self, ports: Sequence[int]) -> tuple[int, ...]:
        """Drops seen on each port, in order."""
        return await self._inner.phy_counts(ports)

    async def save_map(self) -> None:
        """Keep the live map as the power-on map."""
        await self._inner.save_map()

    async def saved_map(self) -> PortMap:
        """The power-on map."""
        return await self._inner.saved_map()

    async def power(self, *, on: bool) -> None:
        """Cut or give the power: without it no drive is plugged in anywhere."""
        await self._inner.power(on=on)
        self._is_on = on
        self._change()

    async def stick(self, port: int, *, stuck: bool) -> None:
        """Make a port ignore map changes, or let it follow them again."""
        await self._inner.stick(port, stuck=stuck)

    def power_of(self, drive: int, *, on: bool) -> None:
        """The drive at a port lost its power, or has it again: without, it is in no guest."""
        (self._dark.discard if on else self._dark.add)(drive)
        self._change()

    def doubt(self, port: int) -> None:
        """The guest of a server port may have ejected its drive: look, and plug it in again."""
        self._doubtful.add(port)
        self._change()

    def look_again(self) -> None:
        """Do what could not be done before: a guest was switched off or on."""
        self._change()

    def _change(self) -> None:
        self._is_settled.clear()
        self._is_changed.set()

    async def settled(self) -> None:
        """Return once the guests have followed the map, but for what could not be done."""
        await self._is_settled.wait()

    async def follow(self) -> None:
        """Have the guests follow the map, change after change; never returns.

        What a guest did not do in time is asked of it again, now and then.
        """
        failed: list[LabError] = []
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._is_changed.wait(), self._again_s if failed else None)
            failed = await self.catch_up()
            if not self._is_changed.is_set():
                self._is_settled.set()

    async def catch_up(self) -> list[LabError]:
        """Have the guests follow the map until all is as it says, but for what could not be done, which is returned.

        A drive whose circuit has ended is pulled, and plugged in elsewhere once its guest has let go of it; no other
        waits for it. Changes that are made meanwhile are followed as well, and have what failed be tried again.
        """
        running: dict[asyncio.Future[None], tuple[int, int]] = {}
        failed: dict[int, LabError] = {}
        try:
            while True:
                self._is_changed.clear()
                wanted = self._circuits((await self._inner.get_map()).pairs)
                for circuit, act in self._due(wanted, running.values(), failed):
                    running[asyncio.ensure_future(act)] = circuit
                if not running:
                    return list(failed.values())
                changed = asyncio.ensure_future(self._is_changed.wait())
                waited: list[asyncio.Future[Any]] = [*running, changed]
                await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
                if not changed.cancel():
                    failed.clear()
                for made in [future for future in running if future.done()]:
                    port, _ = running.pop(made)
                    self._note(port, error := made.exception())
                    if isinstance(error, LabError):
                        failed[port] = error
        finally:
            for left in running:
                left.cancel()

    def _note(self, port: int, error: BaseException | None) -> None:
        """Log what a guest did not do, once for as long as it is the same. Raises what is no LabError."""
        if isinstance(error, LabError):
            if self._told.get(port) != str(error):
                _log.warning("%s", error)
            self._told[port] = str(error)
        elif error is not None:
            raise error
        else:
            self._told.pop(port, None)

    def _due(
        self, wanted: Mapping[int, int], running: Collection[tuple[int, int]], failed: Collection[int]
    ) -> list[tuple[tuple[int, int], Coroutine[Any, Any, None]]]:
        """The acts that are due, with the port and the drive of each: no two of one port or drive."""
        at_work, on_the_way = {port for port, _ in running}, {drive for _, drive in running}
        looks = [
            ((port, self._plugged[port]), self._look(port))
            for port in sorted(self._doubtful & self._plugged.keys() - at_work - set(failed))
        ]
        at_work |= {port for (port, _), _ in looks}
        pulls = [
            ((port, drive), self._pull(port))
            for port, drive in self._plugged.items()
            if wanted.get(port) != drive and port not in at_work and port not in failed
        ]
        # A drive that a guest has not let go of is in no other guest.
        taken = {*self._plugged.values(), *on_the_way}
        plugs = [
            ((port, drive), self._plug(port, drive))
            for port, drive in wanted.items()
            if port not in self._plugged and port not in at_work and port not in failed and drive not in taken
        ]
        return looks + pulls + plugs

    def _circuits(self, pairs: PortMap) -> dict[int, int]:
        """The port of the drive at each server port, while there is power."""
        ends = [end for low, high in pairs for end in ((low, high), (high, low))] if self._is_on else []
        return {near: far for near, far in ends if near in self._sockets and far in self._drives.keys() - self._dark}

    async def _plug(self, port: int, drive: int) -> None:
        try:
            await self._plugs.plug(self._sockets[port], self._drives[drive])
        except LabError:
            # It may be plugged in late: until that is looked at, and pulled, the drive is in no other guest.
            self._doubtful.add(port)
            raise
        finally:
            self._plugged[port] = drive

    async def _look(self, port: int) -> None:
        socket = self._sockets[port]
        self._doubtful.discard(port)
        try:
            if not await self._plugs.holds(socket):
                _log.warning("%s: the guest has no %s any more", socket.export, self._drives[self._plugged[port]].name)
                await self._pull(port)
        except LabError:
            self._doubtful.add(port)
            raise

    async def _pull(self, port: int) -> None:
        await self._plugs.pull(self._sockets[port])
        del self._plugged[port]
