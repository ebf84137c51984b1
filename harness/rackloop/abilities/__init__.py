"""Abilities: what may be asked of equipment, without saying whose equipment it is.

Every call that touches the wire takes a :class:`~rackloop.clock.Deadline` and raises a
:class:`~rackloop.errors.LabError` when the box fails, :class:`~rackloop.errors.NotSupported` when it cannot do it.
"""

from rackloop.abilities.breakable import Breakable, FaultRegister
from rackloop.abilities.fabric import Applied, BoxIdentity, Fabric, LiveMap, MapStager, PortState, Staged, stager
from rackloop.abilities.filters import FabricFilter, HiddenPorts, PhyFilter
from rackloop.abilities.host import Completed, Executor, Host, Process
from rackloop.abilities.phy import LinkReset, PhyControl, SignalRestorer
from rackloop.abilities.power import PowerPort, SystemEvent, SystemEventLog
from rackloop.abilities.storage import (
    BlockDevice,
    BlockUsage,
    Claim,
    Drive,
    DriveIdentity,
    SanitizeMethod,
    Sanitizer,
    WritableDrive,
)

__all__ = [
    "Applied",
    "BlockDevice",
    "BlockUsage",
    "BoxIdentity",
    "Breakable",
    "Claim",
    "Completed",
    "Drive",
    "DriveIdentity",
    "Executor",
    "Fabric",
    "FabricFilter",
    "FaultRegister",
    "HiddenPorts",
    "Host",
    "LinkReset",
    "LiveMap",
    "MapStager",
    "PhyControl",
    "PhyFilter",
    "PortState",
    "PowerPort",
    "Process",
    "SanitizeMethod",
    "Sanitizer",
    "SignalRestorer",
    "Staged",
    "SystemEvent",
    "SystemEventLog",
    "WritableDrive",
    "stager",
]
