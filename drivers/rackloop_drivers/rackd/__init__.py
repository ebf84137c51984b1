"""The control socket of rackd, the simulated rack: transport shared by the drivers that speak to it."""

from rackloop_drivers.rackd._control import RackdControl, RackdRefused
from rackloop_drivers.rackd._truth import TruthStream

__all__ = ["RackdControl", "RackdRefused", "TruthStream"]
