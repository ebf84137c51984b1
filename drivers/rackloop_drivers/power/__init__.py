"""What can cut power."""

from rackloop_drivers.power._rackd import RackdPowerPort

__all__ = ["RackdPowerPort"]
