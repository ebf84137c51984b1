"""The guests of a virtual rack, resumed from the one that was saved: each has its name, its time and a login."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from rackloop.clock import Clock
from rackloop.errors import LabError
from rackloop.lab import LabState
from rackloop_drivers.clock_access import CLOCK_PORT
from rackloop_labs.virtual_rack.guest_cache import SavedGuest
from rackloop_labs.virtual_rack.machine import SSH_PORT, Machine, MachineFiles, machine_arguments
from rackloop_labs.virtual_rack.storage_network import StoragePort

USER = "root"
_KEY, _KNOWN_HOSTS = "guest_key", "known_hosts"
_CONSOLE = "{}.console"
_ANSWER_S = 60.0


def console_log(state: LabState, server: str) -> Path:
    """The log of a guest's serial line since the lab came up."""
    return state.directory / _CONSOLE.format(server)


def key_file(state: LabState) -> Path:
    """The key that logs in to the guests of the lab that is up."""
    return state.directory / _KEY


def known_hosts(state: LabState) -> Path:
    """The file with the keys of the guests of the lab that is up."""
    return state.directory / _KNOWN_HOSTS


def clear(state: LabState) -> None:
    """Take away what a lab leaves; the consoles' logs stay until it comes up again."""
    for path in (key_file(state), known_hosts(state)):
        path.unlink(missing_ok=True)


class Guests:
    """The running guests by the names of their servers. Make them by :meth:`resume`."""

    def __init__(
        self,
        machines: Mapping[str, Machine],
        storage: Mapping[str, StoragePort],
        ports: Mapping[str, Mapping[int, int]],
        consoles: Mapping[str, int],
    ) -> None:
        self.machines = machines
        self.storage = storage
        self.ssh = {name: of_guest[SSH_PORT] for name, of_guest in ports.items()}
        self.clocks = {name: of_guest[CLOCK_PORT] for name, of_guest in ports.items()}
        self.consoles = consoles

    @classmethod
    async def load(cls, saved: SavedGuest, servers: Mapping[str, Sequence[str]], state: LabState) -> Guests:
        """All guests as they were saved; they wait for :meth:`go`. Raises LabError where one cannot be had.

        ``servers`` has for each name the arguments for drives that are there from the start.
        """
        storage = {server: StoragePort.of(number, state.directory) for number, server in enumerate(servers)}
        starts = [_loaded(saved, server, state, storage[server], drives) for server, drives in servers.items()]
        loaded = await asyncio.gather(*starts, return_exceptions=True)
        machines = {machine.name: machine for machine in loaded if isinstance(machine, Machine)}
        failed = [outcome for outcome in loaded if isinstance(outcome, BaseException)]
        if failed:
            await asyncio.gather(*(machine.end() for machine in machines.values()))
            raise failed[0]
        try:
            ports = {name: await machine.forwarded_ports() for name, machine in machines.items()}
            consoles = {name: await machine.console_port() for name, machine in machines.items()}
        except BaseException:
            await asyncio.gather(*(machine.end() for machine in machines.values()))
            raise
        return cls(machines, storage, ports, consoles)

    async def go(self, lab: str, saved: SavedGuest, state: LabState, clock: Clock) -> None:
        """Let them run, each under its name and with the lab's own login; returns once all have taken it."""
        public = _login(state, self.ssh, saved.host_key)
        await asyncio.gather(
            *(_named(machine, lab, public, self.storage[name], clock) for name, machine in self.machines.items())
        )

    async def ended(self) -> str:
        """The name of a guest, once its machine has ended."""
        waits = {asyncio.ensure_future(machine.process.wait()): name for name, machine in self.machines.items()}
        done, pending = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in pending:
            wait.cancel()
        return waits[done.pop()]

    async def end(self) -> None:
        """End all of them."""
        await asyncio.gather(*(machine.end() for machine in self.machines.values()))


async def _loaded(
    saved: SavedGuest, server: str, state: LabState, storage: StoragePort, drives: Sequence[str]
) -> Machine:
    files = MachineFiles(saved.folder, console_log(state, server))
    argv = machine_arguments(saved.recipe, files, is_resumed=True, storage=storage, drives=drives)
    machine = await Machine.start(server, argv, files)
    try:
        await machine.load(saved.folder)
    except BaseException:
        await machine.end()
        raise
    return machine


async def _named(machine: Machine, lab: str, public_key: str, storage: StoragePort, clock: Clock) -> None:
    await machine.go()
    # A name of 32 hexadecimal digits, the same whenever this guest of this lab is up.
    identity = hashlib.sha256(f"{lab}/{machine.name}".encode()).hexdigest()[:32]
    told = {
        "name": machine.name,
        "id": identity,
        "key": public_key,
        "storage": f"{storage.mac} {storage.address}",
    }
    for verb, what in told.items():
        await machine.tell(verb, what, _ANSWER_S)
    await machine.tell("time", f"{clock.wall().timestamp():.6f}", _ANSWER_S)
    # It is the same when its power is cut and it boots.
    await machine.tell("sync", "", _ANSWER_S)


def _login(state: LabState, ports: Mapping[str, int], host_key: str) -> str:
    """Make the key of the lab, and write the keys of its guests down; the public key."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    private = Ed25519PrivateKey.generate()
    try:
        path = key_file(state)
        path.unlink(missing_ok=True)
        path.touch(mode=0o600)
        path.write_bytes(
            private.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
            )
        )
        lines = [f"[127.0.0.1]:{port} {host_key}\n" for port in ports.values()]
        known_hosts(state).write_text("".join(lines), encoding="utf-8")
    except OSError as error:
        raise LabError(f"the lab's login cannot be written to {state.directory}: {error.strerror}") from error
    public = private.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return public.decode()
