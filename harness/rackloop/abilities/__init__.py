"""Abilities: what may be asked of equipment, without saying whose equipment it is.

Every call that touches the wire takes a :class:`~rackloop.clock.Deadline` and raises a
:class:`~rackloop.errors.LabError` when the box fails, :class:`~rackloop.errors.NotSupported` when it cannot do it.
"""

from rackloop.abilities.breakable import Breakable as Breakable
from rackloop.abilities.breakable import FaultRegister as FaultRegister
from rackloop.abilities.breakable import RecallsFaults as RecallsFaults
from rackloop.abilities.console import Console as Console
from rackloop.abilities.console import Heard as Heard
from rackloop.abilities.fabric import Applied as Applied
from rackloop.abilities.fabric import BoxIdentity as BoxIdentity
from rackloop.abilities.fabric import Fabric as Fabric
from rackloop.abilities.fabric import LiveMap as LiveMap
from rackloop.abilities.fabric import MapStager as MapStager
from rackloop.abilities.fabric import PortState as PortState
from rackloop.abilities.fabric import Staged as Staged
from rackloop.abilities.fabric import stager as stager
from rackloop.abilities.filters import FabricFilter as FabricFilter
from rackloop.abilities.filters import HiddenPorts as HiddenPorts
from rackloop.abilities.filters import PhyFilter as PhyFilter
from rackloop.abilities.host import Completed as Completed
from rackloop.abilities.host import Executor as Executor
from rackloop.abilities.host import Host as Host
from rackloop.abilities.host import Process as Process
from rackloop.abilities.phy import LinkReset as LinkReset
from rackloop.abilities.phy import PhyControl as PhyControl
from rackloop.abilities.phy import SignalRestorer as SignalRestorer
from rackloop.abilities.power import PowerPort as PowerPort
from rackloop.abilities.power import SystemEvent as SystemEvent
from rackloop.abilities.power import SystemEventLog as SystemEventLog
from rackloop.abilities.storage import BlockDevice as BlockDevice
from rackloop.abilities.storage import BlockUsage as BlockUsage
from rackloop.abilities.storage import Claim as Claim
from rackloop.abilities.storage import Drive as Drive
from rackloop.abilities.storage import DriveIdentity as DriveIdentity
from rackloop.abilities.storage import SanitizeMethod as SanitizeMethod
from rackloop.abilities.storage import Sanitizer as Sanitizer
from rackloop.abilities.storage import WritableDrive as WritableDrive
