"""Drives: identity, health and other properties that they report. Each name is imported when asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackloop.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackloop_drivers.drive._host import HostDrive
    from rackloop_drivers.drive._rackd import RackdDrive, survey

__all__ = ["HostDrive", "RackdDrive", "survey"]

__getattr__ = lazy_getattr(__name__)
