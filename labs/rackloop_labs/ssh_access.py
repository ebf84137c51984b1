"""SSH access to the servers of any kind of lab."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rackloop.errors import BadInput
from rackloop.lab import JumpHost, Lab, LabKind, Server
from rackloop_drivers.clock_access import CLOCK_PORT, ClockAccess
from rackloop_drivers.endpoint import host_and_port
from rackloop_drivers.host import SshAccess

_SSH_PORT = 22


def ssh_accesses(lab: Lab, endpoints: Mapping[str, Any] | None = None) -> dict[str, SshAccess]:
    """The access to each server of ``lab``: as described, or where the ``endpoints`` of a lab that is up say.

    Raises BadInput naming every server that says too little to be reached, or for an address that is none.
    """
    if lab.kind is LabKind.MOCK or endpoints is not None:
        return {name: _in_time(lab, _simulated(name, endpoints or {})) for name in lab.servers}
    lacking = [name for name, server in lab.servers.items() if server.ssh is None or server.known_hosts is None]
    if lacking:
        raise BadInput(
            f"lab {lab.name} does not say how to reach {', '.join(lacking)}: give each server ssh and known_hosts"
        )
    jumps = {name: _described(name, jump_host) for name, jump_host in lab.jump_hosts.items()}
    return {
        name: _in_time(lab, _described(name, server, jumps[server.jump] if server.jump is not None else None))
        for name, server in lab.servers.items()
    }


def _in_time(lab: Lab, access: SshAccess) -> SshAccess:
    """The access with the patience that the lab wants for its servers, and for the jump host before them."""
    jump = None if access.jump is None else _in_time(lab, access.jump)
    answer_s, reconnect_s = lab.time_s("answer"), lab.time_s("reconnect")
    return replace(access, jump=jump, answers_within_s=answer_s, logs_in_within_s=reconnect_s)


def _simulated(name: str, endpoints: Mapping[str, Any]) -> SshAccess:
    running = endpoints["servers"][name]
    host, _, port = running["ssh"].rpartition(":")
    shown = endpoints["ssh"]
    return SshAccess(
        name=name,
        host=host,
        port=int(port),
        known_hosts=Path(shown["known_hosts"]),
        user=shown["user"],
        key_file=Path(shown["key_file"]),
        use_agent=False,
        clock=_clock(running.get("clock")),
    )


def _described(name: str, machine: Server | JumpHost, jump: SshAccess | None = None) -> SshAccess:
    host, port = host_and_port(str(machine.ssh), _SSH_PORT)
    return SshAccess(
        name=name,
        host=host,
        port=port,
        known_hosts=machine.known_hosts or Path(),
        user=machine.user,
        key_file=machine.key_file,
        password=machine.password,
        jump=jump,
        clock=_clock(machine.clock) if isinstance(machine, Server) else None,
        # Nearly all that is asked of a server takes root; of a jump host nothing does.
        sudo=isinstance(machine, Server) and machine.user != "root",
    )


def _clock(address: str | None) -> ClockAccess | None:
    return None if address is None else ClockAccess(*host_and_port(address, CLOCK_PORT))
