"""Parts that can be broken on purpose: drives of the simulated rack."""

from rackloop_drivers.breakable._rackd import RackdBreakable as RackdBreakable
from rackloop_drivers.breakable._rackd import standing_by_drive as standing_by_drive
