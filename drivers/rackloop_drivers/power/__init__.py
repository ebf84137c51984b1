"""Power ports: the simulated rack's own, accounts and power for simulated boxes; each kind of real box is a package."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackloop.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackloop_drivers.power._login import Account, Login
    from rackloop_drivers.power._rackd import RackdPowerPort
    from rackloop_drivers.power._simulated import (
        Chassis,
        EventKind,
        LoggedEvent,
        MemorySwitching,
        Outlets,
        PowerListener,
        PowerSwitching,
    )

__all__ = [
    "Account",
    "Chassis",
    "EventKind",
    "LoggedEvent",
    "Login",
    "MemorySwitching",
    "Outlets",
    "PowerListener",
    "PowerSwitching",
    "RackdPowerPort",
]

__getattr__ = lazy_getattr(__name__)
