"""What can be broken on purpose: drives of the simulated rack."""

from rackloop_drivers.breakable._rackd import RackdBreakable

__all__ = ["RackdBreakable"]
