"""What a drive says of itself."""

from rackloop_drivers.drive._rackd import RackdDrive, survey

__all__ = ["RackdDrive", "survey"]
