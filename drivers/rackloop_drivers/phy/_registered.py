"""The PHYs of servers as lab descriptions name them."""

from __future__ import annotations

from rackloop.abilities import PhyControl
from rackloop_drivers.boxes import PhyDriver, PhyOpening


class HostPhyDriver(PhyDriver):
    """The SAS PHYs of the servers' own HBAs, worked by commands on the servers."""

    def open(self, opening: PhyOpening) -> PhyControl | None:
        """The PHYs of all ports whose paths the description gives."""
        from rackloop_drivers.phy import HostPhy, HostPhys

        ports = {number: HostPhy(opening.hosts[server], path) for number, (server, path) in opening.paths.items()}
        return HostPhys(ports) if ports else None
