"""Parts that can be broken on purpose: drives of the simulated rack."""

from rackloop_drivers.breakable._rackd import RackdBreakable, standing_by_drive

__all__ = ["RackdBreakable", "standing_by_drive"]
