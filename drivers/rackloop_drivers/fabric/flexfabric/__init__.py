"""The FlexFabric circuit switch: its SCPI dialect, the driver for it, and the box simulated."""

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
