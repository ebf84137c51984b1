"""A PHY that stays without signal until somebody enables it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rackloop.clock import Deadline
from rackloop.errors import BadInput
from rackloop_drivers.phy._host_phy import HostPhy, PhyVia, list_phys, run_phy


class PhySwitchedOff:
    """:class:`~rackloop_drivers.host_faults.Breaking` of a PHY: its one kind is ``disabled``.

    I/O to what is behind it waits as the server's timeouts say, and fails then. A PHY that a drop or a flap takes away
    is left to it: LabError.
    """

    kinds = frozenset({"disabled"})

    def __init__(self, phy: HostPhy, via: PhyVia = PhyVia.SYSFS) -> None:
        self._phy = phy
        self._via = via

    def prepare(self, fault: Mapping[str, Any], deadline: Deadline) -> dict[str, Any]:
        """See :class:`~rackloop_drivers.host_faults.Breaking`."""
        if surplus := sorted(fault.keys() - {"kind"}):
            raise BadInput(f"{fault['kind']} of {self._phy} takes no {', '.join(surplus)}")
        name = self._name(deadline)
        run_phy(self._phy.host, self._via, "free", name, deadline=deadline)
        return {"phy": name}

    def start(self, note: Mapping[str, Any], deadline: Deadline) -> None:
        """See :class:`~rackloop_drivers.host_faults.Breaking`."""
        run_phy(self._phy.host, self._via, "disable", note["phy"], deadline=deadline)

    def stands(self, note: Mapping[str, Any], deadline: Deadline) -> bool:  # noqa: ARG002 - found anew by its path
        """See :class:`~rackloop_drivers.host_faults.Breaking`."""
        return self._phy.among(list_phys(self._phy.host, deadline)).is_disabled

    def end(self, note: Mapping[str, Any], deadline: Deadline) -> None:  # noqa: ARG002 - its name may have changed
        """See :class:`~rackloop_drivers.host_faults.Breaking`."""
        run_phy(self._phy.host, self._via, "enable", self._name(deadline), deadline=deadline)

    def _name(self, deadline: Deadline) -> str:
        return self._phy.among(list_phys(self._phy.host, deadline)).name
