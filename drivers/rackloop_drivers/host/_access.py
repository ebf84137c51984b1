"""SSH access to a server, data only: address, user, keys."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rackloop.lab import Secret
from rackloop_drivers.clock_access import ClockAccess


@dataclass(frozen=True)
class SshAccess:
    """Access to a server by SSH: its address, the host key it must have, and what is shown to it.

    ``name`` is the server's in the lab description and stands in every message. ``key_file`` is offered first, opened
    with ``passphrase`` where it is encrypted; without one, the keys of the agent that ``SSH_AUTH_SOCK`` names are,
    unless ``use_agent`` is false. ``password`` comes last. With ``jump``, the server is reached from that one. With
    ``sudo``, commands run as root by ``sudo -n``, which takes no password. ``clock`` is where the port for the server's
    clock is reached, if it is. A server that has not opened a session, begun a command or ended one that is killed for
    ``answers_within_s`` counts as hung; while it is waited for, an attempt to be let in takes ``logs_in_within_s``,
    and longer after one that was not answered.
    """

    name: str
    host: str
    known_hosts: Path
    port: int = 22
    user: str = "root"
    key_file: Path | None = None
    passphrase: Secret | None = None
    password: Secret | None = None
    use_agent: bool = True
    jump: SshAccess | None = None
    sudo: bool = False
    clock: ClockAccess | None = None
    answers_within_s: float = 3.0
    logs_in_within_s: float = 5.0

    def __str__(self) -> str:
        via = f" via {self.jump.name}" if self.jump else ""
        return f"{self.name} ({self.user}@{self.address}{via})"

    @property
    def address(self) -> str:
        """``host:port``, or ``[host]:port`` for an IPv6 address."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def host_key_name(self) -> str:
        """The name that known_hosts has its key under: the host, and the port where that is not 22."""
        return self.host if self.port == 22 else f"[{self.host}]:{self.port}"
