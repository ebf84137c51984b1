"""The serial console of a server by its Redfish controller, which says where it is: Redfish carries no bytes itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from rackloop.clock import Clock, Deadline
from rackloop.errors import LoginRefused, NotSupported, ProtocolError, RackloopError
from rackloop_drivers.power.redfish._driver import only_system
from rackloop_drivers.power.redfish._service import RedfishService
from rackloop_drivers.remembered import Remembered
from rackloop_drivers.stream_console import Stream, StreamConsole

# The controller and SSH hold characters back for so long.
_DELAY_S = 0.3
_SSH_PORT = 22

Shell = Callable[[str, int, Deadline], Stream]
"""Opens a shell by SSH on the controller's host, at a port, with the controller's account and host key."""


class _Way(NamedTuple):
    """The way to a console on the controller's host, and what is typed there for it."""

    port: int
    command: str


class RedfishConsole(StreamConsole):
    """The Console that ComputerSystem.SerialConsole offers by SSH, on the host of the service; ``shell`` goes there.

    The port and the command that led to it are kept in ``remembered``, and tried before the controller is asked, once:
    where they lead to no console it is asked anew, and so it is when a connection was lost. The host and its key come
    from the description always.

    Raises NotSupported where the controller offers it by Telnet or IPMI alone, or not at all.
    """

    def __init__(self, service: RedfishService, shell: Shell, clock: Clock, remembered: Remembered) -> None:
        self._service = service
        self._shell = shell
        self._remembered = remembered
        self._may_recall = True
        super().__init__(f"Redfish console at {service.url}", clock, _DELAY_S, self._go_there)

    def _go_there(self, deadline: Deadline) -> Stream:
        name = self._service.trusted_as
        way, self._may_recall = self._recalled(name) if self._may_recall else None, False
        if way is not None:
            try:
                return self._go(way, deadline)
            except RackloopError as error:
                self._remembered.forget(name)
                # Another attempt with the same password may lock the account.
                if isinstance(error, LoginRefused) or deadline.is_over():
                    raise
        way = self._asked(deadline)
        stream = self._go(way, deadline)
        self._remembered.keep(name, way)
        return stream

    def _recalled(self, name: str) -> _Way | None:
        match self._remembered.recall(name):
            case [int(port), str(command)] if command.isprintable():
                return _Way(port, command)
        return None

    def _asked(self, deadline: Deadline) -> _Way:
        ssh = self._offer(deadline)
        port = ssh.get("Port", _SSH_PORT)
        if not isinstance(port, int):
            raise ProtocolError(f"{self.where}: its SSH has the port {port!r}, which is no number")
        command = ssh.get("ConsoleEntryCommand") if ssh.get("SharedWithManagerCLI") else None
        return _Way(port, str(command or ""))

    def _go(self, way: _Way, deadline: Deadline) -> Stream:
        stream = self._shell(str(urlsplit(self._service.url).hostname), way.port, deadline)
        if way.command:
            try:
                stream.write(f"{way.command}\r".encode(), deadline)
            except BaseException:
                stream.close()
                raise
        return stream

    def _offer(self, deadline: Deadline) -> Mapping[str, Any]:
        """The system's description of its console by SSH."""
        consoles = only_system(self._service, deadline).get("SerialConsole") or {}
        if not isinstance(consoles, dict):
            raise ProtocolError(f"{self.where}: SerialConsole is no object")
        ways = {name: way for name, way in consoles.items() if isinstance(way, dict)}
        offered = [name for name, way in ways.items() if way.get("ServiceEnabled")]
        if "SSH" in offered:
            return dict(ways["SSH"])
        advice = {"IPMI": "give console: ipmi", "Telnet": "Telnet shows the password to everybody, so use another way"}
        said = ", ".join(offered) or "none"
        hint = "; ".join(advice[name] for name in offered if name in advice)
        raise NotSupported(
            f"{self.where}: the controller offers no serial console by SSH (offered: {said}); "
            f"{hint or 'enable it in the controller, or give ser2net or tty'}"
        )
