"""Block devices: how I/O reaches a drive, and what else uses it. Each name is imported when asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackloop.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackloop_drivers.block._nbd import NbdExport as NbdExport
    from rackloop_drivers.block.device_path import BlockTopology as BlockTopology
    from rackloop_drivers.block.device_path import DevicePath as DevicePath
    from rackloop_drivers.block.host_path import ArrayDevice as ArrayDevice
    from rackloop_drivers.block.host_path import HostPath as HostPath
    from rackloop_drivers.block.host_path import SharedPath as SharedPath

__getattr__ = lazy_getattr(__name__)
