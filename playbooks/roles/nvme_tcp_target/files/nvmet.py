#!/usr/bin/python3
"""Export block devices by NVMe over TCP, or stop it: the kernel's nvmet, through configfs.

nvmet start|stop FILE [CONFIGFS]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


class Offer:
    """The content of FILE: a subsystem, its devices, the hosts that may connect, and its address."""

    def __init__(self, root: Path, said: dict[str, Any]) -> None:
        self.subsystem = root / "subsystems" / said["subsystem"]
        self.port = root / "ports" / str(said["port"])
        self.hosts = root / "hosts"
        self.said = said

    def start(self) -> None:
        """Make the subsystem with its namespaces and hosts, then the port, and join the two last."""
        _make(self.subsystem, attr_allow_any_host=0)
        for number, device in enumerate(self.said["devices"], 1):
            _make(self.subsystem / "namespaces" / str(number), device_path=device, enable=1)
        for nqn in self.said["hosts"]:
            _make(self.hosts / nqn)
            _join(self.subsystem / "allowed_hosts" / nqn, self.hosts / nqn)
        where = {"addr_traddr": self.said["address"], "addr_trsvcid": self.said["port"]}
        _make(self.port, addr_trtype="tcp", addr_adrfam="ipv4", **where)
        _join(self.port / "subsystems" / self.subsystem.name, self.subsystem)

    def stop(self) -> None:
        """Part the two first, then take away the port, the namespaces, the hosts and the subsystem."""
        (self.port / "subsystems" / self.subsystem.name).unlink(missing_ok=True)
        _remove(self.port)
        for allowed in _inside(self.subsystem / "allowed_hosts"):
            allowed.unlink()
            _remove(self.hosts / allowed.name)
        for namespace in _inside(self.subsystem / "namespaces"):
            _remove(namespace)
        _remove(self.subsystem)


def _make(folder: Path, **attributes: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in attributes.items():
        (folder / name).write_text(str(value))


def _join(link: Path, target: Path) -> None:
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.is_symlink():
        link.symlink_to(target)


def _inside(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _remove(folder: Path) -> None:
    """In configfs a folder goes together with its attributes."""
    if folder.is_dir():
        folder.rmdir()


if __name__ == "__main__":
    offer = Offer(Path(*sys.argv[3:] or ["/sys/kernel/config/nvmet"]), json.loads(Path(sys.argv[2]).read_text()))
    {"start": offer.start, "stop": offer.stop}[sys.argv[1]]()
