"""Processes that have fio write on a server by SSH and are killed at a chosen moment.

Run as a program it is a fork server: it has everything loaded, and for each line on its standard input forks a process
that starts fio for an hour and is killed (SIGKILL) at the given moment.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

from rackloop.clock import Deadline
from rackloop_drivers.host import SshAccess, SshHost
from tests.deadlines import CLOCK
from tests.fork_server import ForkServer, fork_server, serve

_FIO = "fio --name=writer --filename=$1 --size=4m --rw=randwrite --time_based --runtime=3600 --rate=1m --numjobs=2"


class FioProcesses:
    """The program of this module, running."""

    def __init__(self, server: ForkServer) -> None:
        self._server = server

    def kill_after(self, access: SshAccess, working_for: str, file: str, moment_s: float) -> bool:
        """Have fio write ``file`` on a server for a harness that is killed then; whether fio was begun before."""
        order = {
            "access": [access.name, access.host, str(access.known_hosts), access.port, access.user],
            "key_file": str(access.key_file),
            "working_for": working_for,
            "file": file,
            "moment_s": moment_s,
        }
        answer = self._server.ask(order)
        assert answer["status"] == -signal.SIGKILL, answer
        return bool(answer["told"] == "up")


@contextmanager
def fio_processes() -> Iterator[FioProcesses]:
    """Start the program for the length of the block."""
    with fork_server("tests.fio_process") as server:
        yield FioProcesses(server)


def labelled(working_for: str) -> list[int]:
    """The processes of this machine, those of its mock servers too, that run for this lab and lease."""
    wanted = f"RACKLOOP_COMMAND={working_for}/".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if any(entry.startswith(wanted) for entry in (process / "environ").read_bytes().split(b"\0")):
                found.append(int(process.name))
        except OSError:
            continue
    return found


def _write(order: dict[str, Any], told: int) -> None:
    """Have fio write until this process is killed."""
    name, address, known_hosts, port, user = order["access"]
    access = SshAccess(name, address, Path(known_hosts), port, user, Path(order["key_file"]))

    dies_ns = CLOCK.now_ns() + round(order["moment_s"] * 1e9)

    def die() -> None:
        CLOCK.sleep_until_ns(dies_ns)
        os.kill(os.getpid(), signal.SIGKILL)

    Thread(target=die, daemon=True).start()
    host = SshHost(access, CLOCK, order["working_for"])
    process = host.start(("sh", "-c", f"echo up; exec {_FIO}", "fio", order["file"]))
    far = Deadline.after(CLOCK, 3600)
    assert process.read_line(far) == "up"
    os.write(told, b"up")
    process.wait(far)


if __name__ == "__main__":
    # What every child needs, loaded once.
    import paramiko  # noqa: F401

    serve(_write)
