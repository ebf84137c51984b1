"""What can cut power: the simulated rack's own here, and each kind of real box in a package of its own."""

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

__getattr__ = lazy_getattr(
    __name__,
    {
        "Account": "_login",
        "Chassis": "_simulated",
        "EventKind": "_simulated",
        "LoggedEvent": "_simulated",
        "Login": "_login",
        "MemorySwitching": "_simulated",
        "Outlets": "_simulated",
        "PowerListener": "_simulated",
        "PowerSwitching": "_simulated",
        "RackdPowerPort": "_rackd",
    },
)
