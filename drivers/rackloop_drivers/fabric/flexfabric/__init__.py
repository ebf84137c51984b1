"""The FlexFabric circuit switch: its SCPI dialect, the driver for it, and the box simulated.

The driver is wanted without the simulated box nearly everywhere, so that each name is imported when asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackloop.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackloop_drivers.fabric.flexfabric._driver import FlexFabric, FlexFabricPhy, open_flexfabric
    from rackloop_drivers.fabric.flexfabric._session import Exchange, FlexFabricSession
    from rackloop_drivers.fabric.flexfabric.peer.line_faults import LineFault, LineFaultRule, LineFaults
    from rackloop_drivers.fabric.flexfabric.peer.matrix import PortMatrix
    from rackloop_drivers.fabric.flexfabric.peer.memory_matrix import MemoryMatrix
    from rackloop_drivers.fabric.flexfabric.peer.rackd_matrix import RackdMatrix
    from rackloop_drivers.fabric.flexfabric.peer.switch_peer import SwitchPeer
    from rackloop_drivers.fabric.flexfabric.peer.switch_thread import SwitchThread

__all__ = [
    "Exchange",
    "FlexFabric",
    "FlexFabricPhy",
    "FlexFabricSession",
    "LineFault",
    "LineFaultRule",
    "LineFaults",
    "MemoryMatrix",
    "PortMatrix",
    "RackdMatrix",
    "SwitchPeer",
    "SwitchThread",
    "open_flexfabric",
]

__getattr__ = lazy_getattr(__name__)
