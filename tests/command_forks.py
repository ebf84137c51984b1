"""Commands in processes forked from one that has the command line loaded, which a machine does ten times as fast.

Run as a program it forks a process for each order on its socket. That process has the arguments, working directory,
environment and standard streams of the order, is the leader of a session of its own, and ends as the program does.
"""

from __future__ import annotations

import gc
import json
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any

_MOST_BYTES = 1 << 17
# What a run loads with its first test that wants a rack, and what other commands load when they are called.
_LOADED = (
    "allure_pytest.plugin",
    "paramiko",
    "polars",
    "pytest",
    "quantiphy",
    "rackloop.safety._heal",
    "rackloop.safety.store._sqlite",
    "rackloop_cli.fabric.verbs",
    "rackloop_cli.heal",
    "rackloop_cli.lab.lease",
    "rackloop_cli.lab.status",
    "rackloop_cli.lab.up_down",
    "rackloop_cli.report",
    "rackloop_cli.run",
    "rackloop_cli.shared.pytest_memory",
    "rackloop_cli.store.verbs",
    "rackloop_drivers.console",
    "rackloop_drivers.fabric.flexfabric._driver",
    "rackloop_drivers.power.ipmi._console",
    "rackloop_drivers.power.redfish._connector",
    "rackloop_drivers.power.redfish._driver",
    "rackloop_drivers.power.snmp._driver",
    "rackloop_drivers.workload._rackprobe",
    "rackloop_fixtures.fixtures",
    "rackloop_fixtures.hooks",
    "rackloop_fixtures.planned_session",
    "rackloop_fixtures.plugin",
    "rackloop_fixtures.rack.faults",
    "rackloop_fixtures.rack.labels",
    "rackloop_fixtures.rack.rack",
    "rackloop_fixtures.rack.start",
    "rackloop_fixtures.rack.workloads",
    "rackloop_fixtures.session.plan_plugin",
    "rackloop_fixtures.supervision.health_checked",
    "rackloop_fixtures.supervision.run_services",
    "rackloop_labs.live_port",
    "rackloop_labs.offered",
    "rackloop_models.local_erasure",
    "scipy.special",
    "xdist.plugin",
)


class ForkedCommand:
    """A command that was begun, with what :class:`subprocess.Popen` has of it."""

    def __init__(self, told: IO[str], stdout: IO[str] | None, stderr: IO[str]) -> None:
        self.pid = int(told.readline())
        self.returncode: int | None = None
        self.stdout = stdout
        self.stderr = stderr
        self._told = told

    def poll(self) -> int | None:
        """Its exit status, negative where a signal ended it; None while it runs."""
        return self._ended(0)

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float) -> tuple[str, str]:
        """What it says on standard output and on standard error until its end, which is waited for."""
        said: dict[str, list[bytes]] = {"stdout": [], "stderr": []}
        with selectors.DefaultSelector() as open_ones:
            for name, stream in (("stdout", self.stdout), ("stderr", self.stderr)):
                if stream is not None and not stream.closed:
                    open_ones.register(stream.fileno(), selectors.EVENT_READ, (name, stream))
            while open_ones.get_map():
                ready = open_ones.select(timeout)
                if not ready:
                    raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
                for key, _ in ready:
                    name, stream = key.data
                    if read := os.read(key.fd, 1 << 16):
                        said[name].append(read)
                    else:
                        open_ones.unregister(key.fd)
                        stream.close()
        if self._ended(timeout) is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
        out, err = (b"".join(parts).decode().replace("\r\n", "\n").replace("\r", "\n") for parts in said.values())
        return out, err

    def _ended(self, within_s: float) -> int | None:
        if self.returncode is None and select.select([self._told], [], [], within_s)[0]:
            self.returncode = int(self._told.readline())
            self._told.close()
        return self.returncode


class CommandForks:
    """The program of this module, running."""

    def __init__(self, orders: socket.socket) -> None:
        self._orders = orders

    def fileno(self) -> int:
        """The descriptor of the socket for orders, for a client of its own."""
        return self._orders.fileno()

    def begin(
        self,
        arguments: Sequence[str],
        directory: Path,
        environment: Mapping[str, str],
        stdin: IO[Any] | int,
        stdout: IO[Any] | int,
    ) -> ForkedCommand:
        """Begin a command; streams are as for :class:`subprocess.Popen`, standard error is a pipe."""
        order = {"arguments": arguments, "directory": str(directory), "environment": dict(environment)}
        with ExitStack() as given:

            def piped() -> tuple[IO[str], int]:
                readable, writable = os.pipe()
                given.callback(os.close, writable)
                return os.fdopen(readable), writable

            out, err, told = piped() if stdout == subprocess.PIPE else (None, _number(stdout, given)), piped(), piped()
            streams = [_number(stdin, given), out[1], err[1], told[1]]
            socket.send_fds(self._orders, [json.dumps(order).encode()], streams)
            return ForkedCommand(told[0], out[0], err[0])


def can_fork(environment: Mapping[str, str]) -> bool:
    """Whether a process with this environment would load the same modules as this one."""
    return _of_python(environment) == _of_python(os.environ)


@contextmanager
def command_forks(
    program: Path = Path(__file__), directory: Path | None = None, environment: Mapping[str, str] | None = None
) -> Iterator[CommandForks]:
    """Start the program of this module, or of a copy of it, for as long as the block runs."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with closing(ours):
        for end in (ours, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _MOST_BYTES)
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-P", program, str(theirs.fileno())],
                cwd=directory,
                env=environment,
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        try:
            yield CommandForks(ours)
        finally:
            ours.close()
            process.wait()


def _of_python(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith("PYTHON")}


def _number(stream: IO[Any] | int, opened: ExitStack) -> int:
    """The descriptor of a stream, for which DEVNULL can stand."""
    if stream == subprocess.DEVNULL:
        stream = os.open(os.devnull, os.O_RDWR)
        opened.callback(os.close, stream)
    return stream if isinstance(stream, int) else stream.fileno()


def _next_order(orders: socket.socket) -> dict[str, Any] | None:
    """Fork a process for each order: in that process its order, in this one None once no more will come."""
    running: dict[int, tuple[int, int]] = {}
    ready = select.poll()
    ready.register(orders, select.POLLIN)
    while True:
        for number, _ in ready.poll():
            if number in running:
                pid, told = running.pop(number)
                ready.unregister(number)
                os.close(number)
                status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                with suppress(BrokenPipeError):
                    os.write(told, f"{status}\n".encode())
                os.close(told)
                continue
            said, streams, _, _ = socket.recv_fds(orders, _MOST_BYTES, 4)
            if not said:
                return None
            told = streams.pop()
            child = os.fork()
            if child == 0:
                for standard, stream in enumerate(streams):
                    os.dup2(stream, standard)
                # From here on it is what a program is that was started.
                os.setsid()
                os.write(told, f"{os.getpid()}\n".encode())
                os.closerange(3, max(*streams, *running, *(pipe for _, pipe in running.values()), told) + 1)
                orders.detach()
                found: dict[str, Any] = json.loads(said)
                return found
            for stream in streams:
                os.close(stream)
            ended = os.pidfd_open(child)
            running[ended] = (child, told)
            ready.register(ended, select.POLLIN)


def _become(order: Mapping[str, Any]) -> None:
    """Make this process what a start of the program with this order would be."""
    os.chdir(order["directory"])
    os.environ.clear()
    os.environ.update(order["environment"])
    sys.argv[1:] = order["arguments"]
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - a descriptor, for as long as it lives
    # By the line, so that what is said on both streams comes in its order, as a reader at a terminal has it.
    sys.stdout = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115


def _serve() -> int:
    main: Callable[[], int] = import_module("rackloop_cli.main").main
    for name in _LOADED:
        import_module(name)
    # The models of a description are made when one is first read.
    import_module("rackloop.lab").load_lab("mock")
    gc.freeze()
    order = _next_order(socket.socket(fileno=int(sys.argv[1])))
    if order is None:
        return 0
    _become(order)
    return main()


if __name__ == "__main__":
    sys.exit(_serve())
