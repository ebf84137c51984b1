"""What a drive says of itself."""

from rackloop_drivers.drive._host import HostDrive
from rackloop_drivers.drive._rackd import RackdDrive, survey

__all__ = ["HostDrive", "RackdDrive", "survey"]
