"""A running rackd and its configuration."""

from __future__ import annotations

import json
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rackloop.clock import RealClock
from rackloop.errors import ToolError
from rackloop.native import find_binary
from rackloop_drivers.rackd import RackdControl
from tests.deadlines import soon

STOP_S = 120.0


@dataclass(frozen=True)
class RunningRackd:
    """A rackd that answers. ``tcp`` is its NBD address as ``host:port`` where the configuration asked for one."""

    process: subprocess.Popen[str]
    control: Path
    nbd: Path
    truth_log: Path
    tcp: str | None

    def connect(self) -> RackdControl:
        """A new connection to the control socket; the caller closes it."""
        return RackdControl(self.control, RealClock())

    def uri(self, export: str) -> str:
        """The NBD URI of an export, as libnbd, fio and QEMU take it."""
        return f"nbd+unix:///{export}?socket={self.nbd}"

    def truth(self) -> list[dict[str, Any]]:
        """The records in the truth log."""
        return [json.loads(line) for line in self.truth_log.read_text().splitlines()]

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Signal the process and return its exit status."""
        self.process.send_signal(how)
        return self.process.wait(timeout=STOP_S)


def drive(number: int, port: int | None = None, **fields: Any) -> dict[str, Any]:
    """The configuration of drive ``dNN``: 64 MiB, on switch port 100 + number."""
    return {
        "id": f"d{number:02}",
        "model": "RL SSD 1",
        "serial": f"RL{number:06}",
        "firmware": "1.0",
        "protocol": "sata",
        "wwn": f"5000c500a{number:07x}",
        "bytes": 64 << 20,
        "port": 100 + number if port is None else port,
    } | fields


def small_rack() -> dict[str, Any]:
    """Two servers of four ports, comreset and vanilla, and four drives; nothing is mapped."""
    return {
        "schema": 1,
        "seed": 1,
        "ports": 160,
        "servers": {
            "srv1": {"stack": "comreset", "ports": {f"p{n}": 1 + n for n in range(4)}},
            "srv2": {"stack": "vanilla", "ports": {f"p{n}": 5 + n for n in range(4)}},
        },
        "drives": [drive(number) for number in range(1, 5)],
    }


@contextmanager
def running_rackd(directory: Path, config: Mapping[str, Any] | None = None) -> Iterator[RunningRackd]:
    """Run rackd with its state in ``directory`` (sockets have a short path elsewhere), by default a small rack.

    Raises ToolError, with what rackd said, where it does not start.
    """
    with tempfile.TemporaryDirectory(prefix="rackd", dir="/tmp") as short:
        full = {
            "truth_log": "truth.jsonl",
            **(small_rack() if config is None else config),
            "state_dir": str(directory),
            "control": f"{short}/control.sock",
            "nbd": f"{short}/nbd.sock",
        }
        path = directory / "rackd.json"
        path.write_text(json.dumps(full))
        command = [str(find_binary("rackd")), "--config", str(path), "--exit-with-parent"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            ready = process.stdout.readline() if process.stdout else ""
            if not ready:
                raise ToolError(f"rackd did not start: {process.communicate()[1].strip()}")
            yield RunningRackd(
                process=process,
                control=Path(full["control"]),
                nbd=Path(full["nbd"]),
                truth_log=directory / "truth.jsonl",
                tcp=json.loads(ready)["nbd_tcp"],
            )
        finally:
            process.terminate()
            process.communicate(timeout=STOP_S)


def tell(rackd: RunningRackd, op: str, **fields: Any) -> None:
    """Have rackd do ``op`` by a control connection of its own."""
    control = rackd.connect()
    try:
        control.request(op, soon(), **fields)
    finally:
        control.close()
