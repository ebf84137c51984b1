"""The drives of a virtual rack: NBD exports of rackd, plugged into slots of guests as NVMe drives."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rackloop.errors import LabError
from rackloop_labs.virtual_rack.machine import Machine

# A guest in software, beside others, on a busy machine.
_LET_GO_S = 20.0


@dataclass(frozen=True)
class Socket:
    """A server port of a virtual rack: a slot of a guest, and the export through which rackd answers there."""

    machine: Machine
    slot: int
    export: str


@dataclass(frozen=True)
class PluggedDrive:
    """A drive as a slot is told of it."""

    name: str
    serial: str
    size: int
    sector_bytes: int


class Plugs:
    """Plugs drives into sockets, and pulls them; ``nbd`` is the socket of rackd's exports."""

    def __init__(self, nbd: Path) -> None:
        self._nbd = nbd

    async def plug(self, socket: Socket, drive: PluggedDrive) -> None:
        """Plug a drive in. Raises LabError where QEMU refuses; then nothing is left of it."""
        machine, node = socket.machine, f"disk{socket.slot}"
        # Of another drive than this one rackd refuses to answer there.
        export = f"{socket.export}.by-id.{drive.serial}"
        nbd = {"driver": "nbd", "server": {"type": "unix", "path": str(self._nbd)}, "export": export}
        # A port's export is as large as the rack's largest drive.
        await machine.ask("blockdev-add", {"driver": "raw", "node-name": node, "size": drive.size, "file": nbd})
        device = {"driver": "nvme", "id": _device(socket), "bus": f"slot{socket.slot}", "drive": node}
        device |= {"serial": drive.serial, "logical_block_size": str(drive.sector_bytes)}
        try:
            await machine.ask("device_add", dict(device))
        except LabError:
            await machine.ask("blockdev-del", {"node-name": node})
            raise

    async def pull(self, socket: Socket) -> None:
        """Pull the drive of a socket, once the guest has let go of it. Raises LabError where it does not."""
        await socket.machine.unplug(_device(socket), _LET_GO_S)
        await socket.machine.ask("blockdev-del", {"node-name": f"disk{socket.slot}"})


def _device(socket: Socket) -> str:
    return f"drive{socket.slot}"
