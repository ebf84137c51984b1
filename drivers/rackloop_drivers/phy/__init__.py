"""SAS PHYs of servers: their signal taken away, given back and reset by commands on the server.

Each name is imported when asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackloop.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackloop_drivers.phy._host_phy import HostPhy, PhyVia
    from rackloop_drivers.phy._phys import HostPhys
    from rackloop_drivers.phy._switched_off import PhySwitchedOff

__all__ = ["HostPhy", "HostPhys", "PhySwitchedOff", "PhyVia"]

__getattr__ = lazy_getattr(__name__)
