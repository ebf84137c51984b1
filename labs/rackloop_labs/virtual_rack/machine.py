"""A guest's machine: QEMU in software, controlled by QMP, and the line by which the guest is told who it is."""

from __future__ import annotations

import asyncio
import contextlib
import re
import shlex
import socket
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qemu.qmp import EventListener, QMPClient, QMPError

from rackloop.errors import LabError
from rackloop.lab import environment_for_programs
from rackloop_drivers.clock_access import CLOCK_PORT
from rackloop_labs.virtual_rack.image import DISK, INITRD, KERNEL, MEMORY, STATE
from rackloop_labs.virtual_rack.precedence import give_way
from rackloop_labs.virtual_rack.prerequisites import QEMU, found
from rackloop_labs.virtual_rack.recipe import AGENT_PORT, FIRST_SLOT, GuestRecipe
from rackloop_labs.virtual_rack.storage_network import StoragePort

SSH_PORT = 22
FORWARDED = (SSH_PORT, CLOCK_PORT)
"""The ports of a guest that are reached from here."""

_FORWARDED = re.compile(r"TCP\[HOST_FORWARD\]\s+\d+\s+127\.0\.0\.1\s+(\d+)\s+\S+\s+(\d+)")
_PORT_OF_CONSOLE = re.compile(r"127\.0\.0\.1:(\d+)")
_LAST_LINES = 12
_PANIC = "Kernel panic"
# QEMU before 8.1 leaves the guest's memory barriers out where there can be one core only. Its devices have threads of
# their own: a request was lost where the guest read "no need to ring the doorbell" before its own writing was seen.
_CORES = "1,maxcpus=2"
# The memory for translated code, of which QEMU by itself takes a gigabyte and more.
_CODE_MIB = 96
_POLL_S = 0.02
# A machine without devices that have to end something ends at once.
_END_S = 5.0
_READY = "ready"
# QEMU's states of a machine that was reset and does not run, and of one whose guest has turned it off.
_FRESH, _ENDED = "prelaunch", "shutdown"
_ANSWER_S = 20.0
# While it loads a saved guest it answers nothing.
_LOADED_S = 120.0
_IS_ASKED = "already in the process of unplug"


@dataclass(frozen=True)
class MachineFiles:
    """The files of a machine: ``guest`` is the folder of its system, ``console`` the log of its serial line."""

    guest: Path
    console: Path


def machine_arguments(
    recipe: GuestRecipe,
    files: MachineFiles,
    *,
    is_resumed: bool,
    storage: StoragePort | None = None,
    drives: Sequence[str] = (),
) -> list[str]:
    """The command line of QEMU, but for the sockets that it is given; ``drives`` are arguments for more of these.

    Without a port of the ``storage`` network, that card's cable leads nowhere.

    One that is resumed leaves the files as they are: it has its own copy of every page and block that it changes.
    """
    share, snapshot = ("off", "on") if is_resumed else ("on", "off")
    guest = files.guest
    argv = [
        *("setpriv", "--pdeathsig", "KILL", found(QEMU) or QEMU),
        *("-nodefaults", "-no-user-config", "-display", "none"),
        # A guest that is up stays a machine whatever it does: without power it is one that was reset and does not run.
        *(("-action", "reboot=reset,shutdown=pause,panic=none") if is_resumed else ("-no-reboot",)),
        *("-machine", "q35,memory-backend=memory", "-accel", f"tcg,tb-size={_CODE_MIB}", "-cpu", "max", "-smp", _CORES),
        *("-m", f"{recipe.memory_mib}M", "-rtc", "base=utc"),
        "-object",
        f"memory-backend-file,id=memory,size={recipe.memory_mib}M,mem-path={_escaped(guest / MEMORY)},share={share}",
        *("-kernel", str(guest / KERNEL), "-initrd", str(guest / INITRD), "-append", recipe.append),
        "-drive",
        f"if=none,id=root,file={_escaped(guest / DISK)},format=raw,cache=unsafe,discard=unmap,snapshot={snapshot}",
        *("-device", "virtio-blk-pci,drive=root,addr=0x2"),
        *("-device", "virtio-serial-pci,addr=0x3"),
        *("-device", f"virtserialport,chardev=agent,name={AGENT_PORT}"),
        *("-netdev", f"user,id=net,restrict=on,{','.join(f'hostfwd=tcp:127.0.0.1:0-:{port}' for port in FORWARDED)}"),
        *("-device", "virtio-net-pci,netdev=net,romfile=,addr=0x4"),
        *("-device", "virtio-rng-pci,addr=0x5", "-device", "vmgenid,guid=auto"),
        *_storage_card(storage),
        "-chardev",
        f"socket,id=console,host=127.0.0.1,port=0,server=on,wait=off,logfile={_escaped(files.console)},logappend=off",
        *("-serial", "chardev:console"),
        *("-mon", "chardev=qmp,mode=control"),
    ]
    for slot in range(recipe.slots):
        argv += [
            "-device",
            f"pcie-root-port,id=slot{slot},addr={FIRST_SLOT + slot:#x},chassis={slot + 1},slot={slot + 1}",
        ]
    if is_resumed:
        argv += ["-S", "-incoming", "defer"]
    return [*argv, *drives]


def _storage_card(port: StoragePort | None) -> tuple[str, ...]:
    joined = "hubport,hubid=0" if port is None else f"vde,sock={_escaped(port.sockets)}"
    mac = "" if port is None else f",mac={port.mac}"
    return "-netdev", f"{joined},id=storage", "-device", f"virtio-net-pci,netdev=storage,romfile=,addr=0x6{mac}"


def _escaped(path: Path) -> str:
    """A path among QEMU's options, where a comma parts these."""
    return str(path).replace(",", ",,")


class Machine:
    """A running QEMU. Make it by :meth:`start`; it ends with this process, however that ends."""

    def __init__(
        self,
        name: str,
        files: MachineFiles,
        process: asyncio.subprocess.Process,
        agent: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        self.name = name
        self.process = process
        self._files = files
        self._agent = agent
        self._qmp = QMPClient(name)

    @classmethod
    async def start(cls, name: str, argv: Sequence[str], files: MachineFiles) -> Machine:
        """Start QEMU by :func:`machine_arguments`; one that is resumed waits for :meth:`load`.

        Raises LabError where it does not start.
        """
        argv = list(argv)
        qmp_here, qmp_there = socket.socketpair()
        agent_here, agent_there = socket.socketpair()
        with qmp_there, agent_there:
            for name_of_it, theirs in {"qmp": qmp_there, "agent": agent_there}.items():
                argv += ["-chardev", f"socket,id={name_of_it},fd={theirs.fileno()}"]
            process = await asyncio.create_subprocess_exec(
                *argv,
                env=environment_for_programs(),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                pass_fds=(qmp_there.fileno(), agent_there.fileno()),
                start_new_session=True,
            )
        await give_way(process.pid)
        machine = cls(name, files, process, await asyncio.open_unix_connection(sock=agent_here))
        try:
            await machine._qmp.connect(qmp_here)
        except QMPError as error:
            await machine.end()
            raise LabError(f"QEMU does not start for {name}: {await machine._complaint()}") from error
        return machine

    async def ask(
        self, command: str, arguments: dict[str, object] | None = None, *, within_s: float = _ANSWER_S
    ) -> Any:
        """One command of QMP. Raises LabError; where QEMU does not answer in time, it may yet do what it was asked."""
        try:
            return await asyncio.wait_for(self._qmp.execute(command, arguments), within_s)
        except QMPError as error:
            raise LabError(f"QEMU of {self.name} does not {command}: {error}") from error
        except TimeoutError as error:
            raise LabError(
                f"QEMU of {self.name} did not {command} within {within_s:g} s; does a drive of it hang?"
            ) from error

    async def unplug(self, device: str, within_s: float) -> None:
        """Ask the guest to let go of a device, and return once it has. Raises LabError where it does not in time.

        One without power is not asked, and one that was asked before may have let go by now.
        """
        is_it = EventListener(("DEVICE_DELETED", "DEVICE_UNPLUG_GUEST_ERROR"), lambda event: _device(event) == device)
        with self._qmp.listen(is_it):
            if not await self._has(device):
                return
            try:
                await self.ask("device_del", {"id": device})
            except LabError as error:
                if f"Device '{device}' not found" in str(error):
                    # It had been asked before, and let go just now.
                    return
                if _IS_ASKED not in str(error):
                    raise
            if not await self.is_on():
                await self.ask("system_reset")
            try:
                event = await asyncio.wait_for(is_it.get(), within_s)
            except TimeoutError as error:
                raise LabError(f"{self.name} did not let go of {device} within {within_s:g} s; is it hung?") from error
        if event["event"] != "DEVICE_DELETED":
            raise LabError(f"{self.name} refuses to let go of {device}")

    async def wait_until_ready(self, within_s: float) -> None:
        """Return once the guest has booted. Raises LabError with the end of its console where it does not."""
        try:
            await asyncio.wait_for(self._heard(_READY), within_s)
        except TimeoutError as error:
            raise LabError(f"the guest did not boot within {within_s:g} s; {self.last_words()}") from error

    async def tell(self, verb: str, what: str, within_s: float) -> str:
        """Tell the guest something; what it answers. Raises LabError where it does not in time."""
        self._agent[1].write(f"{verb} {what}\n".encode())
        try:
            return await asyncio.wait_for(self._heard(verb), within_s)
        except TimeoutError as error:
            raise LabError(
                f"guest {self.name} did not answer {verb} within {within_s:g} s; {self.last_words()}"
            ) from error

    async def _heard(self, verb: str) -> str:
        while line := await self._agent[0].readline():
            said, _, rest = line.decode(errors="replace").rstrip("\n").partition(" ")
            if said == verb:
                return rest.strip()
        raise LabError(f"{self.name} ended: {await self._complaint()}; {self.last_words()}")

    def last_words(self) -> str:
        """The end of its console, with the line in which its kernel says why it panicked."""
        console = self._files.console
        text = console.read_text(errors="replace") if console.exists() else ""
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        # A trace of its calls comes after it, longer than what is shown.
        why = [line for line in lines[:-_LAST_LINES] if _PANIC in line][-1:]
        return f"its console ends with: {' | '.join(why + lines[-_LAST_LINES:])}" if lines else "its console is empty"

    async def save(self, folder: Path) -> None:
        """Stop the guest and save the state of its devices in ``folder``, beside its memory; then end."""
        await self.ask("stop")
        await self._leave_memory()
        await self.ask("migrate", {"uri": f"exec:cat >{shlex.quote(str(folder / STATE))}"})
        await self._migrated()
        await self.end()

    async def load(self, folder: Path) -> None:
        """Take the state that was saved in ``folder``; the machine waits for :meth:`go`."""
        await self._leave_memory()
        await self.ask("migrate-incoming", {"uri": f"exec:cat {shlex.quote(str(folder / STATE))}"})
        while (await self.ask("query-status", within_s=_LOADED_S))["status"] == "inmigrate":
            await asyncio.sleep(_POLL_S)

    async def go(self) -> None:
        """Let it run."""
        await self.ask("cont")

    async def power_off(self) -> None:
        """Take its power: it stops, and forgets all but its disk."""
        await self.ask("stop")
        await self._reset()

    async def power_on(self) -> None:
        """Give it power: it boots."""
        if await self._status() == _ENDED:
            await self._reset()
        await self.go()

    async def is_on(self) -> bool:
        """Whether it has power; one that is held has."""
        return await self._status() not in {_FRESH, _ENDED}

    async def press_button(self) -> None:
        """Press its power button: a guest that listens shuts down."""
        await self.ask("system_powerdown")

    async def interrupt(self) -> None:
        """Have its processor get an NMI."""
        await self.ask("inject-nmi")

    async def power_changes(self) -> AsyncIterator[None]:
        """A turn for each time that the guest turned itself off or was reset."""
        changes = EventListener(("SHUTDOWN", "RESET"))
        with self._qmp.listen(changes):
            while True:
                await changes.get()
                yield

    async def losses(self) -> AsyncIterator[str]:
        """The name of each device that is in the machine no more, whether that was asked for or not."""
        gone = EventListener("DEVICE_DELETED", lambda event: _device(event) is not None)
        with self._qmp.listen(gone):
            while True:
                yield str(_device(await gone.get()))

    async def _reset(self) -> None:
        await self.ask("system_reset")
        while await self._status() != _FRESH:
            await asyncio.sleep(_POLL_S)

    async def _status(self) -> str:
        status: str = (await self.ask("query-status"))["status"]
        return status

    async def _has(self, device: str) -> bool:
        there = await self.ask("qom-list", {"path": "/machine/peripheral"})
        return any(each["name"] == device for each in there)

    async def forwarded_ports(self) -> dict[int, int]:
        """The ports of the loopback here that lead to the guest, by its own: those of :data:`FORWARDED`."""
        said: str = await self.ask("human-monitor-command", {"command-line": "info usernet"})
        return {int(guest): int(here) for here, guest in _FORWARDED.findall(said)}

    async def console_port(self) -> int:
        """The port of the loopback here that leads to the guest's serial line."""
        for device in await self.ask("query-chardev"):
            if device["label"] == "console" and (port := _PORT_OF_CONSOLE.search(device["filename"])):
                return int(port[1])
        raise LabError(f"QEMU of {self.name} does not say where its console answers")

    async def end(self) -> None:
        """End it at once: nothing that it has is kept but what was saved."""
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.kill()
        with contextlib.suppress(QMPError, OSError, EOFError):
            await self._qmp.disconnect()
        self._agent[1].close()
        await asyncio.wait_for(self.process.wait(), _END_S)

    async def _complaint(self) -> str:
        assert self.process.stderr is not None  # noqa: S101 - asked for
        try:
            said = await asyncio.wait_for(self.process.stderr.read(), _END_S)
        except TimeoutError:
            return "QEMU says nothing"
        return said.decode(errors="replace").strip().splitlines()[-1:][0] if said.strip() else "QEMU says nothing"

    async def _leave_memory(self) -> None:
        """Have the memory left out of the state: it is in its file already."""
        left_out = {"capability": "x-ignore-shared", "state": True}
        await self.ask("migrate-set-capabilities", {"capabilities": [left_out]})

    async def _migrated(self) -> None:
        while (found := await self.ask("query-migrate"))["status"] not in {"completed", "failed"}:
            await asyncio.sleep(_POLL_S)
        if found["status"] == "failed":
            raise LabError(
                f"the state of {self.name} could not be saved: {found.get('error-desc', 'QEMU says not why')}"
            )


def _device(event: Any) -> str | None:
    device: str | None = event["data"].get("device")
    return device
