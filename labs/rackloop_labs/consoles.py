"""The serial consoles of a rack's servers, by the description or by a mock lab that is up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any

from rackloop.abilities import Console
from rackloop.clock import Clock, Deadline
from rackloop.errors import RackloopError
from rackloop.lab import Lab, LabKind, LabState, Secret
from rackloop_drivers.boxes import BmcDriver, ConsoleDriver, ConsoleOpening
from rackloop_drivers.host import ShellStream, SshAccess, open_shell
from rackloop_drivers.remembered import Remembered
from rackloop_labs.described import require_described
from rackloop_labs.power_ports import RackPower

_REMEMBERED = "consoles.json"
# A firmware update may move a console; the next day it is asked for anew.
_REMEMBERED_S = 86400.0
# Shorter ones stand in half of what a server says.
_SHORTEST_SECRET = 4


class RackConsoles:
    """The serial consoles of a rack by server, as ``by_server``. Nothing is opened before it is used.

    ``controllers`` are the servers' management controllers, where they answer; ``endpoints`` those of a lab that is up.
    Below ``state`` is kept for a day what the controllers say of their consoles.
    """

    def __init__(
        self,
        lab: Lab,
        clock: Clock,
        state: LabState,
        controllers: Mapping[str, BmcDriver],
        endpoints: Mapping[str, Any] | None = None,
    ) -> None:
        self.by_server: dict[str, Console] = {}
        self._lab = lab
        self._controllers = controllers
        self._secrets: tuple[str, ...] | None = None
        self._reading = Lock()
        self._closing = ExitStack()
        remembered = Remembered(state.directory / _REMEMBERED, clock, _REMEMBERED_S)
        for name, server in lab.servers.items():
            if server.console is not None:
                running = endpoints["servers"][name].get("console") if endpoints else None
                opening = ConsoleOpening(clock, self._closing, controllers.get(name), _shell, remembered)
                self.by_server[name] = ConsoleDriver.of(server.console, running).open(opening)

    def secrets(self) -> tuple[str, ...]:
        """The passwords of servers and controllers, which must not stand in a log; longest first.

        Those that cannot be read now are not among them: nothing here has logged in with them either. They are read
        once, also where all consoles ask for them at a time: each key of a vault is a program that decrypts it.
        """
        with self._reading:
            if self._secrets is None:
                self._secrets = self._read_secrets()
            return self._secrets

    def _read_secrets(self) -> tuple[str, ...]:
        known = [getattr(controller, "password", None) for controller in self._controllers.values()]
        known += [server.password for server in self._lab.servers.values()]
        found = set()
        for secret in dict.fromkeys(known):
            if secret is not None:
                with suppress(RackloopError):
                    found.add(secret.reveal())
        return tuple(sorted((text for text in found if len(text) >= _SHORTEST_SECRET), key=len, reverse=True))

    def close(self) -> None:
        """Let go of every console, and log out."""
        for console in self.by_server.values():
            console.close()
        self._closing.close()


@contextmanager
def opened_consoles(lab: Lab, clock: Clock, state: LabState) -> Iterator[RackConsoles]:
    """The consoles of a lab alone, without its switch and its servers.

    Raises LabError where a mock or virtual lab is not up, BadInput where it was brought up from another description.
    """
    endpoints = None
    if lab.kind is not LabKind.PHYSICAL:
        require_described(lab, state)
        endpoints = state.endpoints()
    with (
        closing(RackPower(lab, clock, endpoints)) as power,
        closing(RackConsoles(lab, clock, state, power.controllers, endpoints)) as consoles,
    ):
        yield consoles


def _shell(
    host: str, port: int, user: str, password: Secret | None, known_hosts: Path, deadline: Deadline
) -> ShellStream:
    access = SshAccess(
        name=host, host=host, known_hosts=known_hosts, port=port, user=user, password=password, use_agent=False
    )
    return open_shell(access, deadline)
