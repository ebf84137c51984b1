"""Reading drives through the tools that engineers trust: lsblk, nvme-cli and smartmontools, on any server."""

from rackloop_drivers.host_tools._clock import kernel_clock
from rackloop_drivers.host_tools._health import read_health
from rackloop_drivers.host_tools._survey import name_of, read_drive, read_drives, survey_host

__all__ = ["kernel_clock", "name_of", "read_drive", "read_drives", "read_health", "survey_host"]
