"""A snapshot of a mock server as its kernel would know it, which the emulated tools render."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, Protocol

from rackloop_labs.mock_hosts._firmware import Firmware
from rackloop_labs.mock_hosts._pci_address import pci_address


@dataclass(frozen=True)
class Answer:
    """A command's output and its exit status."""

    stdout: str = ""
    stderr: str = ""
    status: int = 0


@dataclass(frozen=True)
class HbaPort:
    """A port of the server's HBA, a PCI function of its own.

    ``index`` is its place among the server's ports, ``sas_address`` 16 hexadecimal digits, ``phy_resets`` how often
    the link was lost. ``is_enabled`` is False while its link is disabled on the server, ``is_present`` while
    its function was removed from the PCI bus, ``is_slot_on`` while the slot of the NVMe drive in it is switched off.
    ``last_protocol`` is that of what was found there last, which says what kind of HBA the port is.
    """

    name: str
    index: int
    switch_port: int
    sas_address: str
    is_linked: bool
    phy_resets: int
    is_enabled: bool = True
    is_present: bool = True
    is_slot_on: bool = True
    last_protocol: str = "none"

    @property
    def bridge_address(self) -> str:
        """The PCI address of the root port it is behind."""
        return f"0000:00:{0x10 + self.index:02x}.0"

    @property
    def pci_address(self) -> str:
        """Domain, bus, device and function."""
        return pci_address(self.index)


@dataclass(frozen=True)
class AttachedExpander:
    """A SAS expander that the server sees now at a port, and the enclosure services (SES) device in it.

    PHY N of the expander is that of slot N; PHY ``slots`` leads to the server. ``generic`` is the ``sgN`` of the SES
    device; ``off_slots`` are those whose drive is switched off.
    """

    name: str
    port: HbaPort
    slots: int
    sas_address: str
    generic: str
    off_slots: frozenset[int] = frozenset()

    @property
    def hctl(self) -> str:
        """Host, channel, target and LUN of the SES device: the target behind those of the slots."""
        return f"{self.port.index}:0:{self.slots}:0"


class Counters(Mapping[str, int]):
    """The counters of a drive, which ``ask`` is asked for when they are first looked at; what it raises comes then."""

    def __init__(self, ask: Callable[[], Mapping[str, Any]]) -> None:
        self._ask = ask

    @cached_property
    def _known(self) -> dict[str, int]:
        return {name: value for name, value in self._ask().items() if name != "t_ns"}

    def __getitem__(self, name: str) -> int:
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


@dataclass(frozen=True)
class AttachedDrive:
    """A drive that the server sees now, directly at a port or in a slot of the expander there.

    ``kernel_name`` is ``sda`` or ``nvme0``; ``number`` the N of ``nvmeN`` or of the ``scsi host N`` (``hostN``) it is
    on, which is the port's ``index``; ``generic`` is its ``sgN``. ``counters`` are those of rackd's ``drive_stats``;
    ``failed_lbas`` are where its newest media errors were, the newest last; ``rpm`` is
    how fast a disk turns, where that is known, and ``firmware_state`` what the drive keeps besides its data.
    """

    drive_id: str
    kernel_name: str
    number: int
    port: HbaPort
    model: str
    serial: str
    firmware: str
    protocol: str
    wwn: str | None
    eui64: str | None
    nguid: str | None
    size_bytes: int
    sector_bytes: int
    is_rotational: bool
    counters: Mapping[str, int] = field(default_factory=dict)
    expander: AttachedExpander | None = None
    slot: int | None = None
    generic: str | None = None
    failed_lbas: tuple[int, ...] = ()
    rpm: int | None = None
    firmware_state: Firmware = field(default_factory=Firmware)

    @property
    def hctl(self) -> str | None:
        """Host, channel, target and LUN; behind an expander the target is the slot. None for NVMe."""
        return None if self.protocol == "nvme" else f"{self.number}:0:{self.slot or 0}:0"

    @property
    def block_name(self) -> str:
        """The name under ``/sys/block``: an NVMe namespace is ``nvme0n1``."""
        return f"{self.kernel_name}n1" if self.protocol == "nvme" else self.kernel_name

    @property
    def transport(self) -> str:
        """The transport to it: ``nvme``, ``sata`` or ``sas``; a SATA drive behind an expander is reached by SAS."""
        return self.protocol if self.expander is None else "sas"

    @property
    def sas_address(self) -> str:
        """The SAS address at which it is reached, that of the drive or one that the expander gives a SATA drive."""
        if self.wwn is not None and self.protocol == self.transport:
            return self.wwn
        if self.expander is not None:
            return f"{int(self.expander.sas_address, 16) + 1 + (self.slot or 0):016x}"
        return self.port.sas_address

    @property
    def by_path(self) -> str:
        """The name under ``/dev/disk/by-path``, as udev builds it."""
        start = f"pci-{self.port.pci_address}"
        if self.protocol == "nvme":
            return f"{start}-nvme-1"
        if self.expander is not None:
            return f"{start}-sas-exp0x{self.expander.sas_address}-phy{self.slot}-lun-0"
        return f"{start}-ata-1" if self.protocol == "sata" else f"{start}-sas-phy0-lun-0"


@dataclass(frozen=True)
class KernelLine:
    """A message of the kernel: microseconds since the boot, and a priority from 0 (emergency) to 7 (debug)."""

    at_us: int
    text: str
    priority: int = 6

    def __str__(self) -> str:
        """As ``dmesg`` prints it."""
        return f"[{self.at_us // 1_000_000:5}.{self.at_us % 1_000_000:06}] {self.text}"


@dataclass(frozen=True)
class HostView:
    """A server at one moment, ``now`` by its clock.

    ``changes`` grows whenever something changes at its links, drives or power.
    """

    server: str
    boot_id: str
    up_s: float
    ports: tuple[HbaPort, ...]
    drives: tuple[AttachedDrive, ...]
    expanders: tuple[AttachedExpander, ...] = ()
    kernel_log: tuple[KernelLine, ...] = ()
    now: datetime = datetime(1970, 1, 1, tzinfo=UTC)
    changes: int = 0

    @property
    def booted_at(self) -> datetime:
        """The time of the server's boot, by its clock."""
        return self.now - timedelta(seconds=self.up_s)


class HostActs(Protocol):
    """The acts of a command on a server on its links and drives. Each takes effect before it returns."""

    def reset_link(self, port: HbaPort) -> None:
        """Take the signal away from a port for a moment: a link or hard reset, a COMRESET."""
        ...

    def reset_controller(self, drive: AttachedDrive) -> None:
        """Reset an NVMe controller."""
        ...

    def disable_link(self, port: HbaPort) -> None:
        """Take the signal away until :meth:`enable_link`."""
        ...

    def enable_link(self, port: HbaPort) -> None:
        """Give a disabled link its signal back."""
        ...

    def power_slot(self, expander: AttachedExpander, slot: int, *, on: bool) -> None:
        """Give or take the power of the drive in an expander's slot; nothing where the slot is empty."""
        ...

    def sanitize(self, drive: AttachedDrive, method: str, *, at_once: bool = False) -> None:
        """Have a drive erase itself by a method of rackd; unless ``at_once``, it takes a moment."""
        ...

    def set_password(self, drive: AttachedDrive, password: str | None) -> None:
        """Give an ATA drive a user password, with which it is unlocked now, or take it away."""
        ...

    def limit_recovery(self, drive: AttachedDrive, reads: int, writes: int) -> None:
        """Set the limits of a drive's error recovery, in its own unit."""
        ...

    def mark(self, drive: AttachedDrive, first: int, many: int) -> None:
        """Make sectors unreadable until they are written."""
        ...

    def remove(self, drive: AttachedDrive) -> None:
        """Have the kernel forget a drive until :meth:`rescan` or until its link comes up again."""
        ...

    def rescan(self, port: HbaPort, target: int | None = None) -> None:
        """Have the kernel look for what is at a port, or for one target: a slot of the expander there, else 0."""
        ...

    def remove_function(self, port: HbaPort) -> None:
        """Have the kernel forget a port's PCI function, and all at it, until :meth:`rescan_bus`."""
        ...

    def rescan_bus(self, port: HbaPort | None = None) -> None:
        """Have the kernel look for PCI functions, or for that of one port."""
        ...

    def power_pci_slot(self, port: HbaPort, *, on: bool) -> None:
        """Give or take the power of the NVMe drive in a port's slot; nothing where there is none."""
        ...
