"""Power ports: the simulated rack's own; each kind of real box is a package."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackloop.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackloop_drivers.power._rackd import RackdPowerPort as RackdPowerPort

__getattr__ = lazy_getattr(__name__)
