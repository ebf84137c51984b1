"""A drive of a server, asked through the tools of that server: how it erases itself, and has unreadable sectors.

Each name is imported when asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackloop.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackloop_drivers.drive.host_drive._driver import HostDrive as HostDrive
    from rackloop_drivers.drive.host_drive._interrupted import ERASING as ERASING
    from rackloop_drivers.drive.host_drive._interrupted import InterruptedErasure as InterruptedErasure
    from rackloop_drivers.drive.host_drive._media_errors import MEDIA_ERROR as MEDIA_ERROR
    from rackloop_drivers.drive.host_drive._media_errors import MediaErrors as MediaErrors
    from rackloop_drivers.drive.host_drive._media_errors import ReachedDrive as ReachedDrive
    from rackloop_drivers.drive.host_drive._media_errors import beyond_drives as beyond_drives

__getattr__ = lazy_getattr(__name__)
