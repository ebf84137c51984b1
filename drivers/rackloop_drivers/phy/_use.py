"""The check of the drives behind PHYs, before these lose their signal: described, and not in use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rackloop.clock import Deadline
from rackloop.drive_identifiers import normal_text
from rackloop.errors import GuardRefused
from rackloop_drivers.host_tools import list_disks, read_drives
from rackloop_drivers.phy._host_phy import HostPhy, PhyVia, run_phy


def require_unused(
    phy: HostPhy, names: Sequence[str], drives: Mapping[str, str], via: PhyVia, deadline: Deadline
) -> None:
    """Return where every drive behind the PHYs ``names`` of ``phy`` may lose its link.

    Raises GuardRefused for the first that may not: one that is in use, the boot drive, one that cannot be read, and one
    whose serial is none of ``drives``, which has them by the drives' names. A drive is asked for its own only where the
    server knows it by none of these.
    """
    behind = dict.fromkeys(run_phy(phy.host, via, "behind", *names, deadline=deadline).split())
    if not behind:
        return
    described_as = {normal_text(serial): drive for drive, serial in drives.items()}
    nodes = [f"/dev/{drive}" for drive in behind]
    disks = list_disks(phy.host, nodes, deadline)
    serials = {node: disk.serial or "" for node, disk in disks.items()}
    if others := [node for node, serial in serials.items() if normal_text(serial) not in described_as]:
        seen = read_drives(phy.host, others, deadline)
        for node, problem in seen.unreadable.items():
            raise GuardRefused(node, [f"it cannot be read: {problem}"])
        serials |= {drive.device: drive.identity.serial for drive in seen.drives}
    for node in nodes:
        if (disk := disks.get(node)) is None:
            raise GuardRefused(node, ["lsblk does not list it, so its users are unknown"])
        described = described_as.get(normal_text(serials[node]))
        reasons = [f"it is in use: {claim}" for claim in disk.usage.claims]
        if disk.usage.is_boot_drive:
            reasons.append("it is the boot drive")
        if described is None:
            reasons.append(f"nothing is described behind {phy} with its serial, {serials[node]}")
        if reasons:
            raise GuardRefused(described or node, reasons)
