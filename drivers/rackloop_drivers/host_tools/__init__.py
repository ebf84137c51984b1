"""Commands on any server: surveys by lsblk, nvme-cli and smartmontools, delivered programs, faults."""

from rackloop_drivers.host_tools._clock import kernel_clock
from rackloop_drivers.host_tools._delivery import deliver
from rackloop_drivers.host_tools._health import read_health
from rackloop_drivers.host_tools._host_faults import Breaking, HostFaults, HostRegister, missing_tool, require_tool
from rackloop_drivers.host_tools._survey import name_of, read_drive, read_drives, survey_host

__all__ = [
    "Breaking",
    "HostFaults",
    "HostRegister",
    "deliver",
    "kernel_clock",
    "missing_tool",
    "name_of",
    "read_drive",
    "read_drives",
    "read_health",
    "require_tool",
    "survey_host",
]
