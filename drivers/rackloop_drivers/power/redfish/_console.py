"""The serial console of a server by its Redfish controller, which says where it is: Redfish carries no bytes itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from rackloop.clock import Clock, Deadline
from rackloop.errors import NotSupported, ProtocolError
from rackloop_drivers.power.redfish._driver import only_system
from rackloop_drivers.power.redfish._service import RedfishService
from rackloop_drivers.stream_console import Stream, StreamConsole

# The controller and SSH hold characters back for so long.
_DELAY_S = 0.3
_SSH_PORT = 22

Shell = Callable[[str, int, Deadline], Stream]
"""Opens a shell by SSH on the controller's host, at a port, with the controller's account and host key."""


class RedfishConsole(StreamConsole):
    """The Console that ComputerSystem.SerialConsole offers by SSH, on the host of the service; ``shell`` goes there.

    Raises NotSupported where the controller offers it by Telnet or IPMI alone, or not at all.
    """

    def __init__(self, service: RedfishService, shell: Shell, clock: Clock) -> None:
        self._service = service
        self._shell = shell
        super().__init__(f"Redfish console at {service.url}", clock, _DELAY_S, self._go_there)

    def _go_there(self, deadline: Deadline) -> Stream:
        ssh = self._offer(deadline)
        port = ssh.get("Port", _SSH_PORT)
        if not isinstance(port, int):
            raise ProtocolError(f"{self.where}: its SSH has the port {port!r}, which is no number")
        stream = self._shell(str(urlsplit(self._service.url).hostname), port, deadline)
        command = ssh.get("ConsoleEntryCommand")
        if ssh.get("SharedWithManagerCLI") and command:
            try:
                stream.write(f"{command}\r".encode(), deadline)
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
