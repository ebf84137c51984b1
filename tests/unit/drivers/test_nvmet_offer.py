"""What the NVMe/TCP target offers is in use by nothing else: its kernel would offer it all the same."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from rackloop.data import data_path
from tests.ansible_modules import loaded

NVMET = loaded(data_path("playbooks") / "roles" / "nvme_tcp_target" / "files" / "nvmet.py")
SAID = {"subsystem": "nqn.s", "devices": ["/dev/a", "/dev/b"], "hosts": ["nqn.h"], "address": "::", "port": 4420}


def test_a_device_that_is_mounted_or_held_is_not_offered_nor_are_those_beside_it(tmp_path: Path) -> None:
    def opened(device: str, flags: int) -> int:
        if device == "/dev/b" and flags & os.O_EXCL:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), device)
        return os.open(os.devnull, os.O_RDONLY)

    with pytest.raises(OSError, match="Device or resource busy: '/dev/b'"):
        NVMET.Offer(tmp_path, SAID, opened=opened).start()
    assert not list(tmp_path.iterdir())


def test_devices_that_nothing_uses_are_offered(tmp_path: Path) -> None:
    asked: list[str] = []

    def opened(device: str, flags: int) -> int:
        assert not flags & (os.O_WRONLY | os.O_RDWR), "what was open for writing has udev look at it again"
        asked.append(device)
        return os.open(os.devnull, os.O_RDONLY)

    NVMET.Offer(tmp_path, SAID, opened=opened).start()
    assert asked == SAID["devices"]
    assert (tmp_path / "subsystems" / "nqn.s" / "namespaces" / "2" / "enable").read_text() == "1"
