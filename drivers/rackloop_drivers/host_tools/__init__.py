"""Commands on any server: surveys by lsblk, nvme-cli and smartmontools, delivered programs, faults."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackloop.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackloop_drivers.host_tools._clock import kernel_clock as kernel_clock
    from rackloop_drivers.host_tools._clock import wall_clock as wall_clock
    from rackloop_drivers.host_tools._delivery import deliver as deliver
    from rackloop_drivers.host_tools._delivery import deliver_program as deliver_program
    from rackloop_drivers.host_tools._fault_dispatcher import FaultDispatcher as FaultDispatcher
    from rackloop_drivers.host_tools._health import read_health as read_health
    from rackloop_drivers.host_tools._host_faults import Breaking as Breaking
    from rackloop_drivers.host_tools._host_faults import HostFaults as HostFaults
    from rackloop_drivers.host_tools._host_faults import HostRegister as HostRegister
    from rackloop_drivers.host_tools._host_faults import missing_tool as missing_tool
    from rackloop_drivers.host_tools._host_faults import require_key as require_key
    from rackloop_drivers.host_tools._host_faults import require_tool as require_tool
    from rackloop_drivers.host_tools._lsblk import BOOT_MOUNTS as BOOT_MOUNTS
    from rackloop_drivers.host_tools._notice import tell_of_switch as tell_of_switch
    from rackloop_drivers.host_tools._own_name import own_name as own_name
    from rackloop_drivers.host_tools._own_name import place_of as place_of
    from rackloop_drivers.host_tools._survey import NoDriveThere as NoDriveThere
    from rackloop_drivers.host_tools._survey import identify_drive as identify_drive
    from rackloop_drivers.host_tools._survey import identify_drives as identify_drives
    from rackloop_drivers.host_tools._survey import list_disks as list_disks
    from rackloop_drivers.host_tools._survey import name_of as name_of
    from rackloop_drivers.host_tools._survey import read_drive as read_drive
    from rackloop_drivers.host_tools._survey import read_drives as read_drives
    from rackloop_drivers.host_tools._survey import survey_host as survey_host
    from rackloop_drivers.host_tools._watchdogs import with_watchdogs as with_watchdogs

__getattr__ = lazy_getattr(__name__)
