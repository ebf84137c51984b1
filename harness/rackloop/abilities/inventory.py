"""The inventory of a server: its drives with every identifier that they report, and the PHYs of its HBAs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rackloop.abilities import BlockUsage, DriveIdentity
from rackloop.drive_identifiers import is_on_path


@dataclass(frozen=True)
class SeenDrive:
    """A drive as the tools of a server report it.

    ``device`` is its node, ``/dev/sda`` or ``/dev/nvme0n1``; ``by_paths`` all its names under ``/dev/disk/by-path``.
    ``counters`` have the names of :mod:`rackloop.inspection.health`. ``findings`` are what a tool warned of, in words.
    """

    device: str
    identity: DriveIdentity
    by_paths: tuple[str, ...] = ()
    is_rotational: bool = False
    usage: BlockUsage = field(default_factory=BlockUsage)
    counters: Mapping[str, int] = field(default_factory=dict)
    findings: tuple[str, ...] = ()

    def is_at(self, path: str) -> bool:
        """Whether it is at ``path``, the beginning of by-path names such as ``pci-0000:10:00.0``."""
        return any(is_on_path(name, path) for name in self.by_paths)

    def __str__(self) -> str:
        return f"{self.identity.model}, serial {self.identity.serial}"


@dataclass(frozen=True)
class SeenPhy:
    """A PHY of the SAS transport class.

    ``counters`` are its error counters by the names they have in sysfs, ``invalid_dword_count`` and the like.
    """

    name: str
    sas_address: str
    link_rate: str
    is_enabled: bool
    counters: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class HostInventory:
    """The drives and PHYs that one server sees at one moment.

    ``unreadable`` says of a drive that does not answer, or not who it is, why, by its node; ``unreadable_by_paths`` has
    the names of such a node under ``/dev/disk/by-path``. A tool printed what is unknown of ``of_unknown_format``.
    """

    host: str
    drives: tuple[SeenDrive, ...] = ()
    phys: tuple[SeenPhy, ...] = ()
    unreadable: Mapping[str, str] = field(default_factory=dict)
    unreadable_by_paths: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    of_unknown_format: frozenset[str] = frozenset()
