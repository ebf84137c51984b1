"""The plugging of a virtual rack's drives: NBD exports of rackd become NVMe and SAS drives in slots of guests."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from rackloop.errors import LabError
from rackloop_labs.virtual_rack.guest_drives import PluggedDrive
from rackloop_labs.virtual_rack.machine import Machine
from rackloop_labs.virtual_rack.port_places import block_of

# A guest in software, beside others, on a busy machine.
_LET_GO_S = 20.0
_NO_NODE = "Failed to find node"


@dataclass(frozen=True)
class Socket:
    """A server port of a virtual rack: a slot of a guest, and the export through which rackd answers there."""

    machine: Machine
    slot: int
    export: str


class Plugs:
    """Plugs drives into sockets, and pulls them; ``nbd`` is the socket of rackd's exports.

    A slot takes either: an NVMe drive, or a SAS adapter with a drive. The adapter comes with the first SAS drive,
    and stays in the slot until an NVMe drive takes its place.

    A guest is told of one slot at a time: told of another before it has let go of a drive, it ejects the slot of that
    drive twice, and the second time what was plugged in since.
    """

    def __init__(self, nbd: Path) -> None:
        self._nbd = nbd
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        # SAS drives: no slot's.
        self._behind_adapters: set[str] = set()
        # QEMU may have done, later, what it did not say in time.
        self._unsure: set[str] = set()

    async def plug(self, socket: Socket, drive: PluggedDrive) -> None:
        """Plug a drive in. Raises LabError where QEMU refuses; what is left of it is pulled before the next one."""
        machine, node = socket.machine, _node(socket)
        if socket.export in self._unsure:
            await self.pull(socket)
        self._unsure.add(socket.export)
        bus = await self._bus(socket, drive)
        await machine.ask("blockdev-add", block_of(drive, socket.export, self._nbd) | {"node-name": node})
        (self._behind_adapters.discard if drive.protocol == "nvme" else self._behind_adapters.add)(socket.export)
        try:
            async with self._turn(socket):
                await machine.ask("device_add", drive.properties() | {"id": _device(socket), "bus": bus, "drive": node})
        except LabError:
            await self._forget(socket)
            raise
        self._unsure.discard(socket.export)

    async def holds(self, socket: Socket) -> bool:
        """Whether a drive is plugged in there still: a guest may have ejected it."""
        return _device(socket) in await _devices(socket.machine)

    async def pull(self, socket: Socket) -> None:
        """Pull the drive of a socket, once the guest has let go of it. Raises LabError where it does not.

        A guest is told that a SAS drive has gone, and is not waited for: that is pulled as from a backplane.
        """
        async with self._turn(socket):
            await socket.machine.unplug(_device(socket), _LET_GO_S)
        await self._forget(socket)
        self._unsure.discard(socket.export)

    @asynccontextmanager
    async def _turn(self, socket: Socket) -> AsyncIterator[None]:
        """The turn of a socket's slot at its guest; what is behind an adapter waits for none."""
        if socket.export in self._behind_adapters:
            yield
            return
        async with self._turns[socket.machine.name]:
            yield

    async def _forget(self, socket: Socket) -> None:
        """Have QEMU know no more of what a socket's drive answers with; it may have no such node by now."""
        try:
            await socket.machine.ask("blockdev-del", {"node-name": _node(socket)})
        except LabError as error:
            if _NO_NODE not in str(error):
                raise

    async def _bus(self, socket: Socket, drive: PluggedDrive) -> str:
        """The bus that a drive is plugged into, with the slot made ready for it."""
        machine, slot, adapter = socket.machine, f"slot{socket.slot}", f"sas{socket.slot}"
        async with self._turns[machine.name]:
            there = await _devices(machine)
            if drive.protocol == "nvme":
                if adapter in there:
                    await machine.unplug(adapter, _LET_GO_S)
                return slot
            if adapter not in there:
                await machine.ask("device_add", {"driver": "virtio-scsi-pci", "id": adapter, "bus": slot})
            return f"{adapter}.0"


async def follow_losses(sockets: Mapping[int, Socket], tell: Callable[[int], None]) -> None:
    """Tell the port of each drive that is in its guest no more, whether it was pulled or not; never returns."""
    ports: defaultdict[Machine, dict[str, int]] = defaultdict(dict)
    for port, socket in sockets.items():
        ports[socket.machine][_device(socket)] = port

    async def follow(machine: Machine, of_device: Mapping[str, int]) -> None:
        async for device in machine.losses():
            if device in of_device:
                tell(of_device[device])

    await asyncio.gather(*(follow(machine, of_device) for machine, of_device in ports.items()))


async def _devices(machine: Machine) -> set[str]:
    return {each["name"] for each in await machine.ask("qom-list", {"path": "/machine/peripheral"})}


def _device(socket: Socket) -> str:
    return f"drive{socket.slot}"


def _node(socket: Socket) -> str:
    return f"disk{socket.slot}"
