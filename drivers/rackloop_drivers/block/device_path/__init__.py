"""A drive behind a device node of this machine, and what else uses it."""

from rackloop_drivers.block.device_path._driver import DevicePath as DevicePath
from rackloop_drivers.block.device_path._topology import BlockTopology as BlockTopology
