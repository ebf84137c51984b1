"""A running storage switch and its configuration."""

from __future__ import annotations

import json
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rackloop.errors import ToolError
from rackloop.native import find_binary

STOP_S = 120.0
ANSWER_S = 120.0


@dataclass(frozen=True)
class RunningSwitch:
    """A switch that answers."""

    process: subprocess.Popen[str]
    control: Path
    nbd: Path

    def uri(self, tenant: str) -> str:
        """The NBD URI of a tenant's export, as libnbd, fio and QEMU take it."""
        return f"nbd+unix:///{tenant}?socket={self.nbd}"

    def ask(self, line: str) -> dict[str, Any]:
        """The answer to one line on a new connection to the control socket."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(ANSWER_S)
            connection.connect(str(self.control))
            connection.sendall(line.encode() + b"\n")
            with connection.makefile() as answers:
                answer: dict[str, Any] = json.loads(answers.readline())
        return answer

    @contextmanager
    def lines(self, line: str) -> Iterator[Iterator[dict[str, Any]]]:
        """The lines that a connection to the control socket brings after this one was sent, until it is closed."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(ANSWER_S)
            connection.connect(str(self.control))
            connection.sendall(line.encode() + b"\n")
            with connection.makefile() as answers:
                yield (json.loads(answer) for answer in answers)

    def state(self) -> dict[str, Any]:
        """The state of drives, schedulers and tenants."""
        answer = self.ask('{"id": 1, "op": "state"}')
        assert answer["ok"], answer
        return answer

    def scheduler(self, drive: str = "drive") -> dict[str, Any]:
        """The state of the scheduler of a drive."""
        return dict(self.drive(drive)["scheduler"])

    def drive(self, name: str = "drive") -> dict[str, Any]:
        """The state of a drive; a single one without a name is called ``drive``."""
        (found,) = (drive for drive in self.state()["drives"] if drive["name"] == name)
        return dict(found)

    def tenant(self, name: str) -> dict[str, Any]:
        """The state of a tenant that the switch keeps whether it is connected or not."""
        (found,) = (tenant for tenant in self.state()["tenants"] if tenant["name"] == name)
        return dict(found)


def two_tenants(**changes: Any) -> dict[str, Any]:
    """A configuration: 8 MiB of memory, no scheduling, tenants a and b."""
    return {
        "schema": 1,
        "drive": {"kind": "memory", "bytes": 8 << 20},
        "scheduler": {"kind": "none"},
        "tenants": [{"name": "a"}, {"name": "b"}],
    } | changes


@contextmanager
def running_switch(
    config: Mapping[str, Any],
    *,
    options: Sequence[str] = (),
    before: Sequence[str] = (),
    binary: Path | None = None,
) -> Iterator[RunningSwitch]:
    """Run a storage switch with sockets of its own: ``binary``, or the one of this machine.

    Its command line has these ``options``, and begins with the words ``before``.

    Raises ToolError, with what it said, where it does not start.
    """
    with tempfile.TemporaryDirectory(prefix="switch", dir="/tmp") as short:
        full = {"control": f"{short}/control.sock", "nbd": f"{short}/nbd.sock"} | dict(config)
        path = Path(short, "switch.json")
        path.write_text(json.dumps(full))
        program = str(binary or find_binary("storageswitch"))
        command = [*before, program, "--config", str(path), "--exit-with-parent", *options]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            ready = process.stdout.readline() if process.stdout else ""
            if not ready:
                raise ToolError(f"storageswitch did not start: {process.communicate()[1].strip()}")
            yield RunningSwitch(process, Path(full["control"]), Path(full["nbd"]))
        finally:
            process.terminate()
            process.communicate(timeout=STOP_S)
