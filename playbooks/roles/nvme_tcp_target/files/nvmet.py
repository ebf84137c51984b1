#!/usr/bin/python3
"""Export block devices by NVMe over TCP, or stop it: the kernel's nvmet, through configfs.

nvmet start|stop FILE
"""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

CONFIGFS = Path("/sys/kernel/config/nvmet")
# Empty after a reboot, as configfs is.
STARTED = Path("/run/rackloop-nvmet.json")


class Offer:
    """The content of FILE: a subsystem, its devices, the hosts that may connect, and its address.

    ``remove`` takes a folder away; in configfs it goes together with its attributes. ``opened`` opens a device.
    """

    def __init__(
        self,
        root: Path,
        said: dict[str, Any],
        remove: Callable[[Path], object] = Path.rmdir,
        opened: Callable[[str, int], int] = os.open,
    ) -> None:
        self.subsystem = root / "subsystems" / said["subsystem"]
        self.port = root / "ports" / str(said["port"])
        self.hosts = root / "hosts"
        self.said = said
        self._rmdir = remove
        self._opened = opened

    def start(self) -> None:
        """Make the subsystem with its namespaces and hosts, then the port, and join the two last.

        Raises OSError where a mount, a swap, a holder or another writer has a device: nvmet itself claims none, and
        those who connect would write beneath it.
        """
        for device in self.said["devices"]:
            # Of one that is not there the kernel says so.
            with suppress(FileNotFoundError):
                os.close(self._opened(device, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
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
        """Part the two first, then take away the port, the namespaces, the hosts and the subsystem.

        A port or a host that another subsystem uses stays.
        """
        (self.port / "subsystems" / self.subsystem.name).unlink(missing_ok=True)
        self._remove_unused(self.port)
        for allowed in _inside(self.subsystem / "allowed_hosts"):
            allowed.unlink()
            self._remove_unused(self.hosts / allowed.name)
        for namespace in _inside(self.subsystem / "namespaces"):
            self._remove(namespace)
        self._remove(self.subsystem)

    def _remove_unused(self, folder: Path) -> None:
        try:
            self._remove(folder)
        except OSError as error:
            if error.errno not in {errno.EBUSY, errno.ENOTEMPTY}:
                raise

    def _remove(self, folder: Path) -> None:
        if folder.is_dir():
            self._rmdir(folder)


class Service:
    """The offer that ``file`` tells of, and a copy in ``started`` of what is offered now: the file may have changed."""

    def __init__(self, file: Path, root: Path, started: Path, remove: Callable[[Path], object] = Path.rmdir) -> None:
        self._file = file
        self._root = root
        self._started = started
        self._rmdir = remove

    def start(self) -> None:
        """Offer what the file says now, and no more what was offered before."""
        if self._started.exists():
            self.stop()
        fresh = self._started.with_suffix(".new")
        fresh.write_text(self._file.read_text())
        fresh.replace(self._started)
        try:
            self._told(self._started).start()
        except OSError:
            # systemd stops no service that did not start, and the modules of what is left in configfs stay in use.
            with suppress(OSError):
                self.stop()
            raise

    def stop(self) -> None:
        """Offer nothing of what was started."""
        self._told(self._started if self._started.exists() else self._file).stop()
        self._started.unlink(missing_ok=True)

    def _told(self, file: Path) -> Offer:
        return Offer(self._root, json.loads(file.read_text()), self._rmdir)


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


if __name__ == "__main__":
    service = Service(Path(sys.argv[2]), CONFIGFS, STARTED)
    {"start": service.start, "stop": service.stop}[sys.argv[1]]()
