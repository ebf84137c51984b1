"""SAS PHYs of servers: their signal taken away, given back and reset by commands on the server.

Each name is imported when asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackloop.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackloop_drivers.phy._host_phy import HostPhy as HostPhy
    from rackloop_drivers.phy._host_phy import PhyVia as PhyVia
    from rackloop_drivers.phy._host_phy import SasPhy as SasPhy
    from rackloop_drivers.phy._host_phy import list_phys as list_phys
    from rackloop_drivers.phy._host_phy import require_switchable as require_switchable
    from rackloop_drivers.phy._phys import HostPhys as HostPhys
    from rackloop_drivers.phy._registered import HostPhyDriver as HostPhyDriver
    from rackloop_drivers.phy._switched_off import PhySwitchedOff as PhySwitchedOff

__getattr__ = lazy_getattr(__name__)
