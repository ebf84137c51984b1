"""The health of a whole rack at one moment."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rackloop.drive_identifiers import is_on_path, normal_text

if TYPE_CHECKING:
    from rackloop.abilities.inventory import HostInventory
    from rackloop.lab import Lab, Server


@dataclass(frozen=True)
class KernelLine:
    """A message of a kernel: microseconds since its boot, the priority (0 emergency to 7 debug), and the text."""

    at_us: int
    priority: int
    text: str


@dataclass(frozen=True)
class KernelPosition:
    """The end of a reading of a kernel's log: the boot, and the stamp of its last line (-1 for an empty log)."""

    boot_id: str
    at_us: int


@dataclass(frozen=True)
class HostHealth:
    """One server's health: its drives and PHYs, and the kernel messages since it was asked last.

    ``paths`` has, by kernel names of devices, the by-path names of the drives behind them, or what those begin with
    (``pci-0000:10:00.0``). ``log_unreadable`` is the reason where the log, or all of it, could not be read.
    ``besides`` is the output of a command that was run as well; empty where it failed.
    """

    inventory: HostInventory
    position: KernelPosition
    kernel: tuple[KernelLine, ...] = ()
    paths: Mapping[str, Collection[str]] = field(default_factory=dict)
    log_unreadable: str | None = None
    besides: str = ""


@dataclass(frozen=True)
class ServerHealth:
    """One server in a snapshot. ``kernel`` are the messages since the snapshot before.

    ``ports`` has the server ports behind a kernel's name for a device, as far as the lab description tells.
    ``unreadable`` says of what could not be read why, ``drives`` are those that could.
    """

    position: KernelPosition
    phys: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    ports: Mapping[str, Collection[str]] = field(default_factory=dict)
    kernel: tuple[KernelLine, ...] = ()
    unreadable: Mapping[str, str] = field(default_factory=dict)
    drives: Collection[str] = ()


@dataclass(frozen=True)
class HealthSnapshot:
    """The health of a rack, taken between two stamps of the run's clock.

    ``drives`` are the counters of each drive by its name in the lab description, by ``SERVER serial SERIAL`` where it
    is not described. ``unreachable`` says of servers that did not answer why.
    """

    started_ns: int
    ended_ns: int
    drives: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    servers: Mapping[str, ServerHealth] = field(default_factory=dict)
    unreachable: Mapping[str, str] = field(default_factory=dict)


def snapshot_of(
    lab: Lab, hosts: Mapping[str, HostHealth], unreachable: Mapping[str, str], *, started_ns: int, ended_ns: int
) -> HealthSnapshot:
    """The health of the servers of ``lab``, by the names of its description, which gives each port its path."""
    by_serial = {normal_text(drive.serial): name for name, drive in lab.drives.items()}
    seen: dict[str, dict[str, Mapping[str, int]]] = {server: {} for server in hosts}
    for server, host in hosts.items():
        for drive in host.inventory.drives:
            serial = drive.identity.serial
            seen[server][by_serial.get(serial, f"{server} serial {serial}")] = drive.counters
    return HealthSnapshot(
        started_ns=started_ns,
        ended_ns=ended_ns,
        # A drive that two servers see tells both the same.
        drives={name: counters for its in seen.values() for name, counters in its.items()},
        servers={server: _server(host, lab.servers[server], [*seen[server]]) for server, host in hosts.items()},
        unreachable=unreachable,
    )


def _server(host: HostHealth, server: Server, drives: Collection[str]) -> ServerHealth:
    log = {} if host.log_unreadable is None else {"kernel log": host.log_unreadable}
    return ServerHealth(
        position=host.position,
        phys={phy.name: phy.counters for phy in host.inventory.phys},
        ports={name: _ports_at(paths, server) for name, paths in host.paths.items()},
        kernel=host.kernel,
        unreadable={**host.inventory.unreadable, **log},
        drives=drives,
    )


def _ports_at(names: Collection[str], server: Server) -> list[str]:
    """The ports that by-path names, or what those begin with, are of; if none are, those whose path is unknown."""
    described = [(name, port, path) for name in names for port, path in server.paths.items()]
    found = {port for name, port, path in described if is_on_path(name, path) or is_on_path(path, name)}
    return sorted(found or server.ports.keys() - server.paths.keys())
