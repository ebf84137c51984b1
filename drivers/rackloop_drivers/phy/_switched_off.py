"""A fault: the PHYs of a port that are disabled until they are enabled again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rackloop.clock import Deadline
from rackloop.drive_identifiers import normal_text
from rackloop.errors import BadInput, GuardRefused
from rackloop_drivers.host_tools import read_drives
from rackloop_drivers.phy._host_phy import HostPhy, PhyVia, list_phys, run_phy


class PhySwitchedOff:
    """:class:`~rackloop_drivers.host_tools.Breaking` of a PHY, or all of a wide port: its one kind is ``disabled``.

    I/O to what is behind it waits as the server's timeouts say, and fails then. A PHY that a drop or a flap takes away
    is left to it: LabError. ``drives`` has the serials of those that are described behind it, by their names: any other
    drive there, one that is mounted or held, and the boot drive are refused with GuardRefused.
    """

    kinds = frozenset({"disabled"})

    def __init__(self, phy: HostPhy, drives: Mapping[str, str], via: PhyVia = PhyVia.SYSFS) -> None:
        self._phy = phy
        self._via = via
        self._described = {normal_text(serial): drive for drive, serial in drives.items()}

    def prepare(self, fault: Mapping[str, Any], deadline: Deadline) -> dict[str, Any]:
        """See :class:`~rackloop_drivers.host_tools.Breaking`."""
        if surplus := sorted(fault.keys() - {"kind"}):
            raise BadInput(f"{fault['kind']} of {self._phy} takes no {', '.join(surplus)}")
        names = self._names(deadline)
        run_phy(self._phy.host, self._via, "free", *names, deadline=deadline)
        self._require_may_go(names, deadline)
        return {"phys": names}

    def start(self, note: Mapping[str, Any], deadline: Deadline) -> None:
        """See :class:`~rackloop_drivers.host_tools.Breaking`."""
        run_phy(self._phy.host, self._via, "disable", *note["phys"], deadline=deadline)

    def stands(self, note: Mapping[str, Any], deadline: Deadline) -> bool:  # noqa: ARG002 - found anew by its path
        """See :class:`~rackloop_drivers.host_tools.Breaking`."""
        return any(phy.is_disabled for phy in self._phy.among(list_phys(self._phy.host, deadline)))

    def end(self, note: Mapping[str, Any], deadline: Deadline) -> None:  # noqa: ARG002 - its name may have changed
        """See :class:`~rackloop_drivers.host_tools.Breaking`."""
        run_phy(self._phy.host, self._via, "enable", *self._names(deadline), deadline=deadline)

    def _require_may_go(self, names: Sequence[str], deadline: Deadline) -> None:
        """Return where every drive behind the PHYs may be lost. Raises GuardRefused for the first that may not."""
        found = run_phy(self._phy.host, self._via, "behind", *names, deadline=deadline).split()
        behind = dict.fromkeys(found)
        if not behind:
            return
        seen = read_drives(self._phy.host, [f"/dev/{drive}" for drive in behind], deadline)
        for node, problem in seen.unreadable.items():
            raise GuardRefused(node, [f"it cannot be read: {problem}"])
        for drive in seen.drives:
            described = self._described.get(normal_text(drive.identity.serial))
            reasons = [f"it is in use: {claim}" for claim in drive.usage.claims]
            if drive.usage.is_boot_drive:
                reasons.append("it is the boot drive")
            if described is None:
                reasons.append(f"nothing is described behind {self._phy} with its serial, {drive.identity.serial}")
            if reasons:
                raise GuardRefused(described or drive.device, reasons)

    def _names(self, deadline: Deadline) -> list[str]:
        return [phy.name for phy in self._phy.among(list_phys(self._phy.host, deadline))]
