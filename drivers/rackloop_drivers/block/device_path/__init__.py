"""A drive behind a device node of this machine, and what else uses it."""

from rackloop_drivers.block.device_path._driver import DevicePath
from rackloop_drivers.block.device_path._topology import BlockTopology

__all__ = ["BlockTopology", "DevicePath"]
