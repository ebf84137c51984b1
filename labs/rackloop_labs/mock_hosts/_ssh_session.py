"""One channel of a mock server's SSH: a command, a shell or SFTP, and the bytes between it and the client."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache, partial
from typing import IO

import asyncssh

from rackloop_drivers.host_clock import own_boot_id
from rackloop_labs.mock_hosts._rootfs import HOME, SEARCH_PATH
from rackloop_labs.mock_hosts._sandbox import Sandbox, send
from rackloop_labs.mock_hosts._streams import Channel, CommandInput, CommandOutput
from rackloop_labs.mock_hosts._terminal import Terminal

_SHELL = "/bin/bash"
# Where distributions keep OpenSSH's own; the servers have this machine's /usr.
_SFTP_SERVERS = (
    "/usr/lib/openssh/sftp-server",
    "/usr/libexec/openssh/sftp-server",
    "/usr/libexec/sftp-server",
    "/usr/lib/ssh/sftp-server",
)
# A daemon that keeps the terminal open does not keep the session open.
_DRAIN_S = 0.1
_NOT_STARTED = 255


class HostSession(asyncssh.SSHServerSession[bytes]):
    """A session of a client that is logged in on the server that ``sandbox`` is.

    ``catch_up`` is awaited before its command starts: ``/sys`` is current then. A client that goes away before its
    command ends leaves it a SIGHUP where it has a terminal, as OpenSSH does; without one it goes on, and finds its
    streams closed.
    """

    def __init__(self, sandbox: Sandbox, catch_up: Callable[[], Awaitable[None]]) -> None:
        self._sandbox = sandbox
        self._catch_up = catch_up
        self._command: Sequence[str] = ()
        self._terminal: Terminal | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._running: asyncio.Task[None] | None = None
        self._outputs: list[CommandOutput] = []
        self._is_lost = False

    def connection_made(self, chan: Channel) -> None:
        self._channel = chan
        self._input = CommandInput(chan)

    def pty_requested(
        self,
        term_type: str,  # noqa: ARG002 - the channel keeps it
        term_size: tuple[int, int, int, int],
        term_modes: Mapping[int, int],  # noqa: ARG002 - a new pseudo-terminal's own do
    ) -> bool:
        self._terminal = Terminal(self._sandbox)
        self._terminal.resize(*term_size)
        return True

    def terminal_size_changed(self, width: int, height: int, pixwidth: int, pixheight: int) -> None:
        if self._terminal is not None:
            self._terminal.resize(width, height, pixwidth, pixheight)

    def shell_requested(self) -> bool:
        self._command = (_SHELL, "--login")
        return True

    def exec_requested(self, command: str) -> bool:
        self._command = (_SHELL, "-c", command)
        return True

    def subsystem_requested(self, subsystem: str) -> bool:
        server = next(filter(os.path.exists, _SFTP_SERVERS), None)
        if subsystem != "sftp" or server is None:
            return False
        self._command = (server,)
        return True

    def session_started(self) -> None:
        self._running = asyncio.get_running_loop().create_task(self._run())

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:  # noqa: ARG002 - asyncssh's
        self._input.write(data)

    def eof_received(self) -> bool:
        # A terminal has no end; who wants to end what reads it types ^D.
        if self._terminal is None:
            self._input.end()
        return True

    def signal_received(self, name: str) -> None:
        number = signal.Signals.__members__.get(f"SIG{name}")
        if number is not None and self._process is not None:
            send(number, self._process)

    def pause_writing(self) -> None:
        for output in self._outputs:
            output.pause()

    def resume_writing(self) -> None:
        for output in self._outputs:
            output.resume()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncssh's
        self._is_lost = True
        self._hang_up()

    def proceed(self) -> None:
        """Go on after the server was frozen: what waits for a command stopped with it."""
        self._tell(signal.SIGCONT)

    def server_ended(self) -> None:
        """Stop waiting for a command that ended with its server.

        The process that waits may be about to stop, because the command was frozen before: no signal to go on is
        sure to find it stopped.
        """
        self._tell(signal.SIGKILL)

    def _tell(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            os.kill(self._process.pid, number)

    async def _run(self) -> None:
        """Run the command to its end, and tell the client how it ended."""
        await self._catch_up()
        if self._is_lost:
            return
        try:
            self._process, to_host, from_host = self._start()
        except (OSError, ValueError) as error:  # no process to be had, a NUL in the command, a server that just ended
            self._close_streams()
            self._channel.write_stderr(f"{error}\n".encode())
            self._channel.exit(_NOT_STARTED)
            return
        loop = asyncio.get_running_loop()
        for datatype, end in from_host.items():
            _, output = await loop.connect_read_pipe(partial(CommandOutput, self._channel, datatype), end)
            self._outputs.append(output)
        pipe, _ = await loop.connect_write_pipe(lambda: self._input, to_host)
        self._input.flow_into(pipe)
        if self._is_lost:
            self._hang_up()
        status = await _ended(self._process)
        drained = asyncio.gather(*(output.has_ended.wait() for output in self._outputs))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(drained, None if self._terminal is None else _DRAIN_S)
        self._close_streams()
        if -status in set(signal.Signals):
            self._channel.exit_with_signal(signal.Signals(-status).name.removeprefix("SIG"))
        else:
            self._channel.exit(status)

    def _start(self) -> tuple[subprocess.Popen[bytes], IO[bytes], dict[asyncssh.DataType, IO[bytes]]]:
        """Start the command: its process, its input, and its outputs by the kind of data they are to the client."""
        environment = self._environment()
        if self._terminal is None:
            pipe = subprocess.PIPE
            process = self._sandbox.start(
                self._command, environment, HOME, stdin=pipe, stdout=pipe, stderr=pipe, is_terminal=False
            )
            assert process.stdin is not None  # noqa: S101 - asked for
            assert process.stdout is not None  # noqa: S101
            assert process.stderr is not None  # noqa: S101
            return process, process.stdin, {None: process.stdout, asyncssh.EXTENDED_DATA_STDERR: process.stderr}
        slave = self._terminal.open_slave()
        try:
            process = self._sandbox.start(
                self._command, environment, HOME, stdin=slave, stdout=slave, stderr=slave, is_terminal=True
            )
        finally:
            os.close(slave)
        ends = [os.fdopen(os.dup(self._terminal.master), mode, buffering=0) for mode in ("wb", "rb")]
        return process, ends[0], {None: ends[1]}

    def _environment(self) -> dict[str, str]:
        host, port = self._channel.get_extra_info("peername")[:2]
        own_host, own_port = self._channel.get_extra_info("sockname")[:2]
        accepted = {
            name: value
            for name, value in self._channel.get_environment().items()
            if name == "LANG" or name.startswith("LC_")
        }
        environment = {
            **accepted,
            "HOME": HOME,
            "LOGNAME": "root",
            "PATH": SEARCH_PATH,
            "SHELL": _SHELL,
            "SSH_CLIENT": f"{host} {port} {own_port}",
            "SSH_CONNECTION": f"{host} {port} {own_host} {own_port}",
            "USER": "root",
            # The boot id in its /proc is its own, its clock is this kernel's.
            "RACKLOOP_KERNEL": _kernel(),
        }
        if self._terminal is not None:
            environment |= {"SSH_TTY": self._terminal.name, "TERM": self._channel.get_terminal_type() or "dumb"}
        return environment

    def _hang_up(self) -> None:
        if self._process is not None and self._terminal is not None:
            send(signal.SIGHUP, self._process)
        self._close_streams()

    def _close_streams(self) -> None:
        self._input.close()
        for output in self._outputs:
            output.close()
        if self._terminal is not None:
            self._terminal.close()
            self._terminal = None


@cache
def _kernel() -> str:
    """The boot of this machine's kernel, which this process does not outlive."""
    return own_boot_id() or ""


async def _ended(process: subprocess.Popen[bytes]) -> int:
    """The exit status of a process once it has ended, negative for the signal that ended it."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    pidfd = os.pidfd_open(process.pid)
    loop.add_reader(pidfd, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(pidfd)
        os.close(pidfd)
    return process.wait()
