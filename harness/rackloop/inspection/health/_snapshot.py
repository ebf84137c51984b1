"""The health of a whole rack at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rackloop.abilities.inventory import HostInventory
    from rackloop.lab import Lab


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

    ``pci_functions`` has the PCI address (``0000:10:00.0``) behind each SCSI host, ATA port, NVMe controller, PHY and
    block device, by their kernel names. ``log_unreadable`` is the reason where the log could not be read.
    """

    inventory: HostInventory
    position: KernelPosition
    kernel: tuple[KernelLine, ...] = ()
    pci_functions: Mapping[str, str] = field(default_factory=dict)
    log_unreadable: str | None = None


@dataclass(frozen=True)
class ServerHealth:
    """One server in a snapshot. ``kernel`` are the messages since the snapshot before.

    ``ports`` has the server port behind a kernel's name for a device, as far as the lab description tells.
    ``unreadable`` says of what could not be read why.
    """

    position: KernelPosition
    phys: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    ports: Mapping[str, str] = field(default_factory=dict)
    kernel: tuple[KernelLine, ...] = ()
    unreadable: Mapping[str, str] = field(default_factory=dict)


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
    by_serial = {drive.serial: name for name, drive in lab.drives.items()}
    drives: dict[str, Mapping[str, int]] = {}
    for server, host in hosts.items():
        for seen in host.inventory.drives:
            serial = seen.identity.serial
            # A drive that two servers see tells both the same.
            drives.setdefault(by_serial.get(serial, f"{server} serial {serial}"), seen.counters)
    return HealthSnapshot(
        started_ns=started_ns,
        ended_ns=ended_ns,
        drives=drives,
        servers={server: _server(host, lab.servers[server].paths) for server, host in hosts.items()},
        unreachable=unreachable,
    )


def _server(host: HostHealth, paths: Mapping[str, str]) -> ServerHealth:
    by_function = {path.removeprefix("pci-"): port for port, path in paths.items()}
    log = {} if host.log_unreadable is None else {"kernel log": host.log_unreadable}
    return ServerHealth(
        position=host.position,
        phys={phy.name: phy.counters for phy in host.inventory.phys},
        ports={name: by_function[pci] for name, pci in host.pci_functions.items() if pci in by_function},
        kernel=host.kernel,
        unreadable={**host.inventory.unreadable, **log},
    )
