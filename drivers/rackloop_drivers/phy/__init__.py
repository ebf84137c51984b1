"""SAS PHYs of servers: their signal taken away, given back and reset by commands on the server."""

from rackloop_drivers.phy._host_phy import HostPhy, PhyVia
from rackloop_drivers.phy._phys import HostPhys
from rackloop_drivers.phy._switched_off import PhySwitchedOff

__all__ = ["HostPhy", "HostPhys", "PhySwitchedOff", "PhyVia"]
