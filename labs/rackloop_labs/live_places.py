"""Server ports at which drives are now, by the live map of a switch."""

from __future__ import annotations

from rackloop.lab import Lab
from rackloop.portmap import PortMap


def live_place(lab: Lab, live: PortMap, drive: str) -> tuple[str, str] | None:
    """The server and the port that ``live`` joins a drive to, or its expander; None where it is joined to none."""
    wired = lab.wired_port(drive)
    near = None if wired is None else live.peer_of(wired)
    if near is None:
        return None
    for server, described in lab.servers.items():
        for port, number in described.ports.items():
            if number == near:
                return server, port
    return None
