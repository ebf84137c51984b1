"""The check of the drives behind PHYs, before these lose their signal: described, and not in use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rackloop.clock import Deadline
from rackloop.drive_identifiers import normal_text
from rackloop.errors import GuardRefused
from rackloop_drivers.host_tools import read_drives
from rackloop_drivers.phy._host_phy import HostPhy, PhyVia, run_phy


def require_unused(
    phy: HostPhy, names: Sequence[str], drives: Mapping[str, str], via: PhyVia, deadline: Deadline
) -> None:
    """Return where every drive behind the PHYs ``names`` of ``phy`` may lose its link.

    Raises GuardRefused for the first that may not: one that is in use, the boot drive, one that cannot be read, and one
    whose serial is none of ``drives``, which has them by the drives' names.
    """
    behind = dict.fromkeys(run_phy(phy.host, via, "behind", *names, deadline=deadline).split())
    if not behind:
        return
    described_as = {normal_text(serial): drive for drive, serial in drives.items()}
    seen = read_drives(phy.host, [f"/dev/{drive}" for drive in behind], deadline)
    for node, problem in seen.unreadable.items():
        raise GuardRefused(node, [f"it cannot be read: {problem}"])
    for drive in seen.drives:
        described = described_as.get(normal_text(drive.identity.serial))
        reasons = [f"it is in use: {claim}" for claim in drive.usage.claims]
        if drive.usage.is_boot_drive:
            reasons.append("it is the boot drive")
        if described is None:
            reasons.append(f"nothing is described behind {phy} with its serial, {drive.identity.serial}")
        if reasons:
            raise GuardRefused(described or drive.device, reasons)
