"""The FlexFabric circuit switch: its SCPI dialect, the driver for it, and the box simulated.

The driver is wanted without the simulated box nearly everywhere, so that each name is imported when asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackloop.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackloop_drivers.fabric.flexfabric._driver import FlexFabric, FlexFabricPhy, open_flexfabric
    from rackloop_drivers.fabric.flexfabric._matrix import PortMatrix
    from rackloop_drivers.fabric.flexfabric._memory_matrix import MemoryMatrix
    from rackloop_drivers.fabric.flexfabric._mischief import Act, Mischief, Rule
    from rackloop_drivers.fabric.flexfabric._peer import SwitchPeer
    from rackloop_drivers.fabric.flexfabric._peer_thread import SwitchThread
    from rackloop_drivers.fabric.flexfabric._rackd_matrix import RackdMatrix
    from rackloop_drivers.fabric.flexfabric._session import Exchange, FlexFabricSession

__all__ = [
    "Act",
    "Exchange",
    "FlexFabric",
    "FlexFabricPhy",
    "FlexFabricSession",
    "MemoryMatrix",
    "Mischief",
    "PortMatrix",
    "RackdMatrix",
    "Rule",
    "SwitchPeer",
    "SwitchThread",
    "open_flexfabric",
]

__getattr__ = lazy_getattr(
    __name__,
    {
        "Act": "_mischief",
        "Exchange": "_session",
        "FlexFabric": "_driver",
        "FlexFabricPhy": "_driver",
        "FlexFabricSession": "_session",
        "MemoryMatrix": "_memory_matrix",
        "Mischief": "_mischief",
        "PortMatrix": "_matrix",
        "RackdMatrix": "_rackd_matrix",
        "Rule": "_mischief",
        "SwitchPeer": "_peer",
        "SwitchThread": "_peer_thread",
        "open_flexfabric": "_driver",
    },
)
