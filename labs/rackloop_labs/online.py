"""Waiting until the drives of a server are online."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event

from rackloop.clock import Deadline
from rackloop.errors import LabError
from rackloop.lab import once_online
from rackloop_drivers.drive import HostDrive
from rackloop_labs.bench import Bench

_POLL_S = 1e-3


def all_online(bench: Bench, server: str, ports: Sequence[str], deadline: Deadline, stop: Event) -> None:
    """Return once the server has a drive at each of these ports, or ``stop`` is set between two of them.

    A server that is asked by its tools is asked for all of them at once. Raises LabError where one never comes.
    """
    drives = [bench.drive(server, port) for port in ports]
    behind_tools = [drive for drive in drives if isinstance(drive, HostDrive)]
    if len(behind_tools) == len(drives):
        deadline.retry(lambda: HostDrive.identify_together(behind_tools, deadline), LabError, every_s=_POLL_S)
        return
    for drive in drives:
        if not stop.is_set():
            once_online(drive, deadline)
