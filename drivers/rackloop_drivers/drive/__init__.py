"""Drives: identity, health and other properties that they report. Each name is imported when asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackloop.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackloop_drivers.drive._rackd import RackdDrive as RackdDrive
    from rackloop_drivers.drive._rackd import survey as survey
    from rackloop_drivers.drive.host_drive import ERASING as ERASING
    from rackloop_drivers.drive.host_drive import MEDIA_ERROR as MEDIA_ERROR
    from rackloop_drivers.drive.host_drive import HostDrive as HostDrive
    from rackloop_drivers.drive.host_drive import InterruptedErasure as InterruptedErasure
    from rackloop_drivers.drive.host_drive import MediaErrors as MediaErrors
    from rackloop_drivers.drive.host_drive import ReachedDrive as ReachedDrive
    from rackloop_drivers.drive.host_drive import beyond_drives as beyond_drives

__getattr__ = lazy_getattr(__name__)
