"""A server whose name does not resolve: said as that, at once, and once."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import NameUnknown
from rackloop.lab import once_online
from rackloop_drivers.host import SshAccess, SshHost

# A resolver refuses a name with a space in it by itself, and asks nobody.
NOBODY = "no such box"


def test_a_name_that_does_not_resolve_is_said_at_once_and_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "known_hosts").touch()
    access = SshAccess(name="box1", host=NOBODY, known_hosts=tmp_path / "known_hosts")
    clock = VirtualClock()
    with SshHost(access, clock) as host, pytest.raises(NameUnknown, match=f"the name '{NOBODY}' does not resolve"):
        host.reconnect(Deadline.after(clock, 600))
    assert clock.now_ns() == 0


def test_a_drive_of_a_server_whose_name_does_not_resolve_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "known_hosts").touch()
    access = SshAccess(name="box1", host=NOBODY, known_hosts=tmp_path / "known_hosts")
    clock = VirtualClock()
    with SshHost(access, clock) as host:
        drive: Any = SimpleNamespace(identify=host.reconnect)
        with pytest.raises(NameUnknown):
            once_online(drive, Deadline.after(clock, 600))
    assert clock.now_ns() == 0
