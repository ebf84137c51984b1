"""The SAS PHYs behind an HBA port of a server, found by the port's path and asked through the server's shell.

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
from rackloop_drivers.failed_command import failure_of
from rackloop_drivers.host_tools import missing_tool

_PATH = re.compile(
    r"(?:/dev/disk/by-path/)?pci-(?P<pci>[0-9a-f:.]+)"
    r"(?:-sas-phy(?P<phy>\d+)|-sas-exp(?P<expander>0x[0-9a-f]+)(?P<inside>-.*)?)?(?:-|$)"
)
_NO_TOOL = 5
_NOT_FREE = 6
_TRAINS = frozenset({"Spinup hold", "Reset in progress"})


class PhyVia(StrEnum):
    """The way to a PHY: the kernel's SAS classes, with smp_utils where they do not have it; or smp_utils alone."""

    SYSFS = "sysfs"
    SMP = "smp"


@dataclass(frozen=True)
class SasPhy:
    """A PHY as ``/sys/class/sas_phy`` has it; ``losses`` is its ``loss_of_dword_sync_count``, if that can be read.

    ``expanders`` are the SAS addresses of those that it leads to, or led to when it was taken away. It is None where
    the server does not tell, as of a PHY without a link.
    """

    name: str
    losses: int | None
    device: str
    link_rate: str
    expanders: frozenset[str] | None = None

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
    """The PHY of an HBA port, or all of a wide one: the server, and the port's path, as in ``paths:`` of a description.

    A path that ends with an expander, ``pci-0000:3b:00.0-sas-exp0x500304801234567f``, is that of the wide port there.
    """

    host: Host
    path: str

    def __str__(self) -> str:
        return f"{self.host.name}:{self.path}"

    def among(self, phys: Sequence[SasPhy]) -> list[SasPhy]:
        """The PHYs of this port among those of the server: one, or all of the wide port that an expander is behind.

        Raises NotSupported where it has none, as a port of an AHCI or NVMe controller or a place inside an expander,
        and where the server does not say which lead to the expander; LabError where none does now, and where it is one
        of several that the path does not tell apart.
        """
        place = _PATH.match(self.path)
        if place is None:
            raise LabError(f"{self}: no PCI address is in this path; give paths: as in pci-0000:3b:00.0")
        at = [phy for phy in phys if f"/{place['pci']}/" in phy.device and phy.name.count(":") == 1]
        if place["phy"] is not None:
            at = [phy for phy in at if phy.name.endswith(f":{place['phy']}")]
        if not at:
            raise NotSupported(f"{self}: the controller there has no SAS PHYs, whose signal could be taken away")
        if place["inside"] is not None:
            raise NotSupported(f"{self} is inside an expander: with its HBA's PHYs all that is in there would go")
        if place["expander"] is not None:
            return self._leading_to(place["expander"], at)
        if len(at) > 1:
            names = ", ".join(phy.name for phy in at)
            raise LabError(f"{self}: {names} are there; say in paths: which of them, as in pci-{place['pci']}-sas-phy0")
        return at

    def _leading_to(self, expander: str, phys: list[SasPhy]) -> list[SasPhy]:
        if len(phys) == 1:
            return phys
        if leading := [phy for phy in phys if expander in (phy.expanders or ())]:
            return leading
        linked = [phy for phy in phys if phy.state is PortState.UP]
        if linked and all(phy.expanders is None for phy in linked):
            raise NotSupported(f"{self}: the server does not say which of the HBA's PHYs lead to that expander")
        raise LabError(f"{self}: no PHY leads there now; has the expander power, and is this its SAS address?")


def list_phys(host: Host, deadline: Deadline) -> list[SasPhy]:
    """Every SAS PHY of a server, those of expanders too."""
    phys = []
    for line in run_phy(host, PhyVia.SYSFS, "list", deadline=deadline).splitlines():
        name, losses, device, leads, rate = line.split(" ", 4)
        expanders = None if leads == "?" else frozenset(leads.split(",")) - {""}
        phys.append(SasPhy(name, int(losses) if losses.isdecimal() else None, device, rate, expanders))
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
        said = failure_of(completed)
        raise LabError(f"{host.name}: {what} of its PHYs failed: {said}; it takes root on the server")
    return completed.stdout
