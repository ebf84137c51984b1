"""A fault: the PHYs of a port that are disabled until they are enabled again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rackloop.clock import Deadline
from rackloop.errors import BadInput
from rackloop_drivers.phy._host_phy import HostPhy, PhyVia, list_phys, run_phy
from rackloop_drivers.phy._use import require_unused


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
        self._drives = drives

    def prepare(self, fault: Mapping[str, Any], deadline: Deadline) -> dict[str, Any]:
        """See :class:`~rackloop_drivers.host_tools.Breaking`."""
        if surplus := sorted(fault.keys() - {"kind"}):
            raise BadInput(f"{fault['kind']} of {self._phy} takes no {', '.join(surplus)}")
        names = self._names(deadline)
        run_phy(self._phy.host, self._via, "free", *names, deadline=deadline)
        require_unused(self._phy, names, self._drives, self._via, deadline)
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

    def _names(self, deadline: Deadline) -> list[str]:
        return [phy.name for phy in self._phy.among(list_phys(self._phy.host, deadline))]
