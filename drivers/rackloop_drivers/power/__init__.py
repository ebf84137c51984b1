"""What can cut power: the simulated rack's own here, and each kind of real box in a package of its own."""

from rackloop_drivers.power._rackd import RackdPowerPort

__all__ = ["RackdPowerPort"]
