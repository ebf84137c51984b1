"""The FlexFabric circuit switch: its SCPI dialect, the driver for it, and the box simulated.

The driver is wanted without the simulated box nearly everywhere, so that each name is imported when asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackloop.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackloop_drivers.fabric.flexfabric._driver import FlexFabric as FlexFabric
    from rackloop_drivers.fabric.flexfabric._driver import FlexFabricPhy as FlexFabricPhy
    from rackloop_drivers.fabric.flexfabric._driver import open_flexfabric as open_flexfabric
    from rackloop_drivers.fabric.flexfabric._registered import Control as Control
    from rackloop_drivers.fabric.flexfabric._registered import FlexFabricDriver as FlexFabricDriver
    from rackloop_drivers.fabric.flexfabric._session import Exchange as Exchange
    from rackloop_drivers.fabric.flexfabric._session import FlexFabricSession as FlexFabricSession
    from rackloop_drivers.fabric.flexfabric.peer.line_faults import LineFault as LineFault
    from rackloop_drivers.fabric.flexfabric.peer.line_faults import LineFaultRule as LineFaultRule
    from rackloop_drivers.fabric.flexfabric.peer.line_faults import LineFaults as LineFaults
    from rackloop_drivers.fabric.flexfabric.peer.matrix import PortMatrix as PortMatrix
    from rackloop_drivers.fabric.flexfabric.peer.memory_matrix import MemoryMatrix as MemoryMatrix
    from rackloop_drivers.fabric.flexfabric.peer.rackd_matrix import RackdMatrix as RackdMatrix
    from rackloop_drivers.fabric.flexfabric.peer.switch_peer import SwitchPeer as SwitchPeer
    from rackloop_drivers.fabric.flexfabric.peer.switch_thread import SwitchThread as SwitchThread

__getattr__ = lazy_getattr(__name__)
