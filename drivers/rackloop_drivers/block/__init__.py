"""How I/O reaches a drive, and who else uses it."""

from rackloop_drivers.block._host import HostPath
from rackloop_drivers.block._nbd import NbdExport
from rackloop_drivers.block.device_path import BlockTopology, DevicePath

__all__ = ["BlockTopology", "DevicePath", "HostPath", "NbdExport"]
