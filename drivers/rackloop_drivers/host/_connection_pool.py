"""Further connections to a server, shared by commands that stay for long and say little."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from rackloop.errors import LabError, RackloopError
from rackloop_drivers.host._complaints import complaints
from rackloop_drivers.host._process import SshProcess


class _Host(Protocol):
    """A host with a connection of its own."""

    @property
    def is_idle(self) -> bool: ...
    def start_if_room(self, argv: Sequence[str]) -> SshProcess | None: ...
    def give_up(self) -> None: ...
    def close(self) -> None: ...


class ConnectionPool:
    """Connections to one server, each with room for several commands; ``make`` opens one when all are full.

    One that has nothing left to run stays, so that the next command costs no login. After :meth:`retire` none of them
    is given another command: the server may be another boot of itself, which a connection finds out late.
    """

    def __init__(self, make: Callable[[], _Host]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._hosts: list[_Host] = []
        self._retired: list[_Host] = []

    def start(self, argv: Sequence[str]) -> SshProcess:
        """Start a command on one of them. Raises as the host's own ``start`` does."""
        while True:
            with self._lock:
                hosts = tuple(self._hosts)
            for host in hosts:
                if process := host.start_if_room(argv):
                    return process
            with self._lock:
                if len(self._hosts) == len(hosts):
                    self._hosts.append(self._make())

    def retire(self) -> None:
        """Give no more commands to those there are; what they run goes on.

        One that was retired before and runs nothing is closed; another may just be about to start a command.
        """
        with self._lock:
            over = [host for host in self._retired if host.is_idle]
            self._retired = [*(host for host in self._retired if host not in over), *self._hosts]
            self._hosts = []
        for host in over:
            # Not a word to the server, which may be gone.
            host.give_up()
            with contextlib.suppress(RackloopError):
                host.close()

    def give_up(self) -> None:
        """Drop every connection without a question to the server; calls that wait for a command raise NotConnected."""
        for host in self._all():
            host.give_up()

    def close(self) -> None:
        """Kill what still runs, and disconnect. Raises LabError where the server could not end a command."""
        if stuck := complaints(host.close for host in self._all()):
            raise LabError("\n".join(stuck))

    def _all(self) -> tuple[_Host, ...]:
        with self._lock:
            return (*self._hosts, *self._retired)
