"""How I/O reaches a drive, and who else uses it."""

from rackloop_drivers.block._nbd import NbdExport
from rackloop_drivers.block._path import DevicePath
from rackloop_drivers.block._topology import BlockTopology

__all__ = ["BlockTopology", "DevicePath", "NbdExport"]
