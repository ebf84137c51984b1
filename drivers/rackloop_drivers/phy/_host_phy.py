"""The SAS PHY behind an HBA port of a server, found by the port's path and asked through the server's shell.

Sources: Linux ``include/scsi/scsi_transport_sas.h`` (``/sys/class/sas_phy``), smp_phy_control(8).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files

from rackloop.abilities import Host, PortState
from rackloop.clock import Deadline
from rackloop.errors import LabError, NotSupported
from rackloop_drivers.host_tools import missing_tool

_PATH = re.compile(r"(?:/dev/disk/by-path/)?pci-(?P<pci>[0-9a-f:.]+)(?:-sas-phy(?P<phy>\d+))?(?:-|$)")
_NO_TOOL = 5
_NOT_FREE = 6
_TRAINS = frozenset({"Spinup hold", "Reset in progress"})


class PhyVia(StrEnum):
    """The way to a PHY: the kernel's SAS classes, with smp_utils where they do not have it; or smp_utils alone."""

    SYSFS = "sysfs"
    SMP = "smp"


@dataclass(frozen=True)
class SasPhy:
    """A PHY as ``/sys/class/sas_phy`` has it; ``losses`` is its ``loss_of_dword_sync_count``."""

    name: str
    losses: int
    device: str
    link_rate: str

    @property
    def is_disabled(self) -> bool:
        """Whether it was switched off."""
        return "disabled" in self.link_rate

    @property
    def state(self) -> PortState:
        """The state of its link."""
        if "Gbit" in self.link_rate:
            return PortState.UP
        return PortState.TRAIN if self.link_rate in _TRAINS else PortState.DOWN


@dataclass(frozen=True)
class HostPhy:
    """The PHY of an HBA port: the server it is in, and the path of the port, as in ``paths:`` of a description."""

    host: Host
    path: str

    def __str__(self) -> str:
        return f"{self.host.name}:{self.path}"

    def among(self, phys: Sequence[SasPhy]) -> SasPhy:
        """The PHY of this port among those of the server.

        Raises NotSupported where it has none, as a port of an AHCI or NVMe controller, LabError where it is one of
        several that the path does not tell apart.
        """
        place = _PATH.match(self.path)
        if place is None:
            raise LabError(f"{self}: no PCI address is in this path; give paths: as in pci-0000:3b:00.0")
        at = [phy for phy in phys if f"/{place['pci']}/" in phy.device and phy.name.count(":") == 1]
        if place["phy"] is not None:
            at = [phy for phy in at if phy.name.endswith(f":{place['phy']}")]
        if not at:
            raise NotSupported(f"{self}: the controller there has no SAS PHYs, whose signal could be taken away")
        if len(at) > 1:
            names = ", ".join(phy.name for phy in at)
            raise LabError(f"{self}: {names} are there; say in paths: which of them, as in {self.path}-sas-phy0")
        return at[0]


def list_phys(host: Host, deadline: Deadline) -> list[SasPhy]:
    """Every SAS PHY of a server, those of expanders too."""
    phys = []
    for line in run_phy(host, PhyVia.SYSFS, "list", deadline=deadline).splitlines():
        name, losses, device, rate = line.split(" ", 3)
        phys.append(SasPhy(name, int(losses), device, rate))
    return phys


def require_switchable(host: Host, deadline: Deadline) -> None:
    """Return where each PHY of the server's HBAs can be switched off.

    Raises ToolError where that takes smp_phy_control, since their driver has no attribute for it, and it is missing.
    """
    names = [phy.name for phy in list_phys(host, deadline) if phy.name.count(":") == 1]
    run_phy(host, PhyVia.SYSFS, "able", *names, deadline=deadline)


def run_phy(host: Host, via: PhyVia, what: str, *arguments: str, deadline: Deadline) -> str:
    """Do what ``phy.sh`` does. Raises LabError where the server did not, ToolError where it lacks smp_utils."""
    script = files("rackloop_drivers.phy").joinpath("phy.sh").read_text(encoding="utf-8")
    completed = host.run(["sh", "-c", script, "phy", script, via, what, *arguments], deadline)
    if completed.status == _NO_TOOL:
        raise missing_tool(host, "smp_phy_control")
    if completed.status == _NOT_FREE:
        raise LabError(f"{host.name}: {completed.stderr.strip()}")
    if completed.status:
        said = completed.stderr.strip() or f"exit status {completed.status}"
        raise LabError(f"{host.name}: {what} of its PHYs failed: {said}; it takes root on the server")
    return completed.stdout
