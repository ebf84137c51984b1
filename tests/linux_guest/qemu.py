"""A QEMU of one's own, in software (TCG): it takes no device and no privilege, so any machine can run it."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from rackloop.clock import Deadline
from rackloop.errors import DeadlineExceeded, ToolError

QEMU = shutil.which("qemu-system-x86_64")
READY = "rackloop-guest-ready"
"""The line of its console by which the guest says that it answers."""

_FORWARDED = re.compile(r"TCP\[HOST_FORWARD\]\s+\d+\s+127\.0\.0\.1\s+(\d+)\s+\S+\s+(\d+)")
_MEMORY_MIB = 768
_LAST_LINES = 15


class Qemu:
    """A running machine. ``console`` has the lines of its serial line so far."""

    def __init__(self, process: subprocess.Popen[str], control: Path) -> None:
        self.console: list[str] = []
        self._process = process
        self._control = control
        self._has_spoken = threading.Event()
        self._reading = threading.Thread(target=self._read_console, name="console", daemon=True)
        self._reading.start()

    def wait_until_ready(self, deadline: Deadline) -> None:
        """Return when the guest says that it answers. Raises ToolError where QEMU or the guest ended before."""
        if not self._has_spoken.wait(deadline.remaining_s()):
            raise DeadlineExceeded(f"the guest is not up in time; it said at last:\n{self.last_words()}")
        if not any(READY in line for line in self.console):
            raise ToolError(f"the guest ended as it started; it said at last:\n{self.last_words()}")

    def last_words(self) -> str:
        """The end of its console."""
        return "\n".join(self.console[-_LAST_LINES:])

    def ports(self) -> dict[int, int]:
        """Which port of the loopback here leads to which port of the guest: by the guest's."""
        said: str = self._ask("human-monitor-command", {"command-line": "info usernet"})
        return {int(guest): int(here) for here, guest in _FORWARDED.findall(said)}

    def wait_until_ended(self) -> None:
        """Return when it has said its last word."""
        self._reading.join()

    def _ask(self, command: str, arguments: dict[str, Any]) -> Any:
        """One command of QEMU's machine protocol (QMP), over a connection of its own."""
        with closing(socket.socket(socket.AF_UNIX)) as control:
            control.connect(str(self._control))
            with control.makefile("rw", encoding="utf-8") as lines:
                lines.readline()
                for what in ({"execute": "qmp_capabilities"}, {"execute": command, "arguments": arguments}):
                    lines.write(json.dumps(what) + "\n")
                    lines.flush()
                    answer = json.loads(lines.readline())
                return answer["return"]

    def _read_console(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.console.append(line.rstrip())
            if READY in line:
                self._has_spoken.set()
        self._has_spoken.set()


@contextmanager
def running_qemu(
    folder: Path, kernel: Path, initramfs: Path, disks: Sequence[Path], guest_ports: Sequence[int]
) -> Iterator[Qemu]:
    """A machine with these disks (raw files, the guest's ``vda`` and on), for as long as the block lasts.

    It ends with this process, too. Its network is the loopback here, and only for connections to ``guest_ports``.
    """
    assert QEMU is not None
    forwards = "".join(f",hostfwd=tcp:127.0.0.1:0-:{port}" for port in guest_ports)
    argv = [
        *("setpriv", "--pdeathsig", "KILL", QEMU),
        *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *("-machine", "pc,accel=tcg", "-cpu", "max", "-smp", "2", "-m", f"{_MEMORY_MIB}M"),
        *("-kernel", str(kernel), "-initrd", str(initramfs)),
        # One that panics ends, and with -no-reboot QEMU ends with it.
        *("-append", "console=ttyS0 quiet panic=-1 random.trust_cpu=on rdinit=/bin/init"),
        *("-serial", "stdio", "-qmp", f"unix:{folder}/qmp.sock,server=on,wait=off"),
        *("-netdev", f"user,id=net,restrict=on{forwards}", "-device", "virtio-net-pci,netdev=net,romfile="),
    ]
    for number, disk in enumerate(disks):
        # What was flushed need not outlive a crash of this machine: the test ends with it.
        argv += ["-drive", f"file={disk},format=raw,if=none,cache=unsafe,id=disk{number}"]
        argv += ["-device", f"virtio-blk-pci,drive=disk{number},serial=disk{number}"]
    with subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        qemu = Qemu(process, folder / "qmp.sock")
        try:
            yield qemu
        finally:
            # What the guest was told to flush is in its disks' files.
            process.kill()
            qemu.wait_until_ended()
