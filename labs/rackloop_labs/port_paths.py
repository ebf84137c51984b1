"""The paths by which servers tell what is at their ports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rackloop.lab import Lab, LabKind


def port_path(lab: Lab, server: str, port: str) -> str | None:
    """The path of a port on its server; None where the description has none.

    It is the port's own, or in a rack without a switch that of the drive which is attached there for good.
    """
    if (path := lab.servers[server].paths.get(port)) is not None:
        return path
    fixed = None if lab.has_switch else lab.drives.get(lab.joined(server).get(port, ""))
    return f"/dev/disk/by-path/{fixed.by_path}" if fixed is not None and fixed.by_path is not None else None


def is_told(lab: Lab, server: str, port: str) -> bool:
    """Whether it can be told what is at a port: simulated servers and guests know it without a path."""
    return lab.kind is not LabKind.PHYSICAL or port_path(lab, server, port) is not None


def untold(lab: Lab, ports: Mapping[str, Iterable[str]]) -> str | None:
    """The paths that a description lacks to tell what is at ``ports``, given by server; None where it lacks none."""
    without = {
        server: unnamed
        for server, its in ports.items()
        if (unnamed := [port for port in its if not is_told(lab, server, port)])
    }
    if not without:
        return None
    names = ", ".join(f"{server}.{port}" for server, unnamed in without.items() for port in unnamed)
    return f"no path says what is at {names}: add paths: to {', '.join(without)}"
