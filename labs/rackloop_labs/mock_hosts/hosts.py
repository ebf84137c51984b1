"""The servers of a mock rack, kept by labd in step with rackd's power."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import asyncssh

from rackloop.clock import Clock
from rackloop.errors import RackloopError
from rackloop.lab import Lab, Part, PartKind
from rackloop.native import find_binary
from rackloop_drivers.boxes import SerialLine
from rackloop_drivers.rackd import RackdLink
from rackloop_labs._rackd_config import CONTROL_SOCKET, NBD_SOCKET, TRUTH_LOG
from rackloop_labs.labd_control import LABD_SOCKET
from rackloop_labs.mock_hosts._console import MockConsole
from rackloop_labs.mock_hosts._debounce import debounced
from rackloop_labs.mock_hosts._host import MockHost
from rackloop_labs.mock_hosts._packet_filter import NFT
from rackloop_labs.mock_hosts._power_tools import POWER_TOOLS
from rackloop_labs.mock_hosts._rootfs import HostFolder, remove
from rackloop_labs.mock_hosts._ssh_server import USER, SshServer
from rackloop_labs.mock_hosts._sysfs import Sysfs
from rackloop_labs.mock_hosts._view import KernelLine
from rackloop_labs.mock_hosts._watch import HostWatch
from rackloop_labs.mock_hosts.tools import TOOLS

__all__ = ["MockServers", "clear", "memory_of", "mock_hosts"]

_FOLDER = "hosts"
_KNOWN_HOSTS = "known_hosts"
_MEMORY = "memory"
_USER_KEY = "id_ed25519"
# No server is called so: names are letters, digits, - and _.
_TOOLS_FOLDER = ".tools"
_SSH_PORT = 22
_LOOPBACK = "127.0.0.1"
# Who looks for longer than a command starts sees a change so late; writing thousands of files while a rack is busy
# would take the processor from what is measured.
_QUIET_S = 0.5
_MOST_BEHIND_S = 30.0
# Consoles are a little behind: to look at the rack after each change would take the processor from what is measured.
_PRINT_QUIET_S = 0.1
_PRINT_BEHIND_S = 0.5


@contextlib.asynccontextmanager
async def mock_hosts(
    lab: Lab, link: RackdLink, directory: Path, clock: Clock, lines: Mapping[str, SerialLine]
) -> AsyncIterator[MockServers]:
    """Every server of ``lab``, booted, each in a sandbox with SSH of its own, for as long as the context lasts.

    Each prints on its serial line among ``lines``.

    They live in ``directory``, the lab's, where rackd's sockets are; their power is rackd's.
    Raises ToolError where bubblewrap or util-linux is missing, LabError where a sandbox cannot be made.
    """
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(clear, directory)
        watch = HostWatch(lab, directory / CONTROL_SOCKET, directory / TRUTH_LOG, clock)
        stack.callback(watch.close)
        shown = {"known_hosts": str(directory / _KNOWN_HOSTS), "key_file": str(directory / _USER_KEY)}
        hosts = MockServers({"user": USER, **shown}, watch)
        loop = asyncio.get_running_loop()
        tools = _tools(directory / _FOLDER / _TOOLS_FOLDER)
        memory = memory_of(directory)
        user_key = asyncssh.generate_private_key("ssh-ed25519")
        known = []
        for name in lab.servers:
            folder = HostFolder(directory / _FOLDER / name)
            folder.furnish(name)
            sysfs = Sysfs(memory / name, name, watch)
            bindings = folder.bindings(sysfs, tools, [directory / NBD_SOCKET])
            cut = partial(link.request, "power", target=str(Part.server(name)), on=False)
            console = MockConsole(name, lines[name])
            with watch.kernel(name) as kernel:
                kernel.tell = _telling(loop, console)
            host = MockHost(name, folder, bindings, watch, sysfs, clock, cut, console)
            host_key = asyncssh.generate_private_key("ssh-ed25519")
            server = SshServer(host_key, user_key.convert_to_public(), host.session, hosts.forward)
            host.attach(server)
            hosts.add(host, server)
            stack.push_async_callback(host.close)
            # By its own name too: so another server, as a jump host, leads to it.
            known.append(f"{name},[{_LOOPBACK}]:{server.port} {host_key.export_public_key().decode().strip()}\n")
        _write_private(directory / _KNOWN_HOSTS, "".join(known).encode())
        _write_private(directory / _USER_KEY, user_key.export_private_key())
        link.follow(hosts.note)
        await hosts.power_on()
        for follow in (hosts.keep_current, hosts.keep_printing):
            stack.push_async_callback(_cancel, asyncio.create_task(follow()))
        yield hosts


def clear(directory: Path) -> None:
    """Remove what mock servers left in a lab's directory, also those of a lab that was killed.

    A directory that is a copy of another's leads to the memory of that lab, which may be up, and is left to it.
    """
    remove(directory / _FOLDER)
    if (directory / _MEMORY).is_symlink():
        if (memory := (directory / _MEMORY).readlink()).name.startswith(_memory_prefix(directory)):
            remove(memory)
        (directory / _MEMORY).unlink()
    for name in (LABD_SOCKET, _KNOWN_HOSTS, _USER_KEY):
        (directory / name).unlink(missing_ok=True)


class MockServers(Mapping[str, MockHost]):
    """The servers by name, and what concerns all of them. ``login`` is what a client needs to log in by SSH."""

    def __init__(self, login: dict[str, str], watch: HostWatch) -> None:
        self.login = login
        self._watch = watch
        self._hosts: dict[str, MockHost] = {}
        self._servers: dict[str, SshServer] = {}
        self._changed, self._to_print = asyncio.Event(), asyncio.Event()

    def __getitem__(self, name: str) -> MockHost:
        return self._hosts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._hosts)

    def __len__(self) -> int:
        return len(self._hosts)

    def add(self, host: MockHost, server: SshServer) -> None:
        """Have one more."""
        self._hosts[host.name], self._servers[host.name] = host, server

    def addresses(self) -> dict[str, str]:
        """The address of each one's SSH."""
        return {name: f"{_LOOPBACK}:{server.port}" for name, server in self._servers.items()}

    async def power_on(self) -> None:
        """Boot them, all at once."""
        await asyncio.gather(*(host.power_on() for host in self._hosts.values()))

    def forward(self, host: str, port: int) -> int | None:
        """The rack's management network: the servers' SSH, by name, or by the address this machine knows it by."""
        if host in self._servers and port == _SSH_PORT:
            return self._servers[host].port
        known = (server.port for server in self._servers.values())
        return port if host in {_LOOPBACK, "localhost"} and port in known else None

    def note(self, record: dict[str, Any]) -> None:
        """Take in what happened in the rack: power of the servers is followed at once."""
        self._changed.set()
        self._to_print.set()
        match record:
            case {"event": "power", "target": str(target), "on": bool(is_on)}:
                part = Part.of_resource(target)
                if part.kind is PartKind.SERVER:
                    host = self._hosts[part.name]
                    host.begin(host.power_on() if is_on else host.power_off())

    async def keep_current(self) -> None:
        """Have every server's ``/sys`` follow the rack, also for those who look for long, until cancelled."""

        async def catch_up() -> None:
            for host in self._hosts.values():
                await host.catch_up()

        await debounced(self._changed, catch_up, quiet_s=_QUIET_S, most_s=_MOST_BEHIND_S)

    async def keep_printing(self) -> None:
        """Have every server's console say soon what its kernel has to say, until cancelled."""

        async def print_all() -> None:
            # A rack whose truth is lost says so to whoever asks for it.
            with contextlib.suppress(RackloopError):
                await asyncio.to_thread(self._watch.catch_up)

        await debounced(self._to_print, print_all, quiet_s=_PRINT_QUIET_S, most_s=_PRINT_BEHIND_S)

    async def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """The answer of ``labd.sock`` about the servers' states, see ``docs/reference/mock-hosts.md``."""
        host = self._hosts.get(str(request.get("server")))
        op = request.get("op")
        if op == "state":
            return {"ok": True, "servers": {name: str(host.state) for name, host in self._hosts.items()}}
        if host is None:
            return _refusal("unknown_server", f"no server {request.get('server')}; there are {_list(self._hosts)}")
        acts = {"boot": host.reset, "crash": host.crash, "hang": host.hang, "resume": host.resume}
        if op not in acts:
            return _refusal("unknown_op", f"no op {op}; there are state, {_list(acts)}")
        try:
            await acts[op]()
        except RackloopError as error:
            return _refusal("refused", str(error))
        return {"ok": True, "state": str(host.state)}


def _telling(loop: asyncio.AbstractEventLoop, console: MockConsole) -> Callable[[tuple[KernelLine, ...]], object]:
    """A function that has a kernel print, which speaks on the thread that has just looked at the rack."""
    return lambda lines: loop.call_soon_threadsafe(console.tell, lines)


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


def _refusal(code: str, message: str) -> dict[str, Any]:
    return {"ok": False, "error": {"code": code, "message": message}}


def _list(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def _tools(folder: Path) -> Path:
    """A folder with every emulated tool: each is a name of hosttool, which asks labd."""
    folder.mkdir(parents=True)
    shutil.copy(find_binary("hosttool"), folder / "hosttool")
    for name in (*TOOLS, *POWER_TOOLS, NFT):
        (folder / name).symlink_to("hosttool")
    return folder


def memory_of(directory: Path) -> Path:
    """A folder in memory, for the thousands of small files of ``/sys``; a link in ``directory`` leads to it."""
    shared = Path("/dev/shm")  # noqa: S108 - mkdtemp makes a folder of the user's own there
    place = shared if os.access(shared, os.W_OK) else directory
    folder = Path(tempfile.mkdtemp(prefix=_memory_prefix(directory), dir=place))
    (directory / _MEMORY).symlink_to(folder)
    return folder


def _memory_prefix(directory: Path) -> str:
    """The beginning of the name of the folder in memory that is of the lab in ``directory``."""
    return f"rackloop-{hashlib.sha256(os.fsencode(directory.resolve())).hexdigest()[:16]}-"


def _write_private(path: Path, content: bytes) -> None:
    path.unlink(missing_ok=True)
    with open(path, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(content)
