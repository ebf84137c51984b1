"""The storage network of a virtual rack: an Ethernet switch of vde2 on this machine, which joins the guests alone."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from dataclasses import dataclass
from ipaddress import IPv4Interface, IPv4Network
from pathlib import Path

from rackloop.errors import LabError
from rackloop.lab import environment_for_programs
from rackloop_labs.virtual_rack.prerequisites import VDE_SWITCH, found

NETWORK = IPv4Network("10.77.0.0/24")
"""The addresses of the network: the first is that of the first server in the description, and so on."""

_SOCKETS = "storage-network"
_COMES_WITHIN_S = 5.0
_END_S = 5.0
_POLL_S = 0.01


@dataclass(frozen=True)
class StoragePort:
    """A guest's port of the network: the Ethernet address of its network card, its IP address, and the switch."""

    mac: str
    address: IPv4Interface
    sockets: Path

    @classmethod
    def of(cls, number: int, directory: Path) -> StoragePort:
        """The port of the guest with this number, counted from 0, at the switch of the lab in ``directory``."""
        address = IPv4Interface(f"{NETWORK[number + 1]}/{NETWORK.prefixlen}")
        # Locally administered, as the addresses that QEMU gives.
        return cls(f"52:54:00:52:4c:{number + 1:02x}", address, directory / _SOCKETS)


class StorageNetwork:
    """The running switch. Make it by :meth:`start`; it ends with this process, however that ends.

    Its sockets are in a folder that no other user of the machine may enter.
    """

    def __init__(self, folder: Path, process: asyncio.subprocess.Process) -> None:
        self.folder = folder
        self.process = process

    @classmethod
    async def start(cls, directory: Path) -> StorageNetwork:
        """Start the switch with its sockets in ``directory``. Raises LabError where it does not start."""
        folder = directory / _SOCKETS
        shutil.rmtree(folder, ignore_errors=True)
        argv = (
            found(VDE_SWITCH) or VDE_SWITCH,
            "--rcfile",
            "/dev/null",
            "--sock",
            str(folder),
            "--dirmode",
            "0700",
            "--mode",
            "0600",
        )
        # Its console is on standard input, at whose end it ends: this process has the other end of the pipe.
        process = await asyncio.create_subprocess_exec(
            *argv,
            env=environment_for_programs(),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        network = cls(folder, process)
        try:
            async with asyncio.timeout(_COMES_WITHIN_S):
                while not (folder / "ctl").exists():
                    if process.returncode is not None:
                        raise LabError(f"the storage network does not start: {await network._complaint()}")
                    await asyncio.sleep(_POLL_S)
        except TimeoutError as error:
            await network.end()
            raise LabError(f"the storage network does not start: no sockets in {folder}") from error
        return network

    async def end(self) -> None:
        """End it; guests that are still there have no network any more."""
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.kill()
        await asyncio.wait_for(self.process.wait(), _END_S)
        shutil.rmtree(self.folder, ignore_errors=True)

    async def _complaint(self) -> str:
        assert self.process.stderr is not None  # noqa: S101 - asked for
        said = (await self.process.stderr.read()).decode(errors="replace").strip()
        return said.splitlines()[-1] if said else f"{VDE_SWITCH} ended with status {self.process.returncode}"
