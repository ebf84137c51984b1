"""One boot of a mock server: a bubblewrap sandbox that lives as long as the server runs, and commands in it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from rackloop.errors import LabError, ToolError
from rackloop.lab import environment_for_programs

_BOOT_S = 20.0
# Its init reaps what servers leave behind, and the whole sandbox ends with it.
_LIVE = ("/bin/sh", "-c", "mkdir -p /run/lock && echo up && exec sleep infinity")
_NAMESPACES = ("user", "pid", "uts", "net", "ipc")

Stream = int | IO[bytes]


class Sandbox:
    """A booted mock server. Make one with :meth:`boot`.

    It has namespaces of its own for users, processes, mounts, network (loopback alone), IPC and the host's name;
    ``root`` in it is the user whom the lab runs as. It ends with this process, however that ends.
    """

    def __init__(self, process: asyncio.subprocess.Process, init_pid: int) -> None:
        self._process = process
        self._init_pid = init_pid
        enter = ["--preserve-credentials", f"--target={init_pid}", "--mount", *(f"--{name}" for name in _NAMESPACES)]
        self._enter = (_program("nsenter", "util-linux"), *enter)
        self._setsid = _program("setsid", "util-linux")

    @classmethod
    async def boot(cls, hostname: str, bindings: Sequence[str]) -> Sandbox:
        """Start a server named ``hostname`` whose files ``bindings`` name (bubblewrap's options).

        Raises ToolError where bubblewrap is missing, LabError where it cannot make the sandbox.
        """
        information, told = os.pipe()
        unshared = (f"--unshare-{name}" for name in _NAMESPACES)
        try:
            process = await asyncio.create_subprocess_exec(
                *(_program("bwrap", "bubblewrap"), "--die-with-parent", "--new-session", "--unshare-cgroup-try"),
                *(*unshared, "--uid", "0", "--gid", "0", "--hostname", hostname, "--info-fd", str(told)),
                *(*bindings, "--", *_LIVE),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                # The server's first process shows its environment to all that runs there.
                env=environment_for_programs(),
                pass_fds=[told],
            )
            os.close(told)
            told = -1
            return cls(process, await _booted(process, information))
        finally:
            os.close(information)
            if told >= 0:
                os.close(told)

    def start(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        folder: str,
        *,
        stdin: Stream,
        stdout: Stream,
        stderr: Stream,
        is_terminal: bool,
    ) -> subprocess.Popen[bytes]:
        """Run a command in the server, in a session of its own, which has the streams for its terminal or none.

        The process ends as the command does, with its status or by its signal. :func:`send` reaches the command.
        """
        own_session = (self._setsid, *(["--ctty"] if is_terminal else []))
        return subprocess.Popen(
            [*self._enter, f"--wd={self.path(folder)}", "--", *own_session, *command],
            env=environment,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            umask=0o022,
            bufsize=0,
        )

    def path(self, inside: str) -> str:
        """The path by which this process reaches what is at ``inside`` in the running server."""
        return f"/proc/{self._init_pid}/root{inside}"

    async def freeze(self) -> None:
        """Stop every process of the server; what enters it afterwards runs."""
        await self._signal_all(signal.SIGSTOP)

    async def thaw(self) -> None:
        """Let every process of the server go on."""
        await self._signal_all(signal.SIGCONT)

    async def wait(self) -> None:
        """Return when the server has ended."""
        await self._process.wait()

    async def end(self) -> None:
        """Kill the server's init, and with it every process of the server."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._init_pid, signal.SIGKILL)
        await self._process.wait()

    async def _signal_all(self, number: signal.Signals) -> None:
        # In a PID namespace of its own -1 is every process but the first one and the one that asks.
        command = (*self._enter, "--", "/bin/sh", "-c", f"kill -{int(number)} -1 2>/dev/null || :")
        asking = await asyncio.create_subprocess_exec(*command, stdin=subprocess.DEVNULL)
        await asking.wait()


def send(number: signal.Signals, process: subprocess.Popen[bytes]) -> None:
    """Send a signal to the process group of a command that :meth:`Sandbox.start` started, unless it has ended.

    The process that entered the server for it is not in that group, so that it can tell how the command took it.
    """
    if process.returncode is not None:
        return
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    with contextlib.suppress(OSError):  # it ends just now
        for leader in children.read_text().split():
            os.killpg(int(leader), number)
            return
    # The command does not lead a group yet: it has not begun. Popen's own way to send would also reap it.
    os.kill(process.pid, number)


async def _booted(process: asyncio.subprocess.Process, information: int) -> int:
    """The PID of the sandbox's init, once its first command runs."""
    assert process.stdout is not None  # noqa: S101 - asked for by the caller
    assert process.stderr is not None  # noqa: S101
    try:
        line = await asyncio.wait_for(process.stdout.readline(), _BOOT_S)
    except TimeoutError as error:
        process.kill()
        await process.wait()
        raise LabError(f"a mock server did not boot within {_BOOT_S:g} s") from error
    if not line:
        said = (await process.stderr.read()).decode(errors="replace").strip()
        await process.wait()
        raise LabError(f"bubblewrap could not make a mock server: {said}; do user namespaces work on this machine?")
    told: dict[str, Any] = json.loads(os.read(information, 1 << 16))
    return int(told["child-pid"])


def _program(name: str, package: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise ToolError(f"{name} was not found, and the servers of a mock lab need it: install the package {package}")
    return found
